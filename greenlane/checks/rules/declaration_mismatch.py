"""Definitions and overrides that no longer say what their declaration says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from greenlane.checks.findings import Findings
from greenlane.checks.source import types
from greenlane.checks.source.facts import Function, Param, Trait
from greenlane.checks.source.project import Project
from greenlane.checks.source.scope import Scopes
from greenlane.checks.source.slices import Life
from greenlane.checks.source.view import LaneView

RULES = ("declaration-mismatch",)

Candidate = tuple[str, Function]


def check_file(project: Project, path: str, findings: Findings) -> None:
    for view in project.views_of(path):
        if project.lane_files[view.id][path] != Life.LIVE:
            continue
        for function in project.facts(view, path).functions:
            if function.has(Trait.OVERRIDE):
                _override(project, view, project.scopes(view), path, function, findings)
            elif function.has(Trait.DEFINITION) and not function.traits & (
                Trait.TEMPLATE | Trait.SPECIALIZATION | Trait.OPERATOR
            ):
                _definition(project, view, path, function, findings)


def _definition(project: Project, view: LaneView, path: str, function: Function, findings: Findings) -> None:
    declared = _declarations(project, view, path, function)
    if not declared or any(other.variadic and not other.params for _, other in declared):
        return
    same = [
        entry
        for entry in declared
        if len(entry[1].params) == len(function.params) and entry[1].variadic == function.variadic
    ]
    if not same:
        if (function.has(Trait.QUALIFIED) and function.has(Trait.MEMBER)) or _is_orphan(
            project, view, function, declared
        ):
            _report_count(project, view, path, function, declared, findings)
    elif all(_is_reordered(function, other) for _, other in same):
        _report_order(project, view, path, function, same[0], findings)
    elif len(same) == len(declared) and _is_meant(project, view, function, same):
        differing = [_first_difference(function, other) for _, other in same]
        if all(pair is not None for pair in differing) and differing[0] is not None:
            _report_type(project, view, path, function, differing[0], same[0], findings)


def _declarations(project: Project, view: LaneView, path: str, function: Function) -> list[Candidate]:
    """What is declared under the definition's full name in the files that its unit reads."""
    if path not in view.units or (function.has(Trait.MEMBER) and not function.has(Trait.QUALIFIED)):
        return []  # a body inside its class declares itself
    reach = view.reach(path)
    return [
        (file, other)
        for file, other in project.functions(view).of(function.name)
        if file in reach
        and other.scope == function.scope
        and not other.has(Trait.DEFINITION)
        and not other.traits & (Trait.TEMPLATE | Trait.FRIEND)
        and project.lane_files[view.id][file] == Life.LIVE
    ]


def _is_orphan(project: Project, view: LaneView, function: Function, declared: Sequence[Candidate]) -> bool:
    """A free function that stands where the declared one should: nobody else defines or declares that name here."""
    if (
        function.has(Trait.INTERNAL)
        or function.has(Trait.INLINE)
        or function.name == "main"
        or function.has(Trait.MEMBER)
    ):
        return False
    counts = {len(other.params) for _, other in declared}
    if len(counts) != 1:
        return False
    everywhere = project.functions(view).of(function.name)
    return (
        not any(other.has(Trait.DEFINITION) and len(other.params) in counts for _, other in everywhere)
        and sum(other.has(Trait.DEFINITION) for _, other in everywhere) == 1
    )


def _is_meant(project: Project, view: LaneView, function: Function, declared: Sequence[Candidate]) -> bool:
    """Whether a definition stands for what is declared and is no overload: a member, or alone and of the same names."""
    if function.has(Trait.QUALIFIED) and function.has(Trait.MEMBER):
        return True
    everywhere = project.functions(view).of(function.name)
    return (
        not function.traits & (Trait.INTERNAL | Trait.INLINE | Trait.MEMBER)
        and sum(other.has(Trait.DEFINITION) for _, other in everywhere) == 1
        and all(
            [param.name for param in other.params] == [param.name for param in function.params] for _, other in declared
        )
        and all(param.name for param in function.params)
    )


def _first_difference(function: Function, other: Function) -> tuple[Param, Param] | None:
    """Parameters whose built-in types are not the same."""
    pairs = zip(function.params, other.params, strict=True)
    return next(((mine, theirs) for mine, theirs in pairs if types.differ(mine.type, theirs.type)), None)


def _report_type(
    project: Project,
    view: LaneView,
    path: str,
    function: Function,
    pair: tuple[Param, Param],
    declared: Candidate,
    findings: Findings,
) -> None:
    if not project.is_judged(view, path, function.line):
        return
    mine, theirs = pair
    findings.add(
        "declaration-mismatch",
        (path, function.line, function.column),
        [view.id],
        f"{mine.name or 'a parameter'!r} of {_full(function)!r} is {mine.type!r} here "
        f"and {theirs.type!r} in its declaration",
        _related([declared]),
    )


def _is_reordered(function: Function, other: Function) -> bool:
    """The same names, each once, in another order: the types may well agree and no compiler says a word."""
    left = [param.name for param in function.params]
    right = [param.name for param in other.params]
    return left != right and all(left) and sorted(left) == sorted(right) and len(set(left)) == len(left)


def _report_count(
    project: Project, view: LaneView, path: str, function: Function, declared: Sequence[Candidate], findings: Findings
) -> None:
    if not project.is_judged(view, path, function.line):
        return
    findings.add(
        "declaration-mismatch",
        (path, function.line, function.column),
        [view.id],
        f"{_full(function)!r} is defined with {_params(function)}, "
        f"but declared with {' or '.join(sorted({_params(other) for _, other in declared}))}",
        _related(declared),
    )


def _report_order(
    project: Project, view: LaneView, path: str, function: Function, declared: Candidate, findings: Findings
) -> None:
    if not project.is_judged(view, path, function.line):
        return
    order = ", ".join(param.name for param in declared[1].params)
    findings.add(
        "declaration-mismatch",
        (path, function.line, function.column),
        [view.id],
        f"the parameters of {_full(function)!r} stand in another order than in its declaration ({order})",
        _related([declared]),
    )


def _override(
    project: Project, view: LaneView, scopes: Scopes, path: str, function: Function, findings: Findings
) -> None:
    """`override` of something that no base has."""
    owner = function.scope.rpartition("::")[2]
    classes = scopes.hierarchy(owner)
    entry = scopes.only_class(owner)
    if classes is None or entry is None or not entry.bases:
        return
    members = scopes.members(owner, function.name)
    if members is None:
        return
    bases = [item for item in members if item[1].scope.rpartition("::")[2] != owner]
    if any(len(other.params) == len(function.params) for _, other in bases) or function.name.startswith(
        ("~", "operator")
    ):
        return
    if not bases and not _are_understood(project, view, classes):
        return
    if not project.is_judged(view, path, function.line):
        return
    what = (
        f"the base's {function.name!r} takes {' or '.join(sorted({_params(other) for _, other in bases}))}"
        if bases
        else "no base has it"
    )
    findings.add(
        "declaration-mismatch",
        (path, function.line, function.column),
        [view.id],
        f"{function.name!r} with {_params(function)} overrides nothing: {what}",
        _related(bases),
    )


def _are_understood(project: Project, view: LaneView, classes: set[str]) -> bool:
    """No base may get members from macros or from text that the grammar left out."""
    held = project.names(view)
    holding = {path for name in classes for path in held.files("classes", name)}
    facts = [project.facts(view, path) for path in holding]
    return not any(entry.errors or entry.problem is not None for entry in facts)


def _full(function: Function) -> str:
    return f"{function.scope}::{function.name}" if function.scope else function.name


def _params(function: Function) -> str:
    count = len(function.params)
    return f"{count} parameter{'s' if count != 1 else ''}"


def _related(entries: Iterable[Candidate]) -> list[tuple[str, int, str]]:
    return [
        (file, other.line, f"{other.name!r} is declared with {_params(other)}") for file, other in list(entries)[:3]
    ]
