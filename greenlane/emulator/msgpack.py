"""Reads MessagePack, the format of the metadata note in a code object."""

from __future__ import annotations

import struct
from typing import Any

from greenlane.emulator.errors import BadCodeObject

_FIXED = {
    0xCA: (">f", 4),
    0xCB: (">d", 8),
    0xCC: (">B", 1),
    0xCD: (">H", 2),
    0xCE: (">I", 4),
    0xCF: (">Q", 8),
    0xD0: (">b", 1),
    0xD1: (">h", 2),
    0xD2: (">i", 4),
    0xD3: (">q", 8),
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_LENGTH = {1: ">B", 2: ">H", 4: ">I"}
_STRINGS = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_BINARIES = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_ARRAYS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}


def unpack(data: bytes) -> Any:
    """The first value in `data`.

    >>> unpack(bytes([0x82, 0xA1, 0x61, 0x01, 0xA1, 0x62, 0x92, 0xC3, 0xFF]))
    {'a': 1, 'b': [True, -1]}
    """
    try:
        value, _ = _value(data, 0)
    except (IndexError, struct.error, UnicodeDecodeError, TypeError, RecursionError) as error:
        raise BadCodeObject(f"the metadata note is damaged: {error}") from None
    return value


def _value(data: bytes, at: int) -> tuple[Any, int]:
    tag = data[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 0x100, at
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], at
    if tag in _FIXED:
        form, size = _FIXED[tag]
        return struct.unpack_from(form, data, at)[0], at + size
    if 0xA0 <= tag < 0xC0:
        return _string(data, at, tag & 31)
    if 0x90 <= tag < 0xA0:
        return _array(data, at, tag & 15)
    if 0x80 <= tag < 0x90:
        return _map(data, at, tag & 15)
    return _sized(data, at, tag)


def _sized(data: bytes, at: int, tag: int) -> tuple[Any, int]:
    for tags, read in ((_STRINGS, _string), (_BINARIES, _binary), (_ARRAYS, _array), (_MAPS, _map)):
        if tag in tags:
            width = tags[tag]
            (length,) = struct.unpack_from(_LENGTH[width], data, at)
            return read(data, at + width, length)
    raise BadCodeObject(f"the metadata note holds the unknown MessagePack tag {tag:#x}")


def _string(data: bytes, at: int, length: int) -> tuple[str, int]:
    return data[at : at + length].decode(), at + length


def _binary(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    return data[at : at + length], at + length


def _array(data: bytes, at: int, length: int) -> tuple[list[Any], int]:
    items = []
    for _ in range(length):
        item, at = _value(data, at)
        items.append(item)
    return items, at


def _map(data: bytes, at: int, length: int) -> tuple[dict[Any, Any], int]:
    items = {}
    for _ in range(length):
        key, at = _value(data, at)
        items[key], at = _value(data, at)
    return items, at
