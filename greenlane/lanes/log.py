"""One log file per stage, written live, with the values of passed-through variables masked."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

MASK = "***"
SHORTEST_SECRET = 6  # masking shorter values would garble the log and hide nothing
KEPT_LINES = 4000  # of the newest, for finding the first error and for showing a tail
KEPT_FIRST = 20_000  # of the oldest


class StageLog:
    """Lines go to the file, to whoever watches, and into a window that the first error is looked for in."""

    def __init__(
        self,
        path: Path | None = None,
        secrets: Iterable[str] = (),
        watch: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.path = path
        self._secrets = sorted({s for s in secrets if len(s) >= SHORTEST_SECRET}, key=len, reverse=True)
        self._watch = watch
        self._file: IO[str] | None = None
        self._first: list[str] = []
        self._last: deque[str] = deque(maxlen=KEPT_LINES)
        self._flushed = 0.0
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w", encoding="utf-8", errors="replace")

    def command(self, script: str) -> None:
        self._write(f"$ {script}")

    def line(self, text: str) -> None:
        text = self._masked(text)
        if len(self._first) < KEPT_FIRST:
            self._first.append(text)
        else:
            self._last.append(text)
        self._write(text)

    def lines(self) -> list[str]:
        return [*self._first, *self._last]

    def tail(self, count: int) -> list[str]:
        return self.lines()[-count:]

    def close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # a full disk was reported when it was written to
                self._file.close()
            self._file = None

    def _write(self, text: str) -> None:
        text = self._masked(text)
        self._watch(text)
        if self._file is not None:
            self._file.write(text + "\n")
            if time.monotonic() - self._flushed > 0.2:
                self._file.flush()
                self._flushed = time.monotonic()

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text
