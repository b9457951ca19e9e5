"""Every mistake of a file, collected: `file:line:column: message`, sorted, each said once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from greenlane.errors import MatrixError

if TYPE_CHECKING:
    from greenlane.matrix.model import Mark


class Problems:
    """What is wrong with a file so far."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, int, str], None] = {}

    def add(self, mark: Mark, message: str) -> None:
        self._found[(mark.file, mark.line, mark.column, message)] = None

    def __len__(self) -> int:
        return len(self._found)

    def lines(self) -> list[str]:
        return [f"{file}:{line}:{column}: {message}" for file, line, column, message in sorted(self._found)]

    def raise_any(self) -> None:
        if self._found:
            raise MatrixError(*self.lines())


def nearest(word: str, known: Iterable[str]) -> str:
    """What to add to a message about an unknown word.

    >>> nearest("gxf1032", ["gfx1030", "gfx1032", "gfx90a"])
    "; did you mean 'gfx1032'?"
    >>> nearest("q", ["gfx1030"])
    ''
    """
    import difflib

    names = list(known)
    close = difflib.get_close_matches(word, names, n=4, cutoff=0.6)
    if not close:
        close = [name for name in names if name.lower() == word.lower()]
    if not close:
        return ""
    swapped = [name for name in close if sorted(name) == sorted(word)]
    return f"; did you mean {(swapped or close)[0]!r}?"
