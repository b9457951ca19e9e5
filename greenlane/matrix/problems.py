"""Every mistake of a file, collected: `file:line:column: message`, sorted, each said once."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from greenlane.errors import MatrixError

if TYPE_CHECKING:
    from greenlane.matrix.model import Mark


MAX_SHOWN = 500
MAX_LENGTH = 600


class Problems:
    """What is wrong with a file so far. Beyond `MAX_SHOWN` they are only counted."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, int, str], bool] = {}
        self._lanes: dict[tuple[str, int, int, str], list[str]] = {}
        self._more = 0

    def add(self, mark: Mark, message: str, *, lane: str | None = None, absence: bool = False) -> None:
        """`lane`: whose mistake it is; lanes with the same one are named together.

        `absence`: wrong only because no lane is there, which other mistakes may have caused.
        """
        if self.full:
            self._more += 1
            return
        key = (mark.file, mark.line, mark.column, one_line(message))
        self._found[key] = absence
        if lane is not None:
            self._lanes.setdefault(key, []).append(lane)

    @property
    def full(self) -> bool:
        """Whether further problems are only counted; their messages need not be made."""
        return len(self._found) >= MAX_SHOWN

    def __len__(self) -> int:
        return len(self._found)

    def lines(self) -> list[str]:
        return [
            f"{file}:{line}:{column}: {_named(self._lanes.get((file, line, column, message), []))}{message}"
            for file, line, column, message in sorted(self._found)
        ]

    def raise_any(self, *, without_absences: bool = False) -> None:
        if without_absences:
            self._found = {problem: absence for problem, absence in self._found.items() if not absence}
        if self._found:
            more = (f"and {self._more} more mistakes",) if self._more else ()
            raise MatrixError(*self.lines(), *more)


def _named(lanes: list[str]) -> str:
    if len(lanes) < 2:
        return f"lane {lanes[0]}: " if lanes else ""
    more = f" and {len(lanes) - 3} more" if len(lanes) > 3 else ""
    return f"lanes {', '.join(lanes[:3])}{more}: "


def one_line(message: str) -> str:
    """A message that quotes a stranger's text: no control characters, not endless.

    >>> one_line("a\\tb")
    'a\\\\tb'
    """
    if not message.isprintable():
        message = "".join(char if char.isprintable() else repr(char)[1:-1] for char in message)
    return message if len(message) <= MAX_LENGTH else message[: MAX_LENGTH - 3] + "..."


def nearest(word: str, known: Collection[str]) -> str:
    """What to add to a message about an unknown word.

    >>> nearest("gxf1032", ["gfx1030", "gfx1032", "gfx90a"])
    "; did you mean 'gfx1032'?"
    >>> nearest("rocm-gfx1101", ["rocm-gfx1201", "rocm-gfx1100"])
    "; did you mean 'rocm-gfx1100'?"
    >>> nearest("q", ["gfx1030"])
    ''
    """
    import difflib

    close = difflib.get_close_matches(word, list(known), n=4, cutoff=0.6)
    if not close:
        close = [name for name in known if name.lower() == word.lower()]
    if not close:
        return ""

    def likeness(name: str) -> tuple[bool, float, int]:
        """Swapped letters first; then how alike they are; then how far they begin alike."""
        ratio = difflib.SequenceMatcher(None, word, name).ratio()
        alike = next(
            (at for at, (a, b) in enumerate(zip(word, name, strict=False)) if a != b), min(len(word), len(name))
        )
        return sorted(name) == sorted(word), ratio, alike

    return f"; did you mean {max(close, key=likeness)!r}?"
