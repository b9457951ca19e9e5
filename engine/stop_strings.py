"""Stop strings that may begin in one token and end in another."""

from __future__ import annotations

from collections.abc import Sequence


class StopMatcher:
    """Takes text as it comes and gives out what can't be part of a stop string any more."""

    def __init__(self, stops: Sequence[str], *, include_stop: bool = False) -> None:
        self._stops = tuple(stops)
        self._include = include_stop
        self._held = ""
        self.stopped_by: str | None = None

    def push(self, text: str) -> str:
        """The text that is safe to show. After a stop string there is none."""
        if self.stopped_by is not None:
            return ""
        if not self._stops:
            return text
        text = self._held + text
        found = [(at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            at, self.stopped_by = min(found, key=lambda f: (f[0], -len(f[1])))
            self._held = ""
            return text[: at + len(self.stopped_by)] if self._include else text[:at]
        keep = max(_overlap(text, stop) for stop in self._stops)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """What was held back, once no more text can come."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`.

    >>> _overlap("one two", "cat"), _overlap("one tw", "two"), _overlap("", "x")
    (0, 2, 0)
    """
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
