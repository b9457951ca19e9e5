"""`greenlane review`: the comment or its JSON for a change, on standard output."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from greenlane.errors import MatrixError
from greenlane.ledger import Ledger
from greenlane.record.git import git_text
from greenlane.report import comment
from greenlane.review.model import Review
from greenlane.review.review import Asked, review

MAX_BODY_BYTES = 1024 * 1024


def command(arguments: argparse.Namespace) -> int:
    proven = _prove(arguments) if arguments.prove else 0
    told = reviewed(arguments.matrix, arguments.base, arguments.head, arguments.pr_body)
    if arguments.format == "json":
        print(json.dumps(told.to_json(), indent=1, ensure_ascii=False))
    else:
        print(comment.render(told), end="")
    return proven or told.exit_code


def _prove(arguments: argparse.Namespace) -> int:
    """Break what the gate guards in a scratch tree; the gate has to turn red."""
    from greenlane.lanes.prove import exit_code, prove

    ends = prove(arguments.matrix, arguments.prove)
    for end in ends:
        print(
            f"{end.lane}: {arguments.prove} {'proven' if end.proven else 'NOT proven'}: {end.reason}", file=sys.stderr
        )
    return exit_code(ends)


def reviewed(matrix: Path, base: str, head: str, body: Path | None) -> Review:
    """The review of a change in the repository that holds the matrix."""
    folder = matrix.resolve().parent
    top = Path(git_text(folder, "rev-parse", "--show-toplevel"))
    asked = Asked(top, str(matrix.resolve().relative_to(top)), base, head, _read(body) if body else None)
    return review(Ledger(folder / ".greenlane" / "ledger"), asked)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BODY_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise MatrixError(f"--pr-body {path}: {error.strerror}; give a file with the pull request's text") from error
