"""Which lines of a file a lane compiles. A condition that nobody can decide leaves its lines uncertain, not dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from greenlane.checks.source.directives import (
    Arm,
    Chain,
    Define,
    Directive,
    Include,
    Structure,
    parse_define,
    parse_include,
)
from greenlane.checks.source.macros import UNDEFINED, Environment, State, merge


class Life(IntEnum):
    DEAD = 0
    LIVE = 1
    UNSURE = 2


class Slice(NamedTuple):
    """One file in one lane."""

    arms: tuple[tuple[int, ...], ...]  # Life of each arm of each chain
    includes: tuple[tuple[Include, int], ...]
    defines: tuple[tuple[Define, int], ...]
    exports: dict[str, State]  # what the file leaves defined or undefined


class Guard(NamedTuple):
    """The macro that keeps a header from being read twice."""

    name: str  # tested
    defined: str  # defined behind the test
    line: int
    chain: int


def include_guard(structure: Structure) -> Guard | None:
    """The guard around a whole file: first and last of its directives, with the definition right behind the test."""
    directives = [entry for entry in structure.directives if entry.kind != "pragma"]
    if len(directives) < 3 or not structure.chains:
        return None
    opener, define, last = directives[0], directives[1], directives[-1]
    chain = structure.chains[0]
    name = tested(opener)
    if name is None or define.kind != "define" or chain.last != last.line or len(chain.arms) != 1:
        return None
    parsed = parse_define(define)
    if parsed is None or parsed.params is not None or (parsed.body and not parsed.body.isdigit()):
        return None
    return Guard(name, parsed.name, opener.line, 0)


def tested(directive: Directive) -> str | None:
    """The macro that a directive asks to be undefined."""
    words = directive.argument.replace("(", " ").replace(")", " ").split()
    if directive.kind == "ifndef" and len(words) == 1:
        return words[0]
    if directive.kind == "if" and len(words) == 2 and words[0] == "!defined":
        return words[1]
    return None


def cut(
    structure: Structure,
    environment: Environment,
    exports_of: Callable[[Include, bool], dict[str, State]],
) -> Slice:
    """Evaluate the directives in order. `exports_of` gives what an included file defines."""
    cutter = _Cutter(structure, environment, exports_of)
    cutter.walk()
    return Slice(tuple(map(tuple, cutter.arms)), tuple(cutter.includes), tuple(cutter.defines), cutter.exports)


class _Cutter:
    def __init__(
        self, structure: Structure, environment: Environment, exports_of: Callable[[Include, bool], dict[str, State]]
    ) -> None:
        self.structure = structure
        self.environment = environment
        self.exports_of = exports_of
        self.arms: list[list[int]] = [[Life.DEAD] * len(chain.arms) for chain in structure.chains]
        self.includes: list[tuple[Include, int]] = []
        self.defines: list[tuple[Define, int]] = []
        self.exports: dict[str, State] = {}
        guard = include_guard(structure)
        self.guard = guard.chain if guard else -1
        self.conditions = {
            arm.directive: (index, position)
            for index, chain in enumerate(structure.chains)
            for position, arm in enumerate(chain.arms)
        }
        self.endings = {chain.last: index for index, chain in enumerate(structure.chains)}

    def walk(self) -> None:
        life = int(Life.LIVE)
        outer: list[int] = []  # life around each open chain
        taken: list[int] = []  # whether an earlier arm of it was selected: Life of the best one
        for index, directive in enumerate(self.structure.directives):
            place = self.conditions.get(index)
            if place is not None:
                if place[1] == 0:
                    outer.append(life)
                    taken.append(Life.DEAD)
                life = self._enter(place, outer[-1], taken)
            elif directive.kind == "endif":
                if directive.line in self.endings and outer:
                    life = outer.pop()
                    taken.pop()
            elif life != Life.DEAD:
                self._obey(directive, life)

    def _enter(self, place: tuple[int, int], around: int, taken: list[int]) -> int:
        chain, position = place
        life = int(Life.DEAD)
        if around != Life.DEAD and taken[-1] != Life.LIVE:
            truth = True if chain == self.guard else self._truth(chain, position)
            if truth is not False:
                sure = truth is True and taken[-1] == Life.DEAD
                life = around if sure else Life.UNSURE
                taken[-1] = Life.LIVE if truth is True else Life.UNSURE
        self.arms[chain][position] = life
        return life

    def _truth(self, chain: int, position: int) -> bool | None:
        return self.environment.truth(self.structure.chains[chain].arms[position].condition)

    def _obey(self, directive: Directive, life: int) -> None:
        if directive.kind == "define":
            define = parse_define(directive)
            if define is not None:
                self.defines.append((define, life))
                self._set(define.name, define.body if define.params is None else None, life)
        elif directive.kind == "undef":
            self._set(directive.argument.split()[0] if directive.argument else "", UNDEFINED, life)
        elif directive.kind in {"include", "include_next", "import"}:
            include = parse_include(directive)
            if include is not None:
                self.includes.append((include, life))
                news = self.exports_of(include, life == Life.LIVE)
                merge(self.environment.set, news, life == Life.LIVE)
                merge(self.exports, news, life == Life.LIVE)

    def _set(self, name: str, state: State, life: int) -> None:
        known = state if life == Life.LIVE else None
        self.environment.set[name] = known
        self.exports[name] = known


class LineLife:
    """Life of each line, from the arms of a slice."""

    def __init__(self, structure: Structure, arms: Sequence[Sequence[int]]) -> None:
        self._structure = structure
        self._arms = arms

    @cached_property
    def ranges(self) -> list[tuple[int, int, int]]:
        """(first, last, life) of every arm that isn't plainly alive, inner ones after outer ones."""
        found = []
        for chain, lives in zip(self._structure.chains, self._arms, strict=True):
            for arm, life in zip(chain.arms, lives, strict=True):
                if life != Life.LIVE and arm.first <= arm.last:
                    found.append((arm.first, arm.last, int(life)))
        return sorted(found, key=lambda entry: (entry[0], -entry[1]))

    @cached_property
    def table(self) -> bytes:
        """Life by line number; an inner arm is never more alive than the one around it."""
        lives = bytearray([Life.LIVE]) * (self._structure.lines + 2)
        for first, last, life in self.ranges:
            lives[first : last + 1] = bytes([life]) * (last + 1 - first)
        return bytes(lives)

    def of(self, line: int) -> int:
        return self.table[line] if line < len(self.table) else int(Life.LIVE)


def visible(
    structure: Structure, arms: Sequence[Sequence[int]], lines: list[str], kept: list[str]
) -> tuple[list[str], list[str], list[int]]:
    """The lines that a lane may compile, in both views, and the numbers of uncertain lines left out of them.

    Directives are blank. Of an uncertain chain whose arms aren't balanced, only the first is in.
    """
    code, full = list(lines), list(kept)
    left_out: list[int] = []
    for number in _dropped(structure, arms, lines, left_out):
        code[number - 1] = full[number - 1] = ""
    for directive in structure.directives:
        if directive.kind == "pragma" and full[directive.line - 1]:
            for number in range(directive.line, directive.last + 1):
                full[number - 1] = " " * len(code[number - 1])  # names in a pragma are uses, and no grammar takes them
    return code, full, left_out


def _dropped(
    structure: Structure, arms: Sequence[Sequence[int]], lines: list[str], left_out: list[int]
) -> Iterator[int]:
    for directive in structure.directives:
        if directive.kind != "pragma":
            yield from range(directive.line, directive.last + 1)
    for chain, lives in zip(structure.chains, arms, strict=True):
        unsure = [arm for arm, life in zip(chain.arms, lives, strict=True) if life == Life.UNSURE]
        spare = unsure[1:] if len(unsure) > 1 and not all(_balanced(lines, arm) for arm in unsure) else []
        for arm, life in zip(chain.arms, lives, strict=True):
            if life == Life.DEAD:
                yield from range(arm.first, arm.last + 1)
            elif arm in spare:
                left_out.extend(range(arm.first, arm.last + 1))
                yield from range(arm.first, arm.last + 1)


def _balanced(lines: list[str], arm: Arm) -> bool:
    """Whether an arm holds whole statements, so that its siblings may stand beside it."""
    text = "\n".join(lines[arm.first - 1 : arm.last])
    return (
        text.count("{") == text.count("}")
        and text.count("(") == text.count(")")
        and (not text.strip() or text.rstrip()[-1] in ";}#")
    )


def enclosing(structure: Structure, line: int) -> list[tuple[int, int]]:
    """(chain, arm) around a line, outermost first."""
    return [
        (index, position)
        for index, chain in enumerate(structure.chains)
        if chain.first < line < chain.last
        for position, arm in enumerate(chain.arms)
        if arm.first <= line <= arm.last
    ]


def arm_conditions(chain: Chain, position: int) -> Iterable[tuple[str, bool]]:
    """(condition, whether it holds) for an arm to be selected."""
    for earlier in chain.arms[:position]:
        yield earlier.condition, False
    yield chain.arms[position].condition, True
