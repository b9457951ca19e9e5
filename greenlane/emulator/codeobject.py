"""Reads an AMDGPU code object: symbols, the metadata note, kernel descriptors."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from greenlane.emulator import msgpack
from greenlane.emulator.errors import BadCodeObject

_AMDGPU_MACHINE = 224
_NOTE, _SYMTAB, _DYNSYM = 7, 2, 11
_METADATA_NOTE = 32
_LOAD = 1
_FUNCTION = 2


@dataclass(frozen=True)
class Symbol:
    """A name and where it lies."""

    address: int
    size: int
    is_function: bool


@dataclass(frozen=True)
class Descriptor:
    """What the 64 bytes of a kernel descriptor say."""

    lds_bytes: int
    scratch_bytes: int
    kernarg_bytes: int
    rsrc1: int
    rsrc2: int
    properties: int
    preload: int

    def has(self, bit: int) -> bool:
        """One of the `enable_sgpr_*` bits of the kernel code properties."""
        return bool(self.properties >> bit & 1)

    @property
    def lanes(self) -> int:
        return 32 if self.has(10) else 64

    @property
    def user_sgprs(self) -> int:
        return self.rsrc2 >> 1 & 31

    @property
    def flushes_f32_denormals(self) -> bool:
        return self.rsrc1 >> 16 & 3 != 3


@dataclass(frozen=True)
class CodeObject:
    """One ELF for one architecture."""

    data: bytes
    arch: str
    symbols: Mapping[str, Symbol]
    metadata: Mapping[str, Any]
    segments: tuple[tuple[int, int, int], ...]  # file offset, address, bytes in the file

    def kernels(self) -> Mapping[str, Mapping[str, Any]]:
        """The metadata of each kernel by its symbol's name."""
        return {kernel[".symbol"].removesuffix(".kd"): kernel for kernel in self.metadata.get("amdhsa.kernels", [])}

    def device_functions(self) -> list[str]:
        """Functions that kernels may call."""
        kernels = self.kernels()
        return [
            name for name, symbol in self.symbols.items() if symbol.is_function and name not in kernels and symbol.size
        ]

    def read(self, address: int, size: int) -> bytes:
        for offset, start, length in self.segments:
            if start <= address and address + size <= start + length:
                return self.data[offset + address - start : offset + address - start + size]
        raise BadCodeObject(f"the code object holds nothing at {address:#x}")

    def descriptor(self, kernel: str) -> Descriptor:
        symbol = self.symbols.get(f"{kernel}.kd")
        if symbol is None:
            raise BadCodeObject(f"the code object has no kernel {kernel}")
        raw = self.read(symbol.address, 64)
        lds, scratch, kernarg = struct.unpack_from("<III", raw)
        _, rsrc1, rsrc2, properties, preload = struct.unpack_from("<IIIHH", raw, 44)
        return Descriptor(lds, scratch, kernarg, rsrc1, rsrc2, properties, preload)


def parse(data: bytes) -> CodeObject:
    """Reads the bytes of an ELF; anything but a linked AMDGPU code object is refused."""
    try:
        return _parse(data)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError, OverflowError, MemoryError):
        raise BadCodeObject("the code object is cut off or damaged") from None


def _parse(data: bytes) -> CodeObject:
    if data[:4] != b"\x7fELF" or struct.unpack_from("<H", data, 18)[0] != _AMDGPU_MACHINE:
        raise BadCodeObject("not an AMDGPU code object")
    sections = list(_sections(data))
    metadata = _metadata(data, sections)
    target = metadata.get("amdhsa.target", "") if isinstance(metadata, dict) else ""
    if not isinstance(target, str) or not target:
        raise BadCodeObject("the code object has no metadata note (made for code object version 2?)")
    arch = target.rpartition("--")[2].partition(":")[0]
    return CodeObject(data, arch, _symbols(data, sections), metadata, tuple(_segments(data)))


def _sections(data: bytes) -> Iterator[tuple[int, ...]]:
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    for index in range(count):
        yield struct.unpack_from("<IIQQQQIIQQ", data, table + index * size)


def _segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for index in range(count):
        kind, _, offset, address, _, length, _, _ = struct.unpack_from("<IIQQQQQQ", data, table + index * size)
        if kind == _LOAD:
            yield offset, address, length


def _metadata(data: bytes, sections: list[tuple[int, ...]]) -> Mapping[str, Any]:
    for _, kind, _, _, offset, size, *_ in sections:
        at = offset
        while kind == _NOTE and at < offset + size:
            name_size, value_size, note = struct.unpack_from("<III", data, at)
            value = at + 12 + (name_size + 3 & ~3)
            if note == _METADATA_NOTE:
                found: Mapping[str, Any] = msgpack.unpack(data[value : value + value_size])
                return found
            at = value + (value_size + 3 & ~3)
    return {}


def _symbols(data: bytes, sections: list[tuple[int, ...]]) -> Mapping[str, Symbol]:
    symbols = {}
    for _, kind, _, _, offset, size, link, *_ in sections:
        if kind not in (_SYMTAB, _DYNSYM):
            continue
        strings = sections[link][4]
        for at in range(offset, offset + size, 24):
            name, info, _, section, address, length = struct.unpack_from("<IBBHQQ", data, at)
            end = data.index(b"\0", strings + name)
            if section and end > strings + name:
                text = data[strings + name : end].decode()
                symbols[text] = Symbol(address, length, info & 15 == _FUNCTION)
    return symbols
