"""What a project's files say about its backends: CMake options, macros, mirror folders, how it builds."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from greenlane.matrix.includes import is_source
from greenlane.matrix.targets import targets

MAX_FILES = 20_000
MAX_BYTES = 1024 * 1024  # of one file
SKIPPED = frozenset({".git", ".greenlane", ".nox", "node_modules", "build", "_deps", "__pycache__", ".venv", "venv"})
WORDS = {"cuda": ("CUDA", "CUBLAS"), "rocm": ("HIP", "ROCM", "HIPBLAS")}
FOLDERS = {"cuda": ("cuda",), "rocm": ("rocm", "hip")}

_OPTION = re.compile(
    r"""^\s*(?:option|cmake_dependent_option|[a-z_]*option[a-z_]*)\s*\(\s*"?(\w+)"?""", re.MULTILINE | re.IGNORECASE
)
_GUARD = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b(.*)$", re.MULTILINE)
_ENVIRONMENT = re.compile(r"""(?:environ(?:\.get)?\s*[(\[]|getenv\s*\()\s*['"](\w+)['"]""")
_ARCH = re.compile(r"\b(gfx\d+[a-f]?|sm_\d+[af]?)\b")
_NOT_A_SWITCH = re.compile(r"_H_*$|_HPP_*$|_CUH_*$|VERSION|INCLUDED|^__CUDA_ARCH__|^__CUDACC|^__HIP")


@dataclass(frozen=True, slots=True)
class Backend:
    """One backend that the project seems to have."""

    name: str  # "cpu", "cuda", "rocm"
    option: str | None = None  # CMake option, or environment variable of setup.py, that turns it on
    macro: str | None = None
    archs: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()  # globs of files that are this backend's alone
    dockerfile: str | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found."""

    build: str  # "cmake", "python", "make", "headers", "unknown"
    backends: tuple[Backend, ...]
    sources: tuple[str, ...]  # globs of folders with sources
    include_dirs: tuple[str, ...]
    mirrors: tuple[tuple[str, str], ...]
    headers: tuple[str, ...]
    ctest: bool


def survey(root: Path) -> Survey:
    """Looks at a project's folder; reads text only, runs nothing."""
    files = sorted(_files(root))
    cmake = _texts(root, [f for f in files if f.endswith((".cmake", "CMakeLists.txt"))])
    python = _texts(root, [f for f in files if f in ("setup.py", "pyproject.toml")])
    code = [f for f in files if is_source(f)]
    guards = _guards(root, code)
    options = [*_OPTION.findall(cmake), *_ENVIRONMENT.findall(python)]
    gpu = [_backend(name, options, guards, code, files, cmake) for name in WORDS]
    headers = tuple(f for f in code if f.endswith((".h", ".hpp", ".hh", ".cuh")))
    return Survey(
        build=_build(files, python, code, headers),
        backends=(Backend("cpu", dockerfile=_dockerfile("cpu", files)), *(one for one in gpu if one is not None)),
        sources=tuple(f"{top}/**" if top else "*.c*" for top in sorted({_top(f) for f in code})),
        include_dirs=tuple(name for name in ("include", "src") if any(f.startswith(f"{name}/") for f in code)),
        mirrors=tuple(_mirrors(code)),
        headers=headers,
        ctest=bool(re.search(r"\b(enable_testing|add_test)\s*\(|include\s*\(\s*CTest", cmake, re.IGNORECASE)),
    )


def _files(root: Path) -> Iterator[str]:
    """Paths below the root, without links and what tools make; at most `MAX_FILES`."""
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("build"))
        for name in names:
            path = Path(folder, name)
            if path.is_symlink() or not path.is_file() or not _writable(name):
                continue
            count += 1
            if count > MAX_FILES:
                return
            yield path.relative_to(root).as_posix()


def _writable(name: str) -> bool:
    """Whether a name can stand in a matrix as it is."""
    return name.isprintable() and not {*name} & {*"{}*?\"'\\"}


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _texts(root: Path, files: Sequence[str]) -> str:
    return "\n".join(_text(root / file) for file in files[:500])


def _guards(root: Path, code: Sequence[str]) -> Counter[str]:
    """How often each word stands in a preprocessor condition."""
    found: Counter[str] = Counter()
    for file in code[:2000]:
        for condition in _GUARD.findall(_text(root / file)):
            found.update(re.findall(r"[A-Za-z_]\w*", condition))
    return found


def _backend(
    name: str, options: Sequence[str], guards: Counter[str], code: Sequence[str], files: Sequence[str], cmake: str
) -> Backend | None:
    option = _shortest([one for one in options if _speaks_of(one, name)])
    macros = [one for one in guards if _speaks_of(one, name) and not _NOT_A_SWITCH.search(one)]
    macro = max(macros, key=lambda one: (guards[one], -len(one)), default=None)
    folders = sorted({_folder(f, name) for f in code} - {""})
    suffix = {"cuda": (".cu", ".cuh"), "rocm": (".hip",)}[name]
    if not (option or macro or folders or any(f.endswith(suffix) for f in code)):
        return None
    own = (
        *(f"{folder}/**" for folder in folders),
        *(f"**/*{end}" for end in suffix if any(f.endswith(end) for f in code)),
    )
    return Backend(name, option, macro, _archs(name, cmake), tuple(dict.fromkeys(own)), _dockerfile(name, files))


def _speaks_of(word: str, name: str) -> bool:
    return bool({*word.upper().split("_")} & {*WORDS[name]})


def _shortest(words: Sequence[str]) -> str | None:
    return min(words, key=lambda word: (len(word.split("_")), len(word), word), default=None)


def _archs(name: str, cmake: str) -> tuple[str, ...]:
    """One architecture to begin with: the first known one that the build names."""
    start, default = ("gfx", "gfx1100") if name == "rocm" else ("sm_", "sm_90")
    named = [arch for arch in _ARCH.findall(cmake) if arch.startswith(start) and arch in targets()]
    return (default,) if default in named or not named else (named[-1],)


def _folder(file: str, name: str) -> str:
    """The outermost folder of the file that is named after the backend."""
    parts = PurePosixPath(file).parts[:-1]
    for index, part in enumerate(parts):
        if any(word in re.split(r"[-_.]", part.lower()) for word in FOLDERS[name]):
            return "/".join(parts[: index + 1])
    return ""


def _mirrors(code: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Folders that differ in the vendor's name alone and hold headers of the same names."""
    headers: dict[str, set[str]] = {}
    for file in code:
        if file.endswith((".h", ".hpp", ".cuh")):
            path = PurePosixPath(file)
            headers.setdefault(str(path.parent), set()).add(path.name)
    for folder, names in sorted(headers.items()):
        for word in FOLDERS["rocm"]:
            twin = re.sub(r"(^|/)cuda(?=/|$)", rf"\g<1>{word}", folder)
            if twin != folder and names & headers.get(twin, set()):
                yield f"{folder}/*.h", f"{twin}/*.h"


def _dockerfile(name: str, files: Sequence[str]) -> str | None:
    words = {"cpu": ("cpu",), **FOLDERS}[name]
    for file in files:
        base = PurePosixPath(file).name.lower()
        if "dockerfile" in base and any(word in re.split(r"[-_.]", base) for word in words):
            return file
    return None


def _build(files: Sequence[str], python: str, code: Sequence[str], headers: Sequence[str]) -> str:
    extension = "setup.py" in files and re.search(r"Extension|cmake", python, re.IGNORECASE)
    if extension or "scikit_build_core" in python:
        return "python"
    if "CMakeLists.txt" in files:
        return "cmake"
    if "Makefile" in files:
        return "make"
    return "headers" if code and len(headers) == len(code) else "unknown"


def _top(file: str) -> str:
    parts = PurePosixPath(file).parts
    return parts[0] if len(parts) > 1 else ""
