"""What a lane knows of each macro: a text, that it is undefined, or nothing."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from enum import Enum

from greenlane.checks.source import expressions, vendors
from greenlane.matrix.model import Lane


class Undefined(Enum):
    UNDEFINED = "undefined"


UNDEFINED = Undefined.UNDEFINED
State = str | None | Undefined  # the text of the definition; None where nobody knows

_CPLUSPLUS = "202002L"
_DEPTH = 16


class LaneMacros:
    """The macros that a lane starts with. `universe` holds what any lane or constraint speaks of: silence means off."""

    def __init__(self, lane: Lane, universe: frozenset[str]) -> None:
        self.lane = lane
        self.universe = universe
        self.given: dict[str, State] = dict(lane.macros)
        self._vendors = frozenset(lane.vendors)
        self._answers: dict[str, State] = {}

    def state(self, name: str) -> State:
        if name not in self._answers:
            self._answers[name] = self._look_up(name)
        return self._answers[name]

    def _look_up(self, name: str) -> State:
        if name in self.given:
            return self.given[name]
        if name in self.universe:
            return UNDEFINED
        if name == "__cplusplus":
            return _CPLUSPLUS
        vendor = vendors.of_macro(name)
        if vendor is None:
            return None
        if vendor not in self._vendors:
            return UNDEFINED
        if name == "__HIP_PLATFORM_AMD__":
            return "1"
        target = vendors.target_of_macro(name)
        if (
            target is not None
            and self._targets()
            and not any(vendors.target_covers(target, own) for own in self._targets())
        ):
            return UNDEFINED
        return None

    def _targets(self) -> tuple[str, ...]:
        return self.lane.archs or ((self.lane.arch,) if self.lane.arch and self.lane.arch.startswith("gfx") else ())


class Environment:
    """Macros at one place of a file: what was defined on the way there, over what the lane starts with."""

    __slots__ = ("base", "busy", "off", "set")

    def __init__(self, base: LaneMacros, plain_c: bool = False, off: Container[str] = frozenset()) -> None:
        self.base = base
        self.off = off  # what only the way there could have defined
        self.set: dict[str, State] = {"__cplusplus": UNDEFINED} if plain_c else {}
        self.busy = 0

    def state(self, name: str) -> State:
        if name in self.set:
            return self.set[name]
        known = self.base.state(name)
        return UNDEFINED if known is None and name in self.off else known

    def defined(self, name: str) -> bool | None:
        state = self.state(name)
        return None if state is None else state is not UNDEFINED

    def value(self, name: str) -> int | None:
        state = self.state(name)
        if state is None:
            return None
        if state is UNDEFINED:
            return 0
        if self.busy > _DEPTH or not isinstance(state, str):
            return None
        self.busy += 1
        try:
            return expressions.evaluate(expressions.parse(state), self.value, self.defined) if state else None
        finally:
            self.busy -= 1

    def truth(self, text: str) -> bool | None:
        result = expressions.evaluate(expressions.parse(text), self.value, self.defined)
        return None if result is None else bool(result)


def universe(lanes: Iterable[Lane], constraints: Iterable[frozenset[str]]) -> frozenset[str]:
    names: set[str] = set()
    for lane in lanes:
        names.update(lane.macros)
    for mentioned in constraints:
        names.update(mentioned)
    return frozenset(names)


def merge(target: dict[str, State], news: Mapping[str, State], certain: bool) -> None:
    """Take over what an included file defined; under a condition that nobody knows, its names become unknown."""
    if certain:
        target.update(news)
    else:
        target.update(dict.fromkeys(news))
