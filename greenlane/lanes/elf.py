"""As much of ELF as it takes to find a section or a note in an object that may be damaged."""

from __future__ import annotations

import struct
from collections.abc import Iterator

MAGIC = b"\x7fELF"
_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NOTE = struct.Struct("<III")
NOTES = 7  # SHT_NOTE
NO_BYTES = 8  # SHT_NOBITS


class Damaged(ValueError):
    """Bytes that are no 64-bit little-endian ELF file."""


def sections(data: bytes) -> Iterator[tuple[str, int, bytes]]:
    """(name, type, content) of each section. Raises Damaged."""
    try:
        if data[:4] != MAGIC or data[4] != 2 or data[5] != 1:
            raise Damaged("not a 64-bit little-endian ELF file")
        table, size, count, names_at = _places(data)
        headers = [_SECTION.unpack_from(data, table + size * index) for index in range(count)]
        names = _content(data, headers[names_at]) if names_at < count else b""
        for header in headers:
            name = names[header[0] : names.find(b"\0", header[0])].decode("latin-1")
            yield name, header[1], b"" if header[1] == NO_BYTES else _content(data, header)
    except (struct.error, IndexError, OverflowError) as error:
        raise Damaged(str(error)) from error


def notes(content: bytes) -> Iterator[tuple[str, int, bytes]]:
    """(owner, type, description) of each note of a note section."""
    at = 0
    while at + _NOTE.size <= len(content):
        name_size, size, kind = _NOTE.unpack_from(content, at)
        at += _NOTE.size
        name = content[at : at + name_size].rstrip(b"\0").decode("latin-1")
        at += _aligned(name_size)
        yield name, kind, content[at : at + size]
        at += _aligned(size)


def _places(data: bytes) -> tuple[int, int, int, int]:
    header = _HEADER.unpack_from(data)
    return header[5], header[10], header[11], header[12]


def _content(data: bytes, header: tuple[int, ...]) -> bytes:
    offset, size = header[4], header[5]
    if offset + size > len(data):
        raise Damaged("a section lies outside of the file")
    return data[offset : offset + size]


def _aligned(size: int) -> int:
    return (size + 3) & ~3
