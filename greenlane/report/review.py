"""`greenlane review`: the comment or its JSON for a change, on standard output."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from greenlane.errors import MatrixError
from greenlane.ledger import Ledger
from greenlane.record.git import git_text
from greenlane.report import comment
from greenlane.review.model import Review
from greenlane.review.review import Asked, review

MAX_BODY_BYTES = 1024 * 1024


def command(arguments: argparse.Namespace) -> int:
    told = reviewed(arguments.matrix, arguments.base, arguments.head, arguments.pr_body)
    if arguments.format == "json":
        print(json.dumps(told.to_json(), indent=1, ensure_ascii=False))
    else:
        print(comment.render(told), end="")
    return told.exit_code


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
