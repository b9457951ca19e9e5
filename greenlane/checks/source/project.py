"""A project under all lanes at once: what every rule is given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

from greenlane.checks.source import index, macros, names
from greenlane.checks.source.cache import Cache
from greenlane.checks.source.decorations import Decorations
from greenlane.checks.source.directives import Define, parse_define
from greenlane.checks.source.facts import Callable as FunctionType
from greenlane.checks.source.facts import Class, Facts, Function
from greenlane.checks.source.files import Files, SourceFile, Unparsed
from greenlane.checks.source.index import SliceKey
from greenlane.checks.source.memory import Memory, directives_digest
from greenlane.checks.source.names import Index, LaneNames, Lazy
from greenlane.checks.source.scope import Scopes
from greenlane.checks.source.slices import Life, tested
from greenlane.checks.source.state import LaneState, State, Writer, digest
from greenlane.checks.source.view import LaneView
from greenlane.checks.source.worlds import Worlds, atoms, macro, parse_formula
from greenlane.matrix.checks import ChecksConfig
from greenlane.matrix.model import Lane, Matrix

_ANY_NUMBER = 10**6
_READ_OF_A_LANE = (
    "id", "row", "arch", "archs", "compiler", "compiler_version", "toolkit", "wavefront", "vendors", "macros",
    "sources", "include_dirs", "defines", "env",
)  # fmt: skip
_DEFINED = re.compile(rb"#[ \t]*define[ \t]+([A-Za-z_]\w*)")
Made = TypeVar("Made")


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
        self.memory = Memory(cache, files, about(matrix))
        self._begin()

    def _begin(self) -> None:
        """Nothing is known of any lane yet."""
        lanes = self.matrix.lanes
        self.views = tuple(
            LaneView(lane, self.sources, self.universe, self.memory.cut, lambda: self.own_macros) for lane in lanes
        )
        self._once: dict[tuple[str, str], Any] = {}
        self._facts: dict[SliceKey, Facts] = {}
        self._lane_facts: dict[str, dict[str, Facts]] = {view.id: {} for view in self.views}
        self._slices: list[SliceKey] = []
        self._lane_slices: dict[str, dict[str, int]] = {}
        self._parsed: frozenset[SliceKey] = frozenset()  # in this run
        self._index: Index = {}

    def begin_anew(self) -> None:
        """Without what an earlier run found; slices that are the same are still not parsed again."""
        self.memory.forget()
        for name in (
            "lane_files",
            "read_files",
            "decorations",
            "defined_names",
            "own_macros",
            "defines",
        ):
            self.__dict__.pop(name, None)
        self._begin()

    @property
    def root(self) -> Path:
        return self.files.root

    @property
    def lanes(self) -> Sequence[Lane]:
        return self.matrix.lanes

    @property
    def base(self) -> State | None:
        """The earlier run that stands but for the files that changed."""
        return self.memory.base if self.memory.changed is not None else None

    def view(self, lane_id: str) -> LaneView:
        return next(view for view in self.views if view.id == lane_id)

    def views_of(self, path: str) -> tuple[LaneView, ...]:
        """The lanes that read a file."""
        return tuple(view for view in self.views if path in self.lane_files[view.id])

    def once(self, what: str, view: LaneView, make: Callable[[LaneView], Made]) -> Made:
        """Something of a lane that a rule works out once."""
        key = (what, view.id)
        if key not in self._once:
            self._once[key] = make(view)
        return cast(Made, self._once[key])

    # Slices and facts.

    def load_facts(self, shared: dict[SliceKey, Facts] | None = None) -> None:
        """Parse, or know from earlier, every slice that some lane reads, and index what is in it.

        `shared` holds facts that another project of the same process knows already; it is added to.
        """
        if self.base is not None:
            self._take_over(self.base)
            return
        wanted = {self._slice_key(view, path): (view, path) for view in self.views for path in self.lane_files[view.id]}
        known = self.memory.base is not None and self.memory.base.decorations.names == self.decorations.names
        missing = {
            key: index.job(self.sources[path], key[2], self.decorations)
            for key, (_, path) in wanted.items()
            if not (known and key in self.memory.numbers) and key not in (shared or {})
        }
        fresh = index.run_all(missing)
        self._parsed = frozenset(fresh)
        if shared is not None:
            shared.update(fresh)
            fresh = shared
        for number, (key, (view, path)) in enumerate(wanted.items()):
            self._facts[key] = fresh[key] if key in fresh else self.memory.facts(self.memory.numbers[key])
            self._slices.append(key)
            names.extend(self._index, number, names.named(self._facts[key], view.slice(path).defines))
        numbers = {key: number for number, key in enumerate(self._slices)}
        self._lane_slices = {
            view.id: {path: numbers[self._slice_key(view, path)] for path in self.lane_files[view.id]}
            for view in self.views
        }

    def _take_over(self, base: State) -> None:
        """All slices of the earlier run but those of the files that changed."""
        self._slices = list(base.slices)
        self._index = base.names
        self._lane_slices = {view.id: dict(base.lanes[view.id].slices) for view in self.views}
        for path in sorted(self.memory.changed or ()):
            for view in self.views_of(path):
                key = self._slice_key(view, path)
                if key not in self._facts:
                    self._facts[key] = index.run(index.job(self.sources[path], key[2], self.decorations))
                    names.extend(
                        self._index, len(self._slices), names.named(self._facts[key], view.slice(path).defines)
                    )
                    self._slices.append(key)
                self._lane_slices[view.id][path] = self._slices.index(key, len(base.slices))

    def _slice_key(self, view: LaneView, path: str) -> SliceKey:
        return (path, self.sources[path].digest, view.slice(path).arms)

    def facts(self, view: LaneView, path: str) -> Facts:
        """What a lane sees in a file."""
        known = self._lane_facts[view.id].get(path)
        if known is None:
            known = self._lane_facts[view.id][path] = self._find_facts(view, path)
        return known

    def _find_facts(self, view: LaneView, path: str) -> Facts:
        number = self._lane_slices.get(view.id, {}).get(path)
        if number is None:  # no unit of the lane reads it
            key = self._slice_key(view, path)
            return self._facts.get(key) or index.run(index.job(self.sources[path], key[2], self.decorations))
        key = self._slices[number]
        return self._facts[key] if key in self._facts else self.memory.facts(number)

    def old_facts(self, view: LaneView, path: str) -> Facts | None:
        """What the earlier run saw in a file."""
        number = self.base.lanes[view.id].slices.get(path) if self.base is not None else None
        return None if number is None else self.memory.facts(number)

    def keep(self, drafts: dict[str, tuple[Any, ...]]) -> None:
        """Leave everything for the next run."""
        pieces = Writer()
        unparsed: dict[int, tuple[Unparsed, ...]] = {}
        for number, key in enumerate(self._slices):
            raw = self.memory.raw_facts(key) if key not in self._parsed else None
            if raw is not None:
                pieces.add_raw(("facts", number), raw)
            else:
                pieces.add(("facts", number), self._facts[key])
            unparsed[number] = tuple(_unparsed(key[0], self._facts[key]))
        for path in self.read_files:
            pieces.add(("structure", path), self.sources[path].structure)
        for view in self.views:
            for path in self.lane_files[view.id]:
                pieces.add(("cut", view.id, path), (view.slice(path), view.edges(path)))
        data = pieces.data()
        self.memory.store(
            State(
                self.memory.key,
                digest(data),
                pieces.where,
                {path: (file.digest, directives_digest(file)) for path, file in self.sources.items()},
                tuple(self._slices),
                {view.id: self._lane_state(view) for view in self.views},
                self._index,
                {number: entries for number, entries in unparsed.items() if entries},
                self.decorations,
                self.defined_names,
                self.own_macros,
                drafts,
            ),
            data,
        )

    def _lane_state(self, view: LaneView) -> LaneState:
        files = self.lane_files[view.id]
        included_by: dict[str, set[str]] = {}
        for path in files:
            for edge in view.edges(path):
                if edge.path is not None:
                    included_by.setdefault(edge.path, set()).add(path)
        return LaneState(
            {path: int(life) for path, life in files.items()},
            self._lane_slices[view.id],
            {path: tuple(sorted(others)) for path, others in included_by.items()},
        )

    def unparsed(self) -> Iterator[Unparsed]:
        """Files and regions that were not understood; names in them count as uses."""
        seen: set[tuple[str, int]] = set()
        used = {number for slices in self._lane_slices.values() for number in slices.values()}
        for number in sorted(used):
            key = self._slices[number]
            if key in self._facts:
                entries: Iterable[Unparsed] = _unparsed(key[0], self._facts[key])
            else:
                entries = self.base.unparsed.get(number, ()) if self.base is not None else ()
            for entry in entries:
                if (entry.file, entry.line) not in seen:
                    seen.add((entry.file, entry.line))
                    yield entry

    # What is in the tree, whatever the lane.

    @cached_property
    def decorations(self) -> Decorations:
        if self.base is not None:
            return self.base.decorations
        return Decorations(file.data for file in self.sources.values())

    def in_scope(self) -> Iterator[tuple[str, tuple[LaneView, ...]]]:
        """Every source file that some lane reads, with these lanes."""
        for path in self.read_files:
            yield path, self.views_of(path)

    @cached_property
    def lane_files(self) -> dict[str, dict[str, Life]]:
        if self.base is not None:
            lanes = self.base.lanes
            return {view.id: {path: Life(life) for path, life in lanes[view.id].files.items()} for view in self.views}
        return {view.id: view.reached() for view in self.views}

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
        if self.base is not None:
            return self.base.defined_names
        found: set[bytes] = set()
        for file in self.sources.values():
            found.update(_DEFINED.findall(file.data))
        return frozenset(name.decode() for name in found)

    @cached_property
    def build_words(self) -> frozenset[str]:
        """Words of the build scripts, with and without the D of `-DNAME`."""
        words = set(re.findall(r"[A-Za-z_]\w*", self.files.build_text))
        return frozenset(words | {word[1:] for word in words if word[0] == "D"})

    @cached_property
    def own_macros(self) -> frozenset[str]:
        """Macros that the sources define and nobody else does: no build script names them, no user overrides them."""
        if self.base is not None:
            return self.base.own_macros
        outside = self.build_words | set(self.config.macros) | self.universe
        own: set[str] = set()
        defaults: set[str] = set()
        for file in self.sources.values():
            before = ""
            for directive in file.structure.directives:
                name = re.split(r"[\s(]", directive.argument, maxsplit=1)[0] if directive.kind == "define" else ""
                if name:
                    (defaults if before == name else own).add(name)
                before = tested(directive) or ""
        return frozenset(own - defaults - outside)

    def mentioning(self, name: str) -> Iterator[str]:
        """Files that some lane reads in which a word stands, comments and directives included."""
        word = name.encode("utf-8", "backslashreplace")
        return (path for path in self.read_files if word in self.sources[path].data)

    # What is in a lane.

    def is_judged(self, view: LaneView, path: str, line: int) -> bool:
        """Whether the lane surely compiles a line and the grammar understood it."""
        facts = self.facts(view, path)
        if facts.problem is not None or self.lane_files[view.id].get(path) != Life.LIVE:
            return False
        return view.life(path, line) == Life.LIVE and not any(first <= line <= last for first, last in facts.errors)

    def names(self, view: LaneView) -> LaneNames:
        return self.once(
            "names",
            view,
            lambda view: LaneNames(self._index, lambda number: self._slices[number][0], self._lane_slices[view.id]),
        )

    def _by_name(self, kind: str, view: LaneView, declared: Callable[[str, str], list[Made]]) -> Lazy[Made]:
        """What the files of a lane declare: `declared` gives a file's own under a name."""

        def make(view: LaneView) -> Lazy[Made]:
            held = self.names(view)
            return Lazy(
                lambda name: held.has(kind, name),
                lambda name: [entry for path in held.files(kind, name) for entry in declared(path, name)],
            )

        return self.once(kind, view, make)

    def functions(self, view: LaneView) -> Lazy[tuple[str, Function]]:
        """By name: every function that a file of the lane declares, uncertain ones included."""
        return self._by_name(
            "functions",
            view,
            lambda path, name: [
                (path, self._with_open_end(function))
                for function in self.facts(view, path).functions
                if function.name == name
            ],
        )

    def _with_open_end(self, function: Function) -> Function:
        """A macro in a parameter list stands for any number of parameters."""
        if any(not param.name and param.type in self.defined_names for param in function.params):
            return function._replace(params=(), variadic=True)
        return function

    def arities(self, view: LaneView, name: str) -> tuple[int, int]:
        """The numbers of arguments that every function of a name takes."""
        known = self.once("arities", view, lambda view: dict[str, tuple[int, int]]())
        if name not in known:
            entries = self.functions(view)[name]
            known[name] = (
                max(function.least for _, function in entries),
                min(_ANY_NUMBER if function.variadic else len(function.params) for _, function in entries),
            )
        return known[name]

    def classes(self, view: LaneView) -> Lazy[Class]:
        """By name: every class with a body in a file of the lane."""
        return self._by_name(
            "classes",
            view,
            lambda path, name: [entry for entry in self.facts(view, path).classes if entry.name == name],
        )

    def function_types(self, view: LaneView, name: str) -> list[FunctionType]:
        """The named function pointer types of a name."""
        return [
            entry
            for path in self.names(view).files("callables", name)
            for entry in self.facts(view, path).callables
            if entry.name == name
        ]

    def macro_names(self, view: LaneView) -> Lazy[tuple[str, Define, int]]:
        """By name: every macro that a file of the lane defines, with its Life."""
        return self._by_name(
            "macros",
            view,
            lambda path, name: [
                (path, define, life) for define, life in view.slice(path).defines if define.name == name
            ],
        )

    def scopes(self, view: LaneView) -> Scopes:
        return self.once(
            "scopes",
            view,
            lambda view: Scopes(
                view, self.names(view), lambda path: self.facts(view, path), self.functions(view), self.classes(view)
            ),
        )

    def units_reaching(self, view: LaneView, path: str) -> Sequence[str]:
        """The lane's units that read a file, however indirectly."""
        return [unit for unit in self.readers(view, path) if unit in view.unit_set]

    def readers(self, view: LaneView, path: str) -> Sequence[str]:
        """Files that read a file, itself included."""
        included_by = self.once("included by", view, self._included_by)
        found, waiting = {path}, [path]
        while waiting:
            for other in included_by.get(waiting.pop(), ()):
                if other not in found:
                    found.add(other)
                    waiting.append(other)
        return sorted(found)

    def _included_by(self, view: LaneView) -> dict[str, tuple[str, ...]]:
        return self.base.lanes[view.id].included_by if self.base is not None else self._lane_state(view).included_by


def about(matrix: Matrix) -> tuple[str, ...]:
    """All that the checks read of a matrix."""
    lanes = [tuple(str(getattr(lane, name)) for name in _READ_OF_A_LANE) for lane in matrix.lanes]
    return repr(lanes), repr(matrix.constraints), repr(matrix.checks)


def _unparsed(path: str, facts: Facts) -> Iterator[Unparsed]:
    if facts.problem is not None:
        yield Unparsed(path, 1, facts.problem)
    for first, _ in facts.errors:
        yield Unparsed(path, first, "not understood by the grammar")
