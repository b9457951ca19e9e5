"""The gfx and sm targets that compilers know: wavefront, family, first compiler version. Data in targets.json."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Target:
    """What a compiler's target name stands for."""

    name: str
    vendor: str  # "amd", "nvidia"
    wavefront: int  # lanes per wavefront
    family: str  # siblings run the same kind of code: gfx1151 is of the family gfx11
    generation: str  # "RDNA3", "Hopper"
    first: Mapping[str, str] = field(default_factory=dict)  # compiler -> first version that knows it
    dropped: Mapping[str, str] = field(default_factory=dict)  # compiler -> first version that no longer does
    generic: str | None = None  # target whose binaries run on the whole family


@functools.cache
def targets() -> Mapping[str, Target]:
    """Every known target by name."""
    data = json.loads(Path(__file__).with_name("targets.json").read_text())
    return {name: Target(name, **entry) for name, entry in data.items()}


def compiler_is_unfit(target: Target, compiler: str | None, version: str | None) -> str | None:
    """Why this compiler can't build for the target; None when it can or nobody knows.

    >>> compiler_is_unfit(targets()["gfx1201"], "hipcc", "5.7.1")
    'hipcc 5.7.1 is too old for gfx1201, which needs 6.0 or later'
    """
    if compiler is None or version is None or not (have := version_of(version)):
        return None
    first = target.first.get(compiler)
    if first and have < version_of(first)[: len(have)]:
        return f"{compiler} {version} is too old for {target.name}, which needs {first} or later"
    dropped = target.dropped.get(compiler)
    if dropped and have >= version_of(dropped):
        return f"{compiler} {version} no longer builds for {target.name}; {dropped} dropped it"
    return None


def version_of(text: str) -> tuple[int, ...]:
    """
    >>> version_of("21.1.8"), version_of("13.0rc1"), version_of("trunk")
    ((21, 1, 8), (13, 0), ())
    """
    match = re.match(r"\d{1,9}(?:\.\d{1,9})*", text)
    return tuple(int(part) for part in match.group().split(".")) if match else ()
