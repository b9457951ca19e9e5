"""Device code that clang put into an object: its architectures, and what each kernel needs (from the ELF notes)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from greenlane.lanes import elf, msgpack

BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED = b"CCOB"
SECTION = ".hip_fatbin"
_METADATA = 32  # NT_AMDGPU_METADATA
_ENTRY = struct.Struct("<QQQ")
_FIGURES = {
    "vgprs": ".vgpr_count",
    "agprs": ".agpr_count",
    "sgprs": ".sgpr_count",
    "lds_bytes": ".group_segment_fixed_size",
    "scratch_bytes": ".private_segment_fixed_size",
    "vgpr_spills": ".vgpr_spill_count",
    "sgpr_spills": ".sgpr_spill_count",
    "wavefront": ".wavefront_size",
    "max_threads": ".max_flat_workgroup_size",
}


def code_objects(section: bytes) -> Iterator[tuple[str, bytes]]:
    """(architecture, ELF) of each bundle in a section. A linked library holds one bundle per source."""
    at = section.find(BUNDLE)
    while at >= 0:
        yield from _entries(section, at)
        at = section.find(BUNDLE, at + len(BUNDLE))


def kernels(code: bytes) -> Iterator[tuple[str, dict[str, int]]]:
    """(name, figures) of each kernel of one code object."""
    for _, kind, content in elf.sections(code):
        if kind == elf.NOTES:
            for owner, note, description in elf.notes(content):
                if owner == "AMDGPU" and note == _METADATA:
                    yield from _kernels_of(msgpack.unpack(description))


def _kernels_of(metadata: Any) -> Iterator[tuple[str, dict[str, int]]]:
    listed = metadata.get("amdhsa.kernels", []) if isinstance(metadata, dict) else []
    for kernel in listed:
        if isinstance(kernel, dict) and isinstance(kernel.get(".name"), str):
            figures = {name: kernel[key] for name, key in _FIGURES.items() if isinstance(kernel.get(key), int)}
            yield kernel[".name"], figures


def _entries(section: bytes, start: int) -> Iterator[tuple[str, bytes]]:
    at = start + len(BUNDLE)
    try:
        (count,) = struct.unpack_from("<Q", section, at)
        at += 8
        for _ in range(min(count, 256)):
            offset, size, length = _ENTRY.unpack_from(section, at)
            at += _ENTRY.size
            target = section[at : at + length].decode("latin-1")
            at += length
            if target.startswith("hip") and size:
                yield target.split("--")[-1].split(":")[0], section[start + offset : start + offset + size]
    except (struct.error, OverflowError) as error:
        raise elf.Damaged(f"offload bundle: {error}") from error
