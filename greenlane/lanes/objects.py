"""Device code in what a build left: the architectures really there, and what each kernel needs of a card."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from greenlane.lanes import cuda_code, elf, hip_code, untrusted
from greenlane.ledger.store import write_durably
from greenlane.record.model import StageResult

OBJECTS = (".o", ".obj", ".so")
KEPT = ".greenlane-kernels.json"  # in the build tree: what ptxas said of objects that were not compiled again
Figures = dict[str, int]
Kernels = dict[str, dict[str, Figures]]  # architecture -> kernel -> figures
MOST_KERNELS = 4000  # per architecture, in a record


def survey(build: Path, log: Sequence[str]) -> dict[str, Any]:
    """`architectures` and `kernels` of the objects in a build tree; empty for a build without device code."""
    archs: set[str] = set()
    kernels: Kernels = _said_by_ptxas(build, log)
    unread, named = [], set[str]()
    for name in untrusted.files(build, OBJECTS):
        if "/CompilerId" in name:
            continue  # CMake's own probe of the compiler, for an architecture that nobody asked for
        try:
            data = untrusted.read_bytes(build, name) or b""
            for arch, found in _device_code(data):
                named.update(found or _symbols(data))
                archs.add(arch)
                kernels.setdefault(arch, {}).update(found)
        except (elf.Damaged, ValueError) as error:
            unread.append(f"{name}: {error}")
    here = {arch: _bounded(kernels[arch], named) for arch in sorted(kernels) if arch in archs}
    measured: dict[str, Any] = {"architectures": sorted(archs), "kernels": here, "unread_objects": unread[:20]}
    return {name: value for name, value in measured.items() if value}


def architectures(built: StageResult | None) -> tuple[str, ...]:
    """What the build stage found, for the head of the record."""
    return () if built is None else tuple(built.measurements.get("architectures", ()))


def _device_code(data: bytes) -> Iterator[tuple[str, dict[str, Figures]]]:
    if data[:4] != elf.MAGIC:
        return
    for name, _, content in elf.sections(data):
        if name == hip_code.SECTION:
            if content.lstrip(b"\0").startswith(hip_code.COMPRESSED):
                raise ValueError("its device code is compressed (--offload-compress), so it can't be read")
            for arch, code in hip_code.code_objects(content):
                yield arch, dict(hip_code.kernels(code))
        elif name in cuda_code.SECTIONS:
            for arch in cuda_code.architectures(content):
                yield arch, {}


def _said_by_ptxas(build: Path, log: Sequence[str]) -> Kernels:
    """This build's log over what earlier builds of the tree said."""
    try:
        kept = json.loads(untrusted.read_text(build, KEPT) or "{}")
        kernels = {arch: dict(found) for arch, found in kept.items()}
    except (ValueError, AttributeError, TypeError):
        kernels = {}
    said = list(cuda_code.kernels(log))
    for arch, name, figures in said:
        kernels.setdefault(arch, {})[name] = figures
    if said:
        write_durably(build / KEPT, json.dumps(kernels).encode())
    return kernels


def _symbols(data: bytes) -> set[str]:
    """The names in an object: host code registers each kernel of a fat binary by its name."""
    return {match.decode("latin-1") for match in re.findall(rb"[A-Za-z_]\w{2,}", data)}


def _bounded(kernels: dict[str, Figures], named: set[str]) -> dict[str, Figures]:
    """Without those that the log of an earlier build spoke of and no object holds any more."""
    names = sorted(name for name in kernels if name in named)
    return {name: kernels[name] for name in names[:MOST_KERNELS]}
