"""The compiler that a build tree was configured with, and the architectures really in what it built."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from greenlane.lanes import untrusted
from greenlane.record.model import Toolchain

_SET = re.compile(r'^\s*set\((\w+) "?([^")]*)"?\)', re.MULTILINE)
# The language whose compiler a lane is named for comes first.
_LANGUAGES = ("HIP", "CUDA", "CXX", "C")


def toolchain(build: Path, toolkit: str | None, archs: tuple[str, ...]) -> Toolchain:
    for folder in sorted(build.glob("CMakeFiles/*.*.*")):
        for language, facts in _compilers(build, folder.name):
            return Toolchain(
                compiler=_named(language, facts),
                version=facts.get(f"CMAKE_{language}_COMPILER_VERSION"),
                toolkit=toolkit,
                archs=archs,
                cmake=folder.name,
            )
    return Toolchain(toolkit=toolkit, archs=archs)


def _compilers(build: Path, version: str) -> Iterator[tuple[str, dict[str, str]]]:
    for language in _LANGUAGES:
        written = untrusted.read_text(build, f"CMakeFiles/{version}/CMake{language}Compiler.cmake")
        if written is not None:
            yield language, dict(_SET.findall(written))


def _named(language: str, facts: dict[str, str]) -> str:
    """`GNU` and `Clang` as people call them, with the language where it is a device's."""
    known = {"GNU": "gcc", "Clang": "clang", "AppleClang": "clang", "NVIDIA": "nvcc", "MSVC": "msvc"}
    identity = facts.get(f"CMAKE_{language}_COMPILER_ID", "")
    name = known.get(identity, identity or Path(facts.get(f"CMAKE_{language}_COMPILER", "unknown")).name)
    return f"{name} (HIP)" if language == "HIP" else name
