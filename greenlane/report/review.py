"""`greenlane review`: the comment or its JSON for a change, on standard output."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from greenlane.errors import MatrixError
from greenlane.record.git import git_text
from greenlane.report import comment, summary
from greenlane.report.command import default_format
from greenlane.report.newest import ledger_of
from greenlane.report.templates import Templates, of_commit
from greenlane.review.model import Review
from greenlane.review.review import Asked, review

MAX_BODY_BYTES = 1024 * 1024


def command(arguments: argparse.Namespace) -> int:
    proven = _prove(arguments) if arguments.prove else 0
    told = reviewed(arguments.matrix, arguments.base, arguments.head, arguments.pr_body, tuple(arguments.other))
    chosen = arguments.format or default_format(None)
    if chosen == "json":
        print(json.dumps(told.to_json(), indent=1, ensure_ascii=False))
    elif chosen in ("html", "text"):
        print(_drawn(arguments.matrix, told, chosen), end="")
    else:
        written = comment.render(told, templates=templates_of(arguments.matrix, told))
        summary.publish(written)
        print(written, end="")
    return proven or told.exit_code


def templates_of(matrix: Path, told: Review) -> Templates:
    """The project's own templates as the merge base has them."""
    top, path = _places(matrix)
    return of_commit(top, told.merge.merge_base, path)


def _drawn(matrix: Path, told: Review, form: str) -> str:
    """The page with its verdicts, or the same on a terminal."""
    from greenlane.report import page, terminal
    from greenlane.report.page.source import of_review, project_of

    made = of_review(ledger_of(matrix), told, matrix, project_of(matrix))
    return page.render(made, templates_of(matrix, told)) if form == "html" else terminal.render(made, styled=True)


def _prove(arguments: argparse.Namespace) -> int:
    """Break what the gate guards in a scratch tree; the gate has to turn red."""
    from greenlane.lanes.prove import exit_code, prove

    ends = prove(arguments.matrix, arguments.prove, getattr(arguments, "lane", ()))
    for end in ends:
        print(
            f"{end.lane}: {arguments.prove} {'proven' if end.proven else 'NOT proven'}: {end.reason}", file=sys.stderr
        )
    return exit_code(ends)


def reviewed(matrix: Path, base: str, head: str, body: Path | None, others: tuple[str, ...] = ()) -> Review:
    """The review of a change in the repository that holds the matrix."""
    top, path = _places(matrix)
    return review(ledger_of(matrix), Asked(top, path, base, head, _read(body) if body else None, others))


def _places(matrix: Path) -> tuple[Path, str]:
    """(top of the repository, the matrix's path in it)."""
    resolved = matrix.resolve()
    top = Path(git_text(resolved.parent, "rev-parse", "--show-toplevel"))
    return top, str(resolved.relative_to(top))


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BODY_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise MatrixError(f"--pr-body {path}: {error.strerror}; give a file with the pull request's text") from error
