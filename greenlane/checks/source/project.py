"""A project under all lanes at once: what every rule is given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from greenlane.checks.source import index, macros
from greenlane.checks.source.cache import Cache, code_version
from greenlane.checks.source.decorations import Decorations
from greenlane.checks.source.directives import Define, parse_define
from greenlane.checks.source.facts import Facts, Function
from greenlane.checks.source.files import Files, SourceFile, Unparsed
from greenlane.checks.source.index import SliceKey
from greenlane.checks.source.scope import Scopes
from greenlane.checks.source.slices import Life
from greenlane.checks.source.view import LaneView
from greenlane.checks.source.worlds import Worlds, atoms, macro, parse_formula
from greenlane.matrix.checks import ChecksConfig
from greenlane.matrix.model import Lane, Matrix

_ANY_NUMBER = 10**6
_DEFINED = re.compile(rb"#[ \t]*define[ \t]+([A-Za-z_]\w*)")


class Project:
    def __init__(self, matrix: Matrix, files: Files, config: ChecksConfig, cache: Cache) -> None:
        self.matrix = matrix
        self.files = files
        self.config = config
        self.sources: Mapping[str, SourceFile] = files.sources
        self.worlds = Worlds(matrix.constraints)
        self.universe = macros.universe(
            matrix.lanes, (frozenset(map(macro, atoms(parse_formula(text)))) for text in matrix.constraints)
        )
        self.views = tuple(LaneView(lane, files.sources, self.universe) for lane in matrix.lanes)
        self._cache = cache
        self._know_structures()
        self._facts: dict[SliceKey, Facts] = {}

    @property
    def root(self) -> Path:
        return self.files.root

    @property
    def lanes(self) -> Sequence[Lane]:
        return self.matrix.lanes

    def view(self, lane_id: str) -> LaneView:
        return next(view for view in self.views if view.id == lane_id)

    def _know_structures(self) -> None:
        """Take the directives of unchanged files from the cache."""
        stored = self._cache.load("structures")
        if isinstance(stored, tuple) and stored[0] == code_version():
            for file in self.sources.values():
                file.known_structure = stored[1].get(file.digest)

    def _remember_structures(self) -> None:
        if any(self.sources[path].known_structure is None for path in self.read_files):
            found = {self.sources[path].digest: self.sources[path].structure for path in self.read_files}
            self._cache.store("structures", (code_version(), found))

    def load_facts(self) -> None:
        """Parse, or take from the cache, every slice that some lane reads."""
        wanted = {self._key(view, path): path for view in self.views for path in view.reached()}
        name = "facts"
        stored = self._cache.load(name)
        version = (code_version(), self.decorations.names)
        known: dict[SliceKey, Facts] = stored[1] if isinstance(stored, tuple) and stored[0] == version else {}
        jobs = {
            key: index.job(self.sources[path], key[2], self.decorations)
            for key, path in wanted.items()
            if key not in known
        }
        fresh = index.run_all(jobs)
        self._facts = {key: fresh[key] if key in fresh else known[key] for key in wanted}
        if fresh or len(known) > 2 * len(wanted):
            self._cache.store(name, (version, self._facts))
        self._remember_structures()

    @cached_property
    def decorations(self) -> Decorations:
        return Decorations(file.data for file in self.sources.values())

    def _key(self, view: LaneView, path: str) -> SliceKey:
        return (path, self.sources[path].digest, view.slice(path).arms)

    def facts(self, view: LaneView, path: str) -> Facts:
        """What a lane sees in a file."""
        known = self._lane_facts[view.id].get(path)
        if known is None:
            key = self._key(view, path)
            known = self._facts.get(key) or index.run(index.job(self.sources[path], key[2], self.decorations))
            self._lane_facts[view.id][path] = known
        return known

    @cached_property
    def _lane_facts(self) -> dict[str, dict[str, Facts]]:
        return {view.id: {} for view in self.views}

    def in_scope(self) -> Iterator[tuple[str, tuple[LaneView, ...]]]:
        """Every source file that some lane reads, with these lanes."""
        for path in self.read_files:
            yield path, tuple(view for view in self.views if path in self.lane_files[view.id])

    @cached_property
    def lane_files(self) -> dict[str, dict[str, Life]]:
        return {view.id: view.reached() for view in self.views}

    def unparsed(self) -> Iterator[Unparsed]:
        """Files and regions that were not understood; names in them count as uses."""
        seen: set[tuple[str, int]] = set()
        for key, facts in self._facts.items():
            if facts.problem is not None and (key[0], 1) not in seen:
                seen.add((key[0], 1))
                yield Unparsed(key[0], 1, facts.problem)
            for first, _ in facts.errors:
                if (key[0], first) not in seen:
                    seen.add((key[0], first))
                    yield Unparsed(key[0], first, "not understood by the grammar")

    @cached_property
    def defines(self) -> dict[str, list[tuple[str, Define]]]:
        """Every #define of the files that some lane reads, whatever the lane."""
        found: dict[str, list[tuple[str, Define]]] = {}
        for path in self.read_files:
            for directive in self.sources[path].structure.directives:
                if directive.kind == "define":
                    define = parse_define(directive)
                    if define is not None:
                        found.setdefault(define.name, []).append((path, define))
        return found

    @cached_property
    def read_files(self) -> tuple[str, ...]:
        """Every file that some lane reads."""
        return tuple(sorted({path for files in self.lane_files.values() for path in files}))

    @cached_property
    def defined_names(self) -> frozenset[str]:
        """Macros that any file of the tree defines, read by a lane or not."""
        found: set[bytes] = set()
        for file in self.sources.values():
            found.update(_DEFINED.findall(file.data))
        return frozenset(name.decode() for name in found)

    def is_judged(self, view: LaneView, path: str, line: int) -> bool:
        """Whether the lane surely compiles a line and the grammar understood it."""
        facts = self.facts(view, path)
        if facts.problem is not None or self.lane_files[view.id].get(path) != Life.LIVE:
            return False
        return view.life(path, line) == Life.LIVE and not any(first <= line <= last for first, last in facts.errors)

    def functions(self, view: LaneView) -> dict[str, list[tuple[str, Function]]]:
        """By name: every function that a file of the lane declares, uncertain ones included."""
        if view.id not in self._functions:
            found: dict[str, list[tuple[str, Function]]] = {}
            for path in self.lane_files[view.id]:
                for function in self.facts(view, path).functions:
                    found.setdefault(function.name, []).append((path, self._with_open_end(function)))
            self._functions[view.id] = found
        return self._functions[view.id]

    @cached_property
    def _functions(self) -> dict[str, dict[str, list[tuple[str, Function]]]]:
        return {}

    def _with_open_end(self, function: Function) -> Function:
        """A macro in a parameter list stands for any number of parameters."""
        if any(not param.name and param.type in self.defined_names for param in function.params):
            return function._replace(params=(), variadic=True)
        return function

    def named_functions(self, view: LaneView) -> dict[tuple[str, str], list[tuple[str, Function]]]:
        """The functions of a lane by scope and name."""
        if view.id not in self._named:
            found: dict[tuple[str, str], list[tuple[str, Function]]] = {}
            for entries in self.functions(view).values():
                for entry in entries:
                    found.setdefault((entry[1].scope, entry[1].name), []).append(entry)
            self._named[view.id] = found
        return self._named[view.id]

    @cached_property
    def _named(self) -> dict[str, dict[tuple[str, str], list[tuple[str, Function]]]]:
        return {}

    def arities(self, view: LaneView) -> dict[str, tuple[int, int]]:
        """By name: the numbers of arguments that every function of that name takes."""
        if view.id not in self._arities:
            self._arities[view.id] = {
                name: (
                    max(function.least for _, function in entries),
                    min(_ANY_NUMBER if function.variadic else len(function.params) for _, function in entries),
                )
                for name, entries in self.functions(view).items()
            }
        return self._arities[view.id]

    @cached_property
    def _arities(self) -> dict[str, dict[str, tuple[int, int]]]:
        return {}

    def macro_names(self, view: LaneView) -> dict[str, list[tuple[str, Define, int]]]:
        """By name: every macro that a file of the lane defines, with its Life."""
        if view.id not in self._macros:
            found: dict[str, list[tuple[str, Define, int]]] = {}
            for path in self.lane_files[view.id]:
                for define, life in view.slice(path).defines:
                    found.setdefault(define.name, []).append((path, define, life))
            self._macros[view.id] = found
        return self._macros[view.id]

    @cached_property
    def _macros(self) -> dict[str, dict[str, list[tuple[str, Define, int]]]]:
        return {}

    def scopes(self, view: LaneView) -> Scopes:
        if view.id not in self._scopes:
            files = self.lane_files[view.id]
            self._scopes[view.id] = Scopes(
                view, files, {path: self.facts(view, path) for path in files}, self.functions(view)
            )
        return self._scopes[view.id]

    @cached_property
    def _scopes(self) -> dict[str, Scopes]:
        return {}

    def units_reaching(self, view: LaneView, path: str) -> Iterable[str]:
        return self._reaching(view).get(path, ())

    def _reaching(self, view: LaneView) -> dict[str, list[str]]:
        if view.id not in self._reached_by:
            found: dict[str, list[str]] = {}
            for unit in view.units:
                for path in view.reach(unit):
                    found.setdefault(path, []).append(unit)
            self._reached_by[view.id] = found
        return self._reached_by[view.id]

    @cached_property
    def _reached_by(self) -> dict[str, dict[str, list[str]]]:
        return {}
