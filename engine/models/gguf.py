"""GGUF, memory-mapped: metadata and tensors, nothing believed before it is checked against the file's size."""

from __future__ import annotations

import mmap
import os
import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelFileError, UnsupportedModel

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_ARRAY_DEPTH = 4
MAX_DIMENSIONS = 4
MAX_TENSOR_ELEMENTS = 1 << 48
DEFAULT_ALIGNMENT = 32


@dataclass(frozen=True)
class BlockFormat:
    """How a tensor type packs its elements."""

    name: str
    elements: int  # per block, along a row
    bytes: int  # per block


FORMATS = {
    0: BlockFormat("F32", 1, 4),
    1: BlockFormat("F16", 1, 2),
    2: BlockFormat("Q4_0", 32, 18),
    3: BlockFormat("Q4_1", 32, 20),
    6: BlockFormat("Q5_0", 32, 22),
    7: BlockFormat("Q5_1", 32, 24),
    8: BlockFormat("Q8_0", 32, 34),
    12: BlockFormat("Q4_K", 256, 144),
    13: BlockFormat("Q5_K", 256, 176),
    14: BlockFormat("Q6_K", 256, 210),
    30: BlockFormat("BF16", 1, 2),
}
# Types that exist elsewhere, so that a refusal can name them.
FOREIGN = {
    9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
    20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64",
    29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}  # fmt: skip


@dataclass(frozen=True)
class GGUFTensor:
    """A tensor of the file; `shape` is outermost first, `data` a read-only view of the mapping."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: memoryview


@dataclass(frozen=True)
class GGUFFile:
    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, GGUFTensor]
    size: int  # bytes of the file
    mapping: mmap.mmap

    def forget_pages(self) -> None:
        """Give back the pages of the file that are resident; they are read again when touched."""
        self.mapping.madvise(mmap.MADV_DONTNEED)


def read(path: Path) -> GGUFFile:
    mapping = map_file(path)
    cursor = Cursor(mapping, path)
    tensor_count, metadata_count = _read_header(cursor)
    metadata = _read_metadata(cursor, metadata_count)
    alignment = _alignment(metadata, path)
    tensors = _read_tensors(cursor, tensor_count, alignment)
    return GGUFFile(path, metadata, tensors, len(mapping), mapping)


def map_file(path: Path) -> mmap.mmap:
    """The whole file, read-only. Says in one line why it can't be read."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ModelFileError(f"{path}: not a regular file; --model takes a GGUF file or a safetensors folder")
            if status.st_size == 0:
                raise ModelFileError(f"{path}: the file is empty; fetch it again")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such model file; check --model") from None
    except OSError as error:
        raise ModelFileError(f"{path}: can't be read: {error.strerror or error}") from None


class Cursor:
    """Reads little-endian values one after another; every read is checked against the end of the file."""

    def __init__(self, mapping: mmap.mmap, path: Path) -> None:
        self.bytes = memoryview(mapping)
        self.size = len(mapping)
        self.at = 0
        self.path = path

    def fail(self, problem: str) -> ModelFileError:
        return ModelFileError(f"{self.path}: {problem} (at byte {self.at}); the file is damaged, fetch it again")

    def take(self, count: int, what: str) -> int:
        """Move over `count` bytes and return where they begin."""
        start = self.at
        if count > self.size - start:
            raise self.fail(f"truncated: {what} needs {count} bytes, {self.size - start} are left")
        self.at = start + count
        return start

    def scalar(self, layout: struct.Struct, what: str) -> Any:
        return layout.unpack_from(self.bytes, self.take(layout.size, what))[0]

    def string(self, what: str) -> str:
        length = self.scalar(U64, what)
        start = self.take(length, what)
        try:
            return str(self.bytes[start : start + length], "utf-8")
        except UnicodeDecodeError:
            raise self.fail(f"{what} is not UTF-8") from None

    def strings(self, count: int, what: str) -> list[str]:
        """Many strings: one tight loop, since vocabularies hold hundreds of thousands."""
        bytes_, at, size, unpack = self.bytes, self.at, self.size, U64.unpack_from
        found: list[str] = []
        try:
            for _ in range(count):
                start = at + 8
                at = start + unpack(bytes_, at)[0]
                if at > size:
                    raise self.fail(f"truncated: {what} entry {len(found)} runs {at - size} bytes past the end")
                found.append(str(bytes_[start:at], "utf-8"))
        except struct.error:
            raise self.fail(f"truncated: {what} ends at entry {len(found)} of {count}") from None
        except UnicodeDecodeError:
            raise self.fail(f"{what} entry {len(found)} is not UTF-8") from None
        self.at = at
        return found


U32, U64 = struct.Struct("<I"), struct.Struct("<Q")
SCALARS = {
    0: struct.Struct("<B"), 1: struct.Struct("<b"), 2: struct.Struct("<H"), 3: struct.Struct("<h"),
    4: U32, 5: struct.Struct("<i"), 6: struct.Struct("<f"), 7: struct.Struct("<?"),
    10: U64, 11: struct.Struct("<q"), 12: struct.Struct("<d"),
}  # fmt: skip
STRING, ARRAY = 8, 9


def _read_header(cursor: Cursor) -> tuple[int, int]:
    """Tensor count and metadata count."""
    if bytes(cursor.bytes[:4]) != MAGIC:
        raise ModelFileError(f"{cursor.path}: not a GGUF file (it does not begin with 'GGUF'); give a .gguf model")
    cursor.at = 4
    version = cursor.scalar(U32, "the version")
    if version not in VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        what = "big-endian GGUF" if swapped in VERSIONS else f"GGUF version {version}"
        raise UnsupportedModel(f"{cursor.path}: {what} is not supported; convert it to little-endian version 3")
    tensors, metadata = cursor.scalar(U64, "the tensor count"), cursor.scalar(U64, "the metadata count")
    left = cursor.size - cursor.at
    # The shortest entries: a metadata key of one byte with a one-byte value, a tensor with a one-byte name.
    for count, smallest, what in ((metadata, 14, "metadata entries"), (tensors, 33, "tensors")):
        if count > left // smallest:
            raise cursor.fail(f"it claims {count} {what}, more than its {cursor.size} bytes can hold")
    return tensors, metadata


def _read_metadata(cursor: Cursor, count: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for index in range(count):
        key = cursor.string(f"metadata key {index}")
        if key in metadata:
            raise cursor.fail(f"metadata key {key!r} occurs twice")
        metadata[key] = _read_value(cursor, cursor.scalar(U32, f"the type of {key!r}"), key, depth=0)
    return metadata


def _read_value(cursor: Cursor, kind: int, key: str, depth: int) -> Any:
    what = f"metadata {key!r}"
    if kind in SCALARS:
        return cursor.scalar(SCALARS[kind], what)
    if kind == STRING:
        return cursor.string(what)
    if kind == ARRAY:
        return _read_array(cursor, key, depth)
    raise cursor.fail(f"{what} has the unknown type {kind}")


def _read_array(cursor: Cursor, key: str, depth: int) -> list[Any]:
    what = f"metadata {key!r}"
    if depth >= MAX_ARRAY_DEPTH:
        raise cursor.fail(f"{what} nests arrays more than {MAX_ARRAY_DEPTH} deep")
    kind, count = cursor.scalar(U32, what), cursor.scalar(U64, what)
    if kind in SCALARS:
        element = SCALARS[kind]
        start = cursor.take(count * element.size, f"{what} with {count} elements")
        if kind == 7:
            return [bool(byte) for byte in cursor.bytes[start : cursor.at]]
        return list(struct.unpack_from(f"<{count}{element.format[-1]}", cursor.bytes, start))
    if count > (cursor.size - cursor.at) // (8 if kind == STRING else 12):
        raise cursor.fail(f"{what} claims {count} elements, more than the file can hold")
    if kind == STRING:
        return cursor.strings(count, what)
    return [_read_value(cursor, kind, key, depth + 1) for _ in range(count)]


def _alignment(metadata: Mapping[str, Any], path: Path) -> int:
    value = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(value) is not int or not 1 <= value <= 1 << 20 or value & (value - 1):
        raise ModelFileError(f"{path}: general.alignment is {value!r}, not a power of two; the file is damaged")
    return value


def _read_tensors(cursor: Cursor, count: int, alignment: int) -> dict[str, GGUFTensor]:
    entries: dict[str, tuple[BlockFormat, tuple[int, ...], int]] = {}
    for index in range(count):
        name = cursor.string(f"the name of tensor {index}")
        if name in entries:
            raise cursor.fail(f"tensor {name!r} occurs twice")
        entries[name] = _read_tensor_entry(cursor, name)
    data_start = -(-cursor.at // alignment) * alignment
    return {
        name: GGUFTensor(name, entry[0].name, entry[1], _tensor_data(cursor, name, *entry, data_start, alignment))
        for name, entry in entries.items()
    }


def _read_tensor_entry(cursor: Cursor, name: str) -> tuple[BlockFormat, tuple[int, ...], int]:
    rank = cursor.scalar(U32, f"the rank of tensor {name!r}")
    if not 1 <= rank <= MAX_DIMENSIONS:
        raise cursor.fail(f"tensor {name!r} has {rank} dimensions, not 1 to {MAX_DIMENSIONS}")
    innermost_first = [cursor.scalar(U64, f"the shape of tensor {name!r}") for _ in range(rank)]
    elements = 1
    for dimension in innermost_first:
        elements *= dimension
        if not 0 < dimension <= MAX_TENSOR_ELEMENTS or elements > MAX_TENSOR_ELEMENTS:
            raise cursor.fail(f"tensor {name!r} has the impossible shape {innermost_first}")
    kind = cursor.scalar(U32, f"the type of tensor {name!r}")
    offset = cursor.scalar(U64, f"the offset of tensor {name!r}")
    return _format(cursor, name, kind), tuple(reversed(innermost_first)), offset


def _format(cursor: Cursor, name: str, kind: int) -> BlockFormat:
    if kind in FORMATS:
        return FORMATS[kind]
    supported = ", ".join(sorted(block.name for block in FORMATS.values()))
    if kind in FOREIGN:
        raise UnsupportedModel(
            f"{cursor.path}: tensor {name!r} is quantised as {FOREIGN[kind]}, which is not supported; "
            f"use a file with only {supported}"
        )
    raise cursor.fail(f"tensor {name!r} has the unknown type {kind}, not one of {supported}")


def _tensor_data(
    cursor: Cursor, name: str, block: BlockFormat, shape: tuple[int, ...], offset: int, data_start: int, alignment: int
) -> memoryview:
    if shape[-1] % block.elements:
        raise cursor.fail(f"tensor {name!r}: rows of {shape[-1]} are no multiple of {block.name}'s {block.elements}")
    if offset % alignment:
        raise cursor.fail(f"tensor {name!r}: offset {offset} is no multiple of the alignment {alignment}")
    elements = 1
    for dimension in shape:
        elements *= dimension
    size = elements // block.elements * block.bytes
    start = data_start + offset
    if start + size > cursor.size:
        raise ModelFileError(
            f"{cursor.path}: tensor {name!r} lies outside the file (bytes {start} to {start + size} of {cursor.size}); "
            "the file is truncated or damaged, fetch it again"
        )
    return cursor.bytes[start : start + size]
