"""Which slices hold what, by name: so that facts are read when a rule asks for a name, and not before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from greenlane.checks.source.directives import Define
from greenlane.checks.source.facts import Facts, Trait

Kind = str
KINDS: tuple[Kind, ...] = (
    "functions", "defined", "classes", "objects", "callables", "macros", "imported", "namespaces", "doubtful",
)  # fmt: skip
Index = dict[Kind, dict[str, tuple[int, ...]]]  # kind -> name -> numbers of slices
Value = TypeVar("Value")


class Named(NamedTuple):
    """The names that one slice adds to the index."""

    functions: frozenset[str]
    defined: frozenset[str]  # free functions with a body
    classes: frozenset[str]
    objects: frozenset[str]
    callables: frozenset[str]
    macros: frozenset[str]
    imported: frozenset[str]
    namespaces: frozenset[str]  # each part of a nested one
    doubtful: frozenset[str]  # one entry, where the grammar left something out


def named(facts: Facts, defines: Iterable[tuple[Define, int]]) -> Named:
    return Named(
        frozenset(function.name for function in facts.functions),
        frozenset(
            function.name
            for function in facts.functions
            if function.traits & (Trait.DEFINITION | Trait.MEMBER) == Trait.DEFINITION
        ),
        frozenset(entry.name for entry in facts.classes),
        facts.objects,
        frozenset(entry.name for entry in facts.callables),
        frozenset(define.name for define, _ in defines),
        facts.imported,
        frozenset(part for namespace in facts.namespaces for part in namespace.split("::")),
        frozenset({""}) if facts.errors or facts.gaps or facts.problem is not None else frozenset(),
    )


def extend(index: Index, number: int, names: Named) -> None:
    for kind, held in zip(KINDS, names, strict=True):
        table = index.setdefault(kind, {})
        for name in held:
            table[name] = (*table.get(name, ()), number)


class LaneNames:
    """The index as one lane sees it: names to files."""

    def __init__(self, index: Index, paths: Callable[[int], str], slices: Mapping[str, int]) -> None:
        self._index = index
        self._paths = paths
        self._slices = slices
        self._answers: dict[tuple[Kind, str], tuple[str, ...]] = {}

    def files(self, kind: Kind, name: str) -> tuple[str, ...]:
        key = (kind, name)
        known = self._answers.get(key)
        if known is None:
            found = ((self._paths(number), number) for number in self._index.get(kind, {}).get(name, ()))
            known = self._answers[key] = tuple(path for path, number in found if self._slices.get(path) == number)
        return known

    def has(self, kind: Kind, name: str) -> bool:
        return bool(self.files(kind, name))

    def all(self, kind: Kind) -> Iterable[str]:
        return (name for name in self._index.get(kind, {}) if self.has(kind, name))


class Lazy(Generic[Value]):
    """A table whose entries are made when they are asked for."""

    def __init__(self, has: Callable[[str], bool], make: Callable[[str], list[Value]]) -> None:
        self._has = has
        self._make = make
        self._made: dict[str, list[Value]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._made or self._has(name)

    def __getitem__(self, name: str) -> list[Value]:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def of(self, name: str) -> list[Value]:
        """The entries of a name, perhaps none."""
        if name not in self:
            return []
        return self[name]
