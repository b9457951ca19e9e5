"""What an earlier run of the checks left, and how much of it still stands."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property, partial

from greenlane.checks.source import state
from greenlane.checks.source.cache import Cache, code_version
from greenlane.checks.source.facts import Facts
from greenlane.checks.source.files import Files, SourceFile
from greenlane.checks.source.index import SliceKey
from greenlane.checks.source.state import Pieces, State
from greenlane.checks.source.view import Cut


class Memory:
    """`changed` names the files that differ from the earlier run, if all else and their directives are the same."""

    def __init__(self, cache: Cache, files: Files, about: Iterable[str]) -> None:
        self._cache = cache
        self._sources: Mapping[str, SourceFile] = files.sources
        self.version = code_version()
        self.key = state.digest(
            "\0".join([*about, repr(files.problems), files.digest_of_others, *sorted(files.sources)]).encode(
                "utf-8", "backslashreplace"
            )
        )
        self.base: State | None = None
        self.changed: frozenset[str] | None = None
        self._pieces = Pieces(b"", {})
        self._facts: dict[int, Facts] = {}
        found = state.load(cache, self.version)
        if found is not None:
            self.base, self._pieces = found
            self._compare()

    def _compare(self) -> None:
        assert self.base is not None
        changed = set()
        for path, file in self._sources.items():
            known = self.base.files.get(path)
            if known is not None and known[0] == file.digest:
                file.known_structure = partial(self._pieces.load, ("structure", path))
            else:
                changed.add(path)
        if self.base.key == self.key and all(self._has_same_directives(path) for path in changed):
            self.changed = frozenset(changed)

    def _has_same_directives(self, path: str) -> bool:
        assert self.base is not None
        file = self._sources[path]
        return file.problem is None and self.base.files[path][1] == directives_digest(file)

    def forget(self) -> None:
        """What changed reaches too far: only what is known by content still stands."""
        self.changed = None

    def cut(self, lane: str, path: str) -> Cut | None:
        if self.changed is None or path in self.changed:
            return None
        found: Cut | None = self._pieces.load(("cut", lane, path))
        return found

    def facts(self, number: int) -> Facts:
        """Of a slice of the earlier run."""
        if number not in self._facts:
            self._facts[number] = self._pieces.load(("facts", number))
        return self._facts[number]

    def raw_facts(self, key: SliceKey) -> bytes | None:
        number = self.numbers.get(key)
        return None if number is None else self._pieces.raw(("facts", number))

    @cached_property
    def numbers(self) -> dict[SliceKey, int]:
        """The slices of the earlier run by content."""
        return {} if self.base is None else {key: number for number, key in enumerate(self.base.slices)}

    def store(self, whole: State, data: bytes) -> None:
        state.store(self._cache, self.version, whole, data)


def directives_digest(file: SourceFile) -> str:
    """Of all that a file is sliced by, wherever it stands."""
    whole = hashlib.blake2b(digest_size=8)
    for directive in file.structure.directives:
        whole.update(f"{directive.kind}\0{directive.argument}\n".encode("utf-8", "backslashreplace"))
    return whole.hexdigest()
