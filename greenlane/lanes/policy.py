"""What judges a change is what its base says: gates, severities and `require` of the lanes that exist there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from greenlane.errors import MatrixError
from greenlane.matrix.loading import compile_matrix
from greenlane.matrix.model import Lane, Matrix
from greenlane.record.git import git, git_text


def judged_by_base(matrix: Matrix, root: Path, base: str | None) -> Matrix:
    """The head's lanes under the rules of the merge base, so that a change can't loosen what judges it.

    A base without a matrix, or with one that can't be read, has no rules to give.
    """
    before = None if base is None else _matrix_at(matrix, root, base)
    if before is None:
        return matrix
    lanes = tuple(_under(lane, before.lane(lane.id)) for lane in matrix.lanes)
    return replace(matrix, lanes=lanes, checks=before.checks, known_red=before.known_red, required=before.required)


def _under(lane: Lane, before: Lane | None) -> Lane:
    return lane if before is None else replace(lane, gates=before.gates, require=before.require)


def _matrix_at(matrix: Matrix, root: Path, base: str) -> Matrix | None:
    found = git(root, "merge-base", base, "HEAD", check=False).stdout.decode().strip()
    folder = git_text(root, "rev-parse", "--show-prefix")
    name = Path(matrix.file).name
    shown = git(root, "show", f"{found or base}:{folder}{name}", check=False)
    if shown.returncode != 0:
        return None
    try:
        return compile_matrix(shown.stdout, name).matrix
    except MatrixError:
        return None
