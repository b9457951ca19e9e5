"""Device code that nvcc put into an object: its architectures; and what ptxas said of each kernel in the log."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence

from greenlane.lanes import elf

SECTIONS = (".nv_fatbin", "__nv_relfatbin")
_MAGIC = 0xBA55ED50
_FATBIN = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHI4x4xQ")  # kind, version, header, size, compressed, -, minor, major, arch, flags
_PTX, _CUBIN = 1, 2
_ACCELERATED = 0x100000  # sm_90a: code for one generation only

_ENTRY_LINE = re.compile(r"ptxas info\s*: Compiling entry function '(?P<name>[^']+)' for '(?P<arch>[^']+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"ptxas info\s*: Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def architectures(section: bytes) -> Iterator[str]:
    """`sm_90` for machine code, `compute_90` for what the driver compiles later."""
    at = 0
    while at + _FATBIN.size <= len(section):
        magic, _, header, size = _FATBIN.unpack_from(section, at)
        if magic != _MAGIC:
            at += 8  # padding between the parts that a linker put together
            continue
        yield from _entries(section, at + header, min(at + header + size, len(section)))
        at += header + size


def _entries(section: bytes, at: int, end: int) -> Iterator[str]:
    while at + _ENTRY.size <= end:
        kind, _, header, size, _, _, _, _, arch, flags = _ENTRY.unpack_from(section, at)
        if not header:
            raise elf.Damaged("a fat binary's entry has no header")
        suffix = "a" if flags & _ACCELERATED else ""
        if kind in (_PTX, _CUBIN):
            yield f"{'compute' if kind == _PTX else 'sm'}_{arch}{suffix}"
        at += header + size


def kernels(log: Sequence[str]) -> Iterator[tuple[str, str, dict[str, int]]]:
    """(architecture, name, figures) as `-Xptxas=-v` prints them, also when a compiler cache repeats them."""
    name = arch = None
    figures: dict[str, int] = {}
    for line in log:
        if match := _ENTRY_LINE.search(line):
            name, arch, figures = match["name"], match["arch"], {}
        elif match := _FRAME.search(line):
            figures |= {
                "scratch_bytes": int(match[1]),
                "spill_store_bytes": int(match[2]),
                "spill_load_bytes": int(match[3]),
            }
        elif (match := _USED.search(line)) and name and arch:
            shared = _SHARED.search(line)
            yield arch, name, figures | {"registers": int(match[1]), "lds_bytes": int(shared[1]) if shared else 0}
            name = None
