"""The files of a project: source, build scripts, what can't be read. Links out of the tree are not followed."""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from greenlane.checks.source import directives, text, vendors
from greenlane.checks.source.directives import Structure
from greenlane.checks.source.text import Text

_BUILD_NAMES = {
    "CMakeLists.txt",
    "Makefile",
    "GNUmakefile",
    "meson.build",
    "meson_options.txt",
    "BUILD",
    "BUILD.bazel",
    "SConstruct",
    "setup.py",
    "configure.ac",
}
_BUILD_SUFFIXES = {".cmake", ".mk", ".sh", ".bash", ".in", ".bzl", ".gn", ".gni", ".ps1", ".bat"}
_OTHER_SUFFIXES = {".py", ".md", ".rst", ".yml", ".yaml", ".json", ".toml"}
_PRUNED = {"node_modules", "__pycache__"}
_MARKS_OF_BUILT_FOLDERS = {"CMakeCache.txt", "pyvenv.cfg"}
C_SUFFIXES = vendors.HEADER_SUFFIXES | vendors.SOURCE_SUFFIXES


@dataclass(frozen=True, slots=True)
class Unparsed:
    """What the checks could not take in, and why."""

    file: str
    line: int
    reason: str


@dataclass(eq=False)
class SourceFile:
    path: str  # relative to the root, with slashes
    data: bytes = field(repr=False)
    known_structure: Callable[[], Structure | None] | None = field(default=None, repr=False)

    @cached_property
    def digest(self) -> str:
        return hashlib.blake2b(self.data, digest_size=16).hexdigest()

    @cached_property
    def text(self) -> Text:
        return text.blank(self.data)

    @cached_property
    def problem(self) -> str | None:
        return text.problem(self.data)

    @cached_property
    def structure(self) -> Structure:
        known = self.known_structure() if self.known_structure is not None else None
        return known if known is not None else directives.structure(self.text)

    @cached_property
    def directive_lines(self) -> frozenset[int]:
        return frozenset(line for entry in self.structure.directives for line in range(entry.line, entry.last + 1))

    @cached_property
    def code_lines(self) -> list[str]:
        return self.text.code.split("\n")

    @cached_property
    def kept_lines(self) -> list[str]:
        return self.text.kept.split("\n")

    @cached_property
    def raw_lines(self) -> list[str]:
        return text.decode(self.data).split("\n")

    @property
    def is_header(self) -> bool:
        return Path(self.path).suffix in vendors.HEADER_SUFFIXES


@dataclass
class Files:
    """All files of a tree that the checks look at."""

    root: Path
    sources: dict[str, SourceFile] = field(default_factory=dict)  # C, C++, CUDA, HIP
    others: dict[str, bytes] = field(default_factory=dict)  # build scripts, documents, Python
    problems: list[Unparsed] = field(default_factory=list)

    @cached_property
    def digest(self) -> str:
        whole = hashlib.blake2b(digest_size=16)
        for path in sorted(self.sources):
            whole.update(f"{path}\0{self.sources[path].digest}\0".encode("utf-8", "surrogateescape"))
        whole.update(self.digest_of_others.encode())
        whole.update(repr(self.problems).encode("utf-8", "backslashreplace"))
        return whole.hexdigest()

    @cached_property
    def digest_of_others(self) -> str:
        whole = hashlib.blake2b(digest_size=16)
        for path in sorted(self.others):
            whole.update(
                f"{path}\0".encode("utf-8", "surrogateescape")
                + hashlib.blake2b(self.others[path], digest_size=16).digest()
            )
        return whole.hexdigest()

    @cached_property
    def build_text(self) -> str:
        """Everything that may define a macro from outside of the sources."""
        return "\n".join(data.decode("latin-1") for path, data in sorted(self.others.items()) if is_build_script(path))


def is_build_script(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name in _BUILD_NAMES or posixpath.splitext(name)[1] in _BUILD_SUFFIXES or "Dockerfile" in name


def collect(root: Path, excluded: Callable[[str], bool]) -> Files:
    files = Files(root)
    for path, entry in _walk(root, "", files.problems):
        if excluded(path):
            continue
        suffix = posixpath.splitext(path)[1]
        is_source = suffix in C_SUFFIXES and not path.endswith(".in")
        if not is_source and not (suffix in _OTHER_SUFFIXES or is_build_script(path)):
            continue
        data = _read(root, path, entry, files.problems if is_source else [])
        if data is None:
            continue
        if is_source:
            files.sources[path] = SourceFile(path, data)
        elif len(data) <= text.MAX_BYTES:
            files.others[path] = data
    return files


def _walk(root: Path, below: str, problems: list[Unparsed]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    try:
        entries = sorted(os.scandir(root / below), key=lambda entry: entry.name)
    except OSError as error:
        problems.append(Unparsed(below or ".", 1, f"folder cannot be read: {error.strerror}"))
        return
    if below and any(entry.name in _MARKS_OF_BUILT_FOLDERS for entry in entries):
        return
    for entry in entries:
        path = f"{below}/{entry.name}" if below else entry.name
        if entry.name.startswith(".") or entry.name in _PRUNED:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(root, path, problems)
        elif entry.is_symlink() and _is_folder(entry):
            problems.append(Unparsed(path, 1, "link to a folder, not followed"))
        else:
            yield path, entry


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _read(root: Path, path: str, entry: os.DirEntry[str], problems: list[Unparsed]) -> bytes | None:
    try:
        if entry.is_symlink() and not (root / path).resolve(strict=True).is_relative_to(root.resolve()):
            problems.append(Unparsed(path, 1, "link out of the tree, not followed"))
            return None
        if not stat.S_ISREG(entry.stat().st_mode):
            problems.append(Unparsed(path, 1, "no regular file"))
            return None
        return text.read(root / path)
    except text.Unreadable as error:
        problems.append(Unparsed(path, 1, str(error)))
    except (OSError, RuntimeError) as error:
        problems.append(Unparsed(path, 1, getattr(error, "strerror", None) or "cannot be read"))
    return None
