"""The include graph as far as text shows it: every branch is taken, and what is uncertain includes too much."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

SUFFIXES = frozenset(
    ".c .cc .cpp .cxx .c++ .cu .cuh .hip .h .hh .hpp .hxx .h++ .inc .inl .ipp .tpp .def .m .mm .metal .cl".split()
)
MAX_BYTES = 8 * 1024 * 1024  # of one file; a larger one is taken to include anything
_INCLUDE = re.compile(
    rb'^[ \t]*#[ \t]*(?:include|include_next|import)\b[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>|(\S))', re.MULTILINE
)
_SPLICE = re.compile(rb"\\\r?\n")

Closure = tuple[frozenset[str], frozenset[str], str | None]


def is_source(path: str) -> bool:
    """Whether a file is one that a C, C++, CUDA or HIP compiler reads."""
    return posixpath.splitext(path)[1].lower() in SUFFIXES


class IncludeGraph:
    """Which files of a tree a set of files includes, directly or not."""

    def __init__(self, root: Path, files: Iterable[str]) -> None:
        self.root = root
        self.files = frozenset(files)
        self._by_name: dict[str, list[str]] = defaultdict(list)
        for path in self.files:
            self._by_name[posixpath.basename(path)].append(path)
        self._scanned: dict[str, tuple[tuple[str, ...], bool]] = {}

    def closure(self, sources: Iterable[str], include_dirs: Sequence[str]) -> Closure:
        """What the sources reach; the names they include that no file has; a file that includes a computed name."""
        reached, missing = set(sources), set[str]()
        computed: str | None = None
        waiting = list(reached)
        while waiting:
            path = waiting.pop()
            names, any_computed = self._scan(path)
            computed = computed or (path if any_computed else None)
            for name in names:
                found = self._resolve(path, name, include_dirs)
                if not found:
                    missing.add(name)
                waiting.extend(found - reached)
                reached |= found
        return frozenset(reached), frozenset(missing), computed

    def _resolve(self, path: str, name: str, include_dirs: Sequence[str]) -> set[str]:
        for folder in (posixpath.dirname(path), *include_dirs):
            candidate = posixpath.normpath(posixpath.join(folder, name))
            if candidate in self.files:
                return {candidate}
        # A directory that the matrix doesn't know may hold it: any file that ends so.
        tail = posixpath.normpath(name).lstrip("./")
        return {file for file in self._by_name.get(posixpath.basename(name), ()) if ("/" + file).endswith("/" + tail)}

    def _scan(self, path: str) -> tuple[tuple[str, ...], bool]:
        if path not in self._scanned:
            self._scanned[path] = self._read(self.root / path)
        return self._scanned[path]

    def _read(self, path: Path) -> tuple[tuple[str, ...], bool]:
        try:
            with path.open("rb") as stream:
                text = stream.read(MAX_BYTES + 1)
        except OSError:
            return (), True
        if len(text) > MAX_BYTES:
            return (), True
        found = _INCLUDE.findall(_SPLICE.sub(b"", text))
        names = tuple((quoted or angled).decode("utf-8", "replace") for quoted, angled, other in found if not other)
        return names, any(other for _, _, other in found)
