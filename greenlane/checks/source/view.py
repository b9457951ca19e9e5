"""A project as one lane sees it: its units, its slices, what each unit reaches and through which chain."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from greenlane.checks.source import vendors
from greenlane.checks.source.directives import Include
from greenlane.checks.source.files import SourceFile
from greenlane.checks.source.includes import Resolver, is_standard
from greenlane.checks.source.macros import Environment, LaneMacros, State
from greenlane.checks.source.slices import Life, LineLife, Slice, cut
from greenlane.matrix.globs import first_match
from greenlane.matrix.model import Lane

_DEPTH = 60  # of nested includes; what lies deeper is not known


class Edge(NamedTuple):
    include: Include
    life: int
    path: str | None  # None: outside of the project


Cut = tuple[Slice, tuple[Edge, ...]]


class LaneView:
    """Slices and includes of a lane; a file is cut when it is first asked for."""

    def __init__(
        self,
        lane: Lane,
        files: Mapping[str, SourceFile],
        universe: frozenset[str],
        known: Callable[[str, str], Cut | None] = lambda lane, path: None,
        own_macros: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self._known = known
        self._own_macros = own_macros  # that nothing but the sources can define
        self.lane = lane
        self.id = lane.id
        self.allowed = frozenset(lane.vendors)
        self.files = files
        self.resolver = Resolver(files, lane.include_dirs, lane.vendors)
        self.macros = LaneMacros(lane, universe)
        self.units = tuple(sorted(path for path in files if self._compiles(path)))
        self.unit_set = frozenset(self.units)
        self._slices: dict[str, Slice] = {}
        self._edges: dict[str, tuple[Edge, ...]] = {}
        self._busy: set[str] = set()
        self._lines: dict[str, LineLife] = {}
        self._reach: dict[str, dict[str, Life]] = {}

    def _compiles(self, path: str) -> bool:
        suffix = posixpath.splitext(path)[1]
        if suffix not in vendors.SOURCE_SUFFIXES:
            return False
        if self.lane.sources:
            return first_match(self.lane.sources, path) is not None
        needs = vendors.GPU_SUFFIXES.get(suffix)
        owner = vendors.of_path(path)
        return (needs is None or bool(needs & self.allowed)) and (owner is None or owner in self.allowed)

    def slice(self, path: str) -> Slice:
        if path not in self._slices:
            known = self._known(self.id, path)
            if known is not None:
                self._slices[path], self._edges[path] = known
            else:
                self._slices[path] = self._cut(path)
        return self._slices[path]

    def _cut(self, path: str) -> Slice:
        self._busy.add(path)
        edges: list[Edge] = []

        def exports_of(include: Include, certain: bool) -> dict[str, State]:
            target = self.resolver.resolve(path, include)
            edges.append(Edge(include, Life.LIVE if certain else Life.UNSURE, target))
            if target is None or target in self._busy or len(self._busy) > _DEPTH:
                return {}
            return self.slice(target).exports

        try:
            off = self._own_macros() if path in self.unit_set else frozenset[str]()
            found = cut(self.files[path].structure, Environment(self.macros, path.endswith(".c"), off), exports_of)
        finally:
            self._busy.discard(path)
        self._edges[path] = tuple(edges)
        return found

    def edges(self, path: str) -> tuple[Edge, ...]:
        self.slice(path)
        return self._edges[path]

    def life(self, path: str, line: int) -> int:
        return self.line_life(path).of(line)

    def line_life(self, path: str) -> LineLife:
        if path not in self._lines:
            self._lines[path] = LineLife(self.files[path].structure, self.slice(path).arms)
        return self._lines[path]

    def reach(self, unit: str) -> dict[str, Life]:
        """Files that a unit reads, itself included; UNSURE where only an undecided condition leads there."""
        if unit not in self._reach:
            reached = {unit: Life.LIVE}
            waiting = [unit]
            while waiting:
                path = waiting.pop()
                for edge in self.edges(path):
                    if edge.path is None:
                        continue
                    life = Life.LIVE if edge.life == Life.LIVE and reached[path] == Life.LIVE else Life.UNSURE
                    if reached.get(edge.path, Life.DEAD) == Life.DEAD or (
                        life == Life.LIVE and reached[edge.path] == Life.UNSURE
                    ):
                        reached[edge.path] = life
                        waiting.append(edge.path)
            self._reach[unit] = reached
        return self._reach[unit]

    def reached(self) -> dict[str, Life]:
        """All files that some unit of the lane reads."""
        whole: dict[str, Life] = {}
        for unit in self.units:
            for path, life in self.reach(unit).items():
                if life == Life.LIVE or path not in whole:
                    whole[path] = life
        return whole

    def externals(self, paths: Iterable[str]) -> frozenset[str]:
        """Headers from outside of the project that these files may include."""
        return frozenset(edge.include.target for path in paths for edge in self.edges(path) if edge.path is None)

    def is_closed(self, paths: Iterable[str]) -> bool:
        """Whether everything that these files include is in the project or in the language's own library."""
        return all(is_standard(target) for target in self.externals(paths))
