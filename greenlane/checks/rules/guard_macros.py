"""Macros in conditions: misspelt, of another vendor, read undefined, tested by definition where the value counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import lru_cache

from greenlane.checks.findings import Findings
from greenlane.checks.source import expressions, vendors
from greenlane.checks.source.expressions import Node
from greenlane.checks.source.macros import UNDEFINED
from greenlane.checks.source.project import Project
from greenlane.checks.source.slices import Life, arm_conditions, enclosing
from greenlane.checks.source.view import LaneView

RULES = ("guard-unknown-macro", "guard-negation")

_LARGE = 10**9
_SHORTEST = 6  # below, every name is near to some other
_PREDEFINED = (
    "__CUDACC__ __NVCC__ __CUDA_ARCH__ __HIPCC__ __HIP__ __HIP_DEVICE_COMPILE__ __HIP_PLATFORM_AMD__"
    " __HIP_PLATFORM_NVIDIA__"
    " __CUDACC_VER_MAJOR__ __CUDACC_VER_MINOR__ __AMDGCN__ __cplusplus CUDA_VERSION CUDART_VERSION HIP_VERSION"
    " __clang__ __GNUC__ _MSC_VER __linux__ __APPLE__ __x86_64__ __aarch64__ NDEBUG _OPENMP"
).split()


def check_file(project: Project, path: str, findings: Findings) -> None:
    structure = project.sources[path].structure
    views = project.views_of(path)
    if not structure.chains or not views:
        return
    known = project.once("known macros", project.views[0], lambda view: _known_names(project))
    for index, chain in enumerate(structure.chains):
        for position, arm in enumerate(chain.arms):
            line = structure.directives[arm.directive].line
            alive = [view for view in views if _is_asked(view, path, index, position)]
            for name in sorted(expressions.names(arm.condition)) if alive else ():
                _unknown(project, path, line, name, alive, known, findings)
                _accidental(project, path, line, arm.condition, name, alive, findings)
                _negated(project, path, line, arm.condition, name, alive, findings)
                _defined_as_zero(path, line, arm.condition, name, alive, findings)


def _is_asked(view: LaneView, path: str, chain: int, position: int) -> bool:
    """Whether a lane's compiler evaluates the condition of an arm."""
    structure = view.files[path].structure
    parent, arm = structure.chains[chain].parent, structure.chains[chain].parent_arm
    arms = view.slice(path).arms
    if parent >= 0 and arms[parent][arm] == Life.DEAD:
        return False
    return not any(life == Life.LIVE for life in arms[chain][:position])


def _known_names(project: Project) -> frozenset[str]:
    return frozenset(project.build_words | project.defined_names | project.universe | set(project.config.macros))


# Misspelt, or of nobody.


def _unknown(
    project: Project,
    path: str,
    line: int,
    name: str,
    views: Iterable[LaneView],
    known: frozenset[str],
    findings: Findings,
) -> None:
    if name in known or vendors.of_macro(name) is not None or vendors.is_platform(name) or name in _PREDEFINED:
        return
    if name.startswith("__") and not vendors.in_vendor_space(name):
        return  # a compiler's own
    near = _nearest(name, project.universe)
    if near is None and not vendors.in_vendor_space(name):
        return  # somebody may set it by hand
    column = _column(project, path, line, name)
    near = near or next(iter(get_close_matches(name, _PREDEFINED, n=1, cutoff=0.8)), None)
    hint = f"; did you mean {near!r}?" if near else ""
    findings.add(
        "guard-unknown-macro",
        (path, line, column),
        [view.id for view in views],
        f"nothing defines {name!r}: no lane, no compiler, no file{hint}",
    )


def _nearest(name: str, universe: frozenset[str]) -> str | None:
    if len(name) < _SHORTEST:
        return None
    return next((other for other in sorted({*universe, *_PREDEFINED}) if _is_slip(name, other)), None)


@lru_cache(maxsize=20_000)
def _is_slip(name: str, other: str) -> bool:
    """One letter missing, added, changed or two swapped; a digit is no slip, for versions differ by digits."""
    if abs(len(name) - len(other)) > 1 or name == other:
        return False
    start = 0
    while start < min(len(name), len(other)) and name[start] == other[start]:
        start += 1
    left, right = name[start:], other[start:]
    changed = {*left[:1], *right[:1]}
    if any(char.isdigit() for char in changed):
        return False
    return (
        left[1:] == right
        or left == right[1:]
        or left[1:] == right[1:]
        or (left[:2] == right[1::-1] and left[2:] == right[2:])
    )


# A comparison that an undefined macro wins by being zero.


def _accidental(
    project: Project, path: str, line: int, text: str, name: str, views: Iterable[LaneView], findings: Findings
) -> None:
    vendor = vendors.of_macro(name)
    if vendor is None or name in project.defined_names or not _is_compared(expressions.parse(text), name):
        return
    if _is_protected(project, path, line, text, name):
        return
    lanes = [view.id for view in views if vendor not in view.allowed and _wins_by_zero(view, text, name)]
    if lanes:
        findings.add(
            "guard-unknown-macro",
            (path, line, _column(project, path, line, name)),
            lanes,
            f"{name!r} is undefined here and reads as 0, which selects this arm by accident; "
            f"test defined({name}) first",
        )


def _is_compared(node: Node, name: str) -> bool:
    if node.kind in {"<", "<=", ">", ">="} and any(arg.kind == "name" and arg.value == name for arg in node.args):
        return True
    return any(_is_compared(arg, name) for arg in node.args)


def _is_protected(project: Project, path: str, line: int, text: str, name: str) -> bool:
    structure = project.sources[path].structure
    around = [text]
    for index, position in enclosing(structure, line):
        around += [condition for condition, _ in arm_conditions(structure.chains[index], position)]
    return any(re.search(rf"\bdefined\s*\(?\s*{name}\b", condition) for condition in around)


def _wins_by_zero(view: LaneView, text: str, name: str) -> bool:
    if view.macros.state(name) is not UNDEFINED:
        return False

    def value(instead: int) -> bool | None:
        def lookup(other: str) -> int | None:
            if other == name:
                return instead
            state = view.macros.state(other)
            return 0 if state is UNDEFINED else None if state is None else _number(state)

        def defined(other: str) -> bool | None:
            state = view.macros.state(other)
            return None if state is None else state is not UNDEFINED

        result = expressions.evaluate(expressions.parse(text), lookup, defined)
        return None if result is None else bool(result)

    return value(0) is True and value(_LARGE) is False


def _number(state: object) -> int | None:
    text = str(state)
    return int(text) if text.isdigit() else None


# `!X` of a macro that is not there.


def _negated(
    project: Project, path: str, line: int, text: str, name: str, views: Iterable[LaneView], findings: Findings
) -> None:
    if name not in project.universe or name in project.defined_names or not _is_negated(expressions.parse(text), name):
        return
    if _is_protected(project, path, line, text, name) or any(
        view.lane.macros.get(name) == "0" for view in project.views
    ):
        return
    lanes = [view.id for view in views if view.macros.state(name) is UNDEFINED]
    if lanes:
        findings.add(
            "guard-negation",
            (path, line, _column(project, path, line, name)),
            lanes,
            f"`!{name}` reads the value of a macro that these lanes leave undefined (-Wundef); "
            f"`!defined({name})` says what is meant",
        )


def _is_negated(node: Node, name: str) -> bool:
    if node.kind == "!" and node.args[0].kind == "name" and node.args[0].value == name:
        return True
    return any(_is_negated(arg, name) for arg in node.args)


# `defined(X)` of a macro whose value says no.


def _defined_as_zero(path: str, line: int, text: str, name: str, views: Iterable[LaneView], findings: Findings) -> None:
    node = expressions.parse(text)
    if name not in set(_tested_by_definition(node)) or name in set(_tested_by_value(node)):
        return
    lanes = [view.id for view in views if view.lane.macros.get(name) == "0"]
    if lanes:
        findings.add(
            "guard-negation",
            (path, line, 1),
            lanes,
            f"`defined({name})` holds although these lanes set {name} to 0; test its value",
        )


def _tested_by_definition(node: Node) -> Iterator[str]:
    if node.kind == "defined":
        yield str(node.value)
    for arg in node.args:
        yield from _tested_by_definition(arg)


def _tested_by_value(node: Node) -> Iterator[str]:
    if node.kind == "name":
        yield str(node.value)
    for arg in node.args:
        yield from _tested_by_value(arg)


def _column(project: Project, path: str, line: int, name: str) -> int:
    match = re.search(rf"\b{re.escape(name)}\b", project.sources[path].code_lines[line - 1])
    return match.start() + 1 if match else 1
