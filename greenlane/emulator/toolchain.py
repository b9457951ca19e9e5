"""Finds the lane's clang and its tools, and says what compiled code depends on."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from greenlane.errors import EnvironmentMissing

HERE = Path(__file__).parent
NATIVE = HERE / "native"
_FOLDERS = ("/opt/rocm/llvm/bin", "/opt/rocm/lib/llvm/bin")


@dataclass(frozen=True)
class Toolchain:
    """Programs of one LLVM."""

    clang: str
    objdump: str
    symbolizer: str
    version: str


@functools.cache
def find() -> Toolchain:
    """The LLVM that GREENLANE_EMULATOR_LLVM names, else ROCm's, else the newest installed."""
    named = os.environ.get("GREENLANE_EMULATOR_LLVM")
    folders = [named] if named else [*_FOLDERS, *_versioned()]
    for folder in folders:
        if folder and all((Path(folder) / tool).exists() for tool in ("clang++", "llvm-objdump")):
            return _in(Path(folder))
    raise EnvironmentMissing(
        f"no clang++ with llvm-objdump in {named or 'ROCm or /usr/lib/llvm-*'}: "
        "the emulator compiles translated kernels with the toolchain of the ROCm lane; run it in that lane's image"
    )


def _versioned() -> list[str]:
    found = sorted(Path("/usr/lib").glob("llvm-*/bin"), key=lambda path: path.parent.name.rpartition("-")[2].zfill(4))
    return [str(path) for path in reversed(found)]


def _in(folder: Path) -> Toolchain:
    clang = str(folder / "clang++")
    try:
        version = subprocess.run([clang, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[
            0
        ]
    except (OSError, subprocess.CalledProcessError, IndexError):
        raise EnvironmentMissing(f"{clang} does not run") from None
    symbolizer = folder / "llvm-symbolizer"
    found = str(symbolizer) if symbolizer.exists() else shutil.which("llvm-symbolizer") or ""
    return Toolchain(clang, str(folder / "llvm-objdump"), found, version)


def lanes(arch: str) -> int:
    """Threads of a wave: 64 on CDNA, 32 on RDNA."""
    return 64 if arch.startswith("gfx9") else 32


@functools.cache
def sources_digest() -> str:
    """Changes with every file of the emulator, Python or C++."""
    digest = hashlib.sha256()
    for path in sorted(HERE.rglob("*")):
        if path.suffix in (".py", ".h", ".cpp", ".txt"):
            digest.update(path.relative_to(HERE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def cache_key(toolchain: Toolchain) -> str:
    """What compiled kernels depend on beside the code object: these sources, the compiler, this machine's processor."""
    machine = _processor()
    return hashlib.sha256("\n".join((sources_digest(), toolchain.version, machine)).encode()).hexdigest()[:16]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    wanted = ("flags", "Features", "model name")
    return "\n".join(sorted({line for line in lines if line.startswith(wanted)}))
