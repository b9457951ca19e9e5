"""Compiles the stand-in runtime and translated kernels into the cache. Every file appears whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from greenlane.emulator.toolchain import NATIVE, Toolchain
from greenlane.errors import EnvironmentMissing

# HIP's major versions, each a library name of its own.
SONAMES = ("libamdhip64.so.6", "libamdhip64.so.7")
SYMBOLS = NATIVE / "hip" / "symbols.txt"
_COMMON = ("-std=c++20", "-fPIC", "-fuse-ld=lld", "-ffp-contract=off", "-fno-math-errno", "-Wno-psabi")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time works in a folder of the cache."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def runtime(toolchain: Toolchain, cache: Path) -> Path:
    """The folder that holds libamdhip64.so.*, built if it is not there yet."""
    folder = cache / "lib"
    if all((folder / name).exists() for name in SONAMES):
        return folder
    with locked(folder):
        if not all((folder / name).exists() for name in SONAMES):
            _build_runtime(toolchain, folder)
    return folder


def _build_runtime(toolchain: Toolchain, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        work = Path(scratch)
        compile_flags = (*_COMMON, "-O1", "-D__HIP_PLATFORM_AMD__", "-c")
        _run(toolchain.clang, *compile_flags, str(NATIVE / "hip" / "all.cpp"), "-o", str(work / "all.o"))
        symbols = symbol_versions(SYMBOLS.read_text())
        (work / "missing.c").write_text(missing_functions(symbols, _defined(toolchain, work / "all.o")))
        (work / "versions.map").write_text(version_map(symbols))
        _run(toolchain.clang, "-x", "c", "-fPIC", "-O1", "-c", str(work / "missing.c"), "-o", str(work / "missing.o"))
        for name in SONAMES:
            objects = (str(work / "all.o"), str(work / "missing.o"))
            link = (f"-Wl,--version-script={work / 'versions.map'}", "-Wl,--undefined-version", f"-Wl,-soname,{name}")
            _run(
                toolchain.clang, "-shared", "-fuse-ld=lld", "-pthread", *objects, *link, "-ldl", "-o", str(work / name)
            )
            (work / name).replace(folder / name)
    newest = folder / "libamdhip64.so"
    newest.unlink(missing_ok=True)
    newest.symlink_to(SONAMES[0])


def symbol_versions(text: str) -> dict[str, str]:
    """`name version` lines: what the vendor's library exports and under which version."""
    return dict(line.split() for line in text.splitlines() if line and not line.startswith("#"))


def version_map(symbols: dict[str, str]) -> str:
    """A linker script; each version inherits the one before."""
    versions = sorted(
        set(symbols.values()), key=lambda name: tuple(int(part) for part in name.removeprefix("hip_").split("."))
    )
    parts = []
    for index, version in enumerate(versions):
        names = " ".join(f"{name};" for name, of in symbols.items() if of == version)
        hidden = " local: *;" if index == 0 else ""
        parts.append(f"{version} {{ global: {names}{hidden} }}{' ' + versions[index - 1] if index else ''};")
    return "\n".join(parts) + "\n"


def missing_functions(symbols: dict[str, str], defined: set[str]) -> str:
    """A function for each name that the runtime lacks: it says so once and returns hipErrorNotSupported."""
    lines = ["extern int greenlane_missing(const char*);"]
    lines += [f'int {name}(void) {{ return greenlane_missing("{name}"); }}' for name in symbols if name not in defined]
    return "\n".join(lines) + "\n"


def _defined(toolchain: Toolchain, path: Path) -> set[str]:
    nm = Path(toolchain.clang).with_name("llvm-nm")
    listing = _run(str(nm), "--defined-only", "--extern-only", "--format=just-symbols", str(path))
    return set(listing.split())


def kernel_flags(lanes: int, *, sanitize: bool) -> tuple[str, ...]:
    return (
        *_COMMON,
        "-O1",  # a quarter less time to compile than -O2, and the vectors are explicit already
        "-fno-vectorize",
        "-fno-slp-vectorize",
        "-march=native",
        "-mprefer-vector-width=512",
        f"-DGREENLANE_LANES={lanes}",
        *(("-DGREENLANE_SANITIZE",) if sanitize else ()),
    )


def precompiled(toolchain: Toolchain, cache: Path, lanes: int, *, sanitize: bool) -> Path:
    """The kernels' headers, compiled once."""
    path = cache / f"kernel-{lanes}{'-sanitize' if sanitize else ''}.pch"
    if not path.exists():
        with locked(cache):
            if not path.exists():
                partial = path.with_suffix(f".{os.getpid()}")
                header = str(NATIVE / "kernel" / "kernel.h")
                _run(
                    toolchain.clang,
                    *kernel_flags(lanes, sanitize=sanitize),
                    "-x",
                    "c++-header",
                    header,
                    "-o",
                    str(partial),
                )
                partial.replace(path)
    return path


def kernel(toolchain: Toolchain, source: str, target: Path, header: Path, lanes: int, *, sanitize: bool) -> None:
    """Compiles one translated kernel to a shared library at `target`; its source stays beside it for the curious."""
    text = target.with_suffix(".cpp")
    text.write_text(source)
    partial = target.with_suffix(f".{os.getpid()}")
    flags = kernel_flags(lanes, sanitize=sanitize)
    includes = ("-I", str(NATIVE / "kernel"), "-include-pch", str(header))
    _run(toolchain.clang, *flags, *includes, "-w", "-shared", str(text), "-lm", "-o", str(partial))
    partial.replace(target)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        raise EnvironmentMissing(f"{Path(command[0]).name} failed: {(lines or ['no message'])[0]}")
    return done.stdout


def cores() -> int:
    return len(os.sched_getaffinity(0))
