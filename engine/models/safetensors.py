"""Safetensors, memory-mapped: a JSON header with each tensor's type, shape and place, checked against the file."""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from engine.errors import ModelFileError, UnsupportedModel
from engine.models.gguf import MAX_DIMENSIONS, map_file

SIZES = {"F32": 4, "F16": 2, "BF16": 2}
MAX_HEADER = 100 << 20  # bytes, as the format's own readers have it
INDEX = "model.safetensors.index.json"


@dataclass(frozen=True)
class Tensor:
    dtype: str
    shape: tuple[int, ...]
    data: memoryview


@dataclass(frozen=True)
class Checkpoint:
    """The tensors of one file, or of the shards that an index names."""

    tensors: Mapping[str, Tensor]
    mappings: Sequence[mmap.mmap]

    def forget_pages(self) -> None:
        for mapping in self.mappings:
            mapping.madvise(mmap.MADV_DONTNEED)


def read_folder(folder: Path) -> Checkpoint:
    tensors: dict[str, Tensor] = {}
    mappings = []
    for path in _shards(folder):
        found, mapping = read(path)
        for name in found:
            if name in tensors:
                raise ModelFileError(f"{path}: tensor {name!r} is in another shard too; the folder is damaged")
        tensors |= found
        mappings.append(mapping)
    return Checkpoint(tensors, mappings)


def _shards(folder: Path) -> list[Path]:
    index = folder / INDEX
    if not index.exists():
        single = folder / "model.safetensors"
        if not single.exists():
            raise ModelFileError(f"{folder}: holds neither model.safetensors nor {INDEX}; give a model's folder")
        return [single]
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not all(_is_file_name(name) for name in weight_map.values()):
        raise ModelFileError(f"{index}: 'weight_map' does not map tensors to files of this folder")
    return [folder / name for name in sorted(set(weight_map.values()))]


def _is_file_name(name: Any) -> bool:
    return isinstance(name, str) and name == Path(name).name and name.endswith(".safetensors")


def read(path: Path) -> tuple[dict[str, Tensor], mmap.mmap]:
    mapping = map_file(path)
    view = memoryview(mapping)
    if len(view) < 8:
        raise ModelFileError(f"{path}: truncated: {len(view)} bytes are no safetensors file; fetch it again")
    length = int.from_bytes(view[:8], "little")
    if length > min(MAX_HEADER, len(view) - 8):
        raise ModelFileError(f"{path}: claims a header of {length} bytes; it is no safetensors file, or truncated")
    header = _header(bytes(view[8 : 8 + length]), path)
    data = view[8 + length :]
    return {name: _tensor(name, entry, data, path) for name, entry in header.items() if name != "__metadata__"}, mapping


def _header(raw: bytes, path: Path) -> dict[str, Any]:
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError):
        raise ModelFileError(f"{path}: its header is not JSON; the file is damaged, fetch it again") from None
    if not isinstance(header, dict):
        raise ModelFileError(f"{path}: its header is no JSON object; the file is damaged, fetch it again")
    return header


def _tensor(name: str, entry: Any, data: memoryview, path: Path) -> Tensor:
    where = f"{path}: tensor {name[:80]!r}"
    if not isinstance(entry, dict):
        raise ModelFileError(f"{where}: its entry is no object; the file is damaged")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if dtype not in SIZES:
        raise UnsupportedModel(
            f"{where} is {str(dtype)[:20]}, which is not supported; supported are {', '.join(SIZES)}"
        )
    if not _counts(shape, 1) or not 1 <= len(shape) <= MAX_DIMENSIONS or not _counts(offsets, 0) or len(offsets) != 2:
        raise ModelFileError(f"{where}: impossible shape {str(shape)[:60]} or place {str(offsets)[:60]}; it is damaged")
    size = SIZES[dtype]
    for dimension in shape:
        size *= dimension
    start, end = offsets
    if end > len(data) or end - start != size:
        raise ModelFileError(
            f"{where} lies outside the file or has the wrong size (bytes {start} to {end} of {len(data)}, "
            f"{size} needed); the file is truncated or damaged, fetch it again"
        )
    return Tensor(dtype, tuple(shape), data[start:end])


def _counts(value: Any, low: int) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(item) is int and low <= item < 1 << 48 for item in value)


def read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelFileError(f"{path}: missing; a Hugging Face model's folder holds it") from None
    except OSError as error:
        raise ModelFileError(f"{path}: can't be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path}: not valid JSON: {str(error)[:100]}") from None
    if not isinstance(found, dict):
        raise ModelFileError(f"{path}: holds no JSON object")
    return found
