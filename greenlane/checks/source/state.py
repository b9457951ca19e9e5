"""What a whole run leaves for the next: where everything stands in one file of pieces, read a piece at a time."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Hashable
from typing import Any, NamedTuple

from greenlane.checks.source.cache import Cache
from greenlane.checks.source.decorations import Decorations
from greenlane.checks.source.files import Unparsed
from greenlane.checks.source.index import SliceKey
from greenlane.checks.source.names import Index

_TREE, _PIECES = "tree", "pieces"


class LaneState(NamedTuple):
    files: dict[str, int]  # Life of each file that the lane reads
    slices: dict[str, int]  # the number of its slice
    included_by: dict[str, tuple[str, ...]]


class State(NamedTuple):
    key: str  # everything that is no source: matrix, code of the checks, scripts and documents, names of the files
    pieces: str  # digest of the file of pieces
    where: dict[Hashable, tuple[int, int]]  # piece -> offset, length
    files: dict[str, tuple[str, str]]  # path -> digest of the content, of the directives
    slices: tuple[SliceKey, ...]
    lanes: dict[str, LaneState]
    names: Index
    unparsed: dict[int, tuple[Unparsed, ...]]
    decorations: Decorations
    defined_names: frozenset[str]
    own_macros: frozenset[str]
    drafts: dict[str, tuple[Any, ...]]  # what was found, by the file whose look led to it


class Pieces:
    """Pickled things in one piece of memory."""

    def __init__(self, data: bytes, where: dict[Hashable, tuple[int, int]]) -> None:
        self._data = data
        self._where = where

    def raw(self, key: Hashable) -> bytes | None:
        place = self._where.get(key)
        return None if place is None else self._data[place[0] : place[0] + place[1]]

    def load(self, key: Hashable) -> Any:
        place = self._where.get(key)
        return None if place is None else pickle.loads(memoryview(self._data)[place[0] : place[0] + place[1]])


class Writer:
    """Collects pieces."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._at = 0
        self.where: dict[Hashable, tuple[int, int]] = {}

    def add(self, key: Hashable, value: Any) -> None:
        self.add_raw(key, pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))

    def add_raw(self, key: Hashable, data: bytes) -> None:
        self.where[key] = (self._at, len(data))
        self._parts.append(data)
        self._at += len(data)

    def data(self) -> bytes:
        return b"".join(self._parts)


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def load(cache: Cache, version: str) -> tuple[State, Pieces] | None:
    """What an earlier run of the same code left, whatever the tree was then."""
    stored = cache.load(_TREE)
    if not isinstance(stored, tuple) or stored[0] != version or not isinstance(stored[1], State):
        return None
    state: State = stored[1]
    data = cache.load_bytes(_PIECES, state.pieces)
    return None if data is None else (state, Pieces(data, state.where))


def store(cache: Cache, version: str, state: State, data: bytes) -> None:
    cache.store_bytes(_PIECES, data)
    cache.store(_TREE, (version, state))
