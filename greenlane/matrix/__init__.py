"""One file that says everything: `load` gives the expanded matrix or every mistake in it at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from greenlane.matrix.model import Matrix


def load(path: Path | str) -> Matrix:
    """The expanded matrix of a file. Raises `MatrixError` with every mistake in it, one line each."""
    from greenlane.matrix.loading import load_file

    return load_file(Path(path))
