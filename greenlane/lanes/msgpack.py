"""Reads MessagePack, in which AMD's compiler notes what each kernel needs."""

from __future__ import annotations

import struct
from typing import Any

DEEPEST = 32
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d",
    0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_TEXTS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_LISTS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}


def unpack(data: bytes) -> Any:
    """The value in `data`. Raises ValueError when it is damaged."""
    try:
        return _Reader(data).value(0)
    except (struct.error, IndexError, UnicodeDecodeError, TypeError, OverflowError) as error:
        raise ValueError(f"damaged MessagePack: {error}") from error


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise ValueError("nested too deep")
        head = self._data[self._at]
        self._at += 1
        if head <= 0x7F:
            return head
        if head >= 0xE0:
            return head - 0x100
        if head in _CONSTANTS:
            return _CONSTANTS[head]
        if head in _NUMBERS:
            return self._number(_NUMBERS[head])
        return self._composed(head, depth + 1)

    def _composed(self, head: int, depth: int) -> Any:
        if 0xA0 <= head <= 0xBF:
            return self._text(head & 0x1F)
        if head in _TEXTS:
            return self._text(self._number(_TEXTS[head]))
        if 0x90 <= head <= 0x9F or head in _LISTS:
            count = self._number(_LISTS[head]) if head in _LISTS else head & 0x0F
            return [self.value(depth) for _ in range(count)]
        if 0x80 <= head <= 0x8F or head in _MAPS:
            count = self._number(_MAPS[head]) if head in _MAPS else head & 0x0F
            return {self.value(depth): self.value(depth) for _ in range(count)}
        raise ValueError(f"type {head:#x} is not one that compilers write")

    def _number(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return value

    def _text(self, size: int) -> str:
        if self._at + size > len(self._data):
            raise ValueError("a text goes beyond the end")
        text = self._data[self._at : self._at + size]
        self._at += size
        return text.decode()
