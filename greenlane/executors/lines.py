"""Bytes of a stream into lines, live: a line that never ends can't fill the memory."""

from __future__ import annotations

import codecs
from collections.abc import Callable

LONGEST_LINE = 16 * 2**20  # characters; a JSON answer is one line and must stay one


class Lines:
    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""

    def feed(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + self._decode(data)).split("\n")
        for line in whole:
            self._emit(line.rstrip("\r"))
        while len(self._rest) > LONGEST_LINE:
            self._emit(self._rest[:LONGEST_LINE])
            self._rest = self._rest[LONGEST_LINE:]

    def end(self) -> None:
        rest = self._rest + self._decode(b"", True)
        self._rest = ""
        if rest:
            self._emit(rest.rstrip("\r"))
