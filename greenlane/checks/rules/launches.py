"""Kernel launches and functions taken by name: what is passed against what the other side takes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from greenlane.checks.findings import Findings
from greenlane.checks.rules.call_arity import passes_macro
from greenlane.checks.source.facts import Cast, Facts, Function, PointerArray, Trait
from greenlane.checks.source.project import Project
from greenlane.checks.source.slices import Life
from greenlane.checks.source.view import LaneView

RULES = ("launch-arity", "pointer-cast-mismatch")

_LAUNCHERS = frozenset(
    """hipModuleLaunchKernel hipExtModuleLaunchKernel hipLaunchKernel hipLaunchCooperativeKernel hipExtLaunchKernel
    hipLaunchKernelExC cuLaunchKernel cuLaunchCooperativeKernel cuLaunchKernelEx cudaLaunchKernel
    cudaLaunchCooperativeKernel cudaLaunchKernelExC hipModuleLaunchCooperativeKernel""".split()
)


def check_file(project: Project, path: str, findings: Findings) -> None:
    for view in project.views_of(path):
        if project.lane_files[view.id][path] == Life.LIVE:
            facts = project.facts(view, path)
            _launches(project, view, path, facts, findings)
            for array in facts.arrays:
                _array(project, view, path, facts, array, findings)
            for cast in facts.casts:
                _cast(project, view, path, cast, findings)


def _kernels(project: Project, view: LaneView, name: str) -> list[tuple[str, Function]]:
    return [entry for entry in project.functions(view).of(name) if entry[1].has(Trait.KERNEL)]


def _launches(project: Project, view: LaneView, path: str, facts: Facts, findings: Findings) -> None:
    reach = view.reach(path) if path in view.units else None
    for launch in facts.launches:
        if launch.arity < 0 or launch.kernel in project.macro_names(view):
            continue
        kernels = [entry for entry in _kernels(project, view, launch.kernel) if reach is None or entry[0] in reach]
        if not kernels or any(kernel.accepts(launch.arity) for _, kernel in kernels):
            continue
        if project.is_judged(view, path, launch.line) and not passes_macro(
            project, view, path, launch.line, launch.column
        ):
            _report(path, view, (launch.line, launch.column), launch.kernel, launch.arity, kernels, findings)


def _report(
    path: str,
    view: LaneView,
    place: tuple[int, int],
    name: str,
    arity: int,
    kernels: list[tuple[str, Function]],
    findings: Findings,
) -> None:
    taken = " or ".join(sorted({str(len(kernel.params)) for _, kernel in kernels}))
    findings.add(
        "launch-arity",
        (path, *place),
        [view.id],
        f"kernel {name!r} is given {arity} argument{'s' if arity != 1 else ''}, but takes {taken}",
        [(file, kernel.line, f"{name!r} takes {len(kernel.params)}") for file, kernel in kernels[:3]],
    )


def _array(project: Project, view: LaneView, path: str, facts: Facts, array: PointerArray, findings: Findings) -> None:
    if array.function < 0:
        return
    function = facts.functions[array.function]
    if not function.tokens & _LAUNCHERS or sum(other.function == array.function for other in facts.arrays) > 1:
        return
    kernels = [
        kernels for name in sorted(set(_named(project, path, function))) if (kernels := _kernels(project, view, name))
    ]
    if len(kernels) != 1 or any(len(kernel.params) == array.arity for _, kernel in kernels[0]):
        return
    if project.is_judged(view, path, array.line):
        _report(path, view, (array.line, array.column), kernels[0][0][1].name, array.arity, kernels[0], findings)


def _named(project: Project, path: str, function: Function) -> Iterator[str]:
    """Names that a function mentions, in literals as well: a driver launch looks its kernel up by name."""
    yield from function.tokens
    for line in project.sources[path].kept_lines[function.body - 1 : function.last]:
        yield from re.findall(r'"(\w+)"', line)


def _cast(project: Project, view: LaneView, path: str, cast: Cast, findings: Findings) -> None:
    types = project.function_types(view, cast.type.rpartition("::")[2])
    targets = [
        (file, function)
        for other in project.views
        for file, function in project.functions(other).of(cast.symbol)
        if function.has(Trait.EXTERN_C) and function.has(Trait.DEFINITION)
    ]
    if len({entry.params for entry in types}) != 1 or not targets:
        return
    wanted = len(types[0].params)
    if any(len(function.params) == wanted for _, function in targets) or not project.is_judged(view, path, cast.line):
        return
    file, function = targets[0]
    findings.add(
        "pointer-cast-mismatch",
        (path, cast.line, cast.column),
        [view.id],
        f"{cast.symbol!r} is cast to {cast.type!r}, which takes {wanted}, but it takes {len(function.params)}",
        [(file, function.line, f"{cast.symbol!r} is defined here")],
    )
