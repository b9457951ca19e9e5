"""Functions, parameters and locals that a lane's build never reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from greenlane.checks.findings import Findings, replaced
from greenlane.checks.guarding import guard_suggestion
from greenlane.checks.source.facts import Facts, Function, Local, Param, Trait
from greenlane.checks.source.parse import IDENTIFIER
from greenlane.checks.source.project import Project
from greenlane.checks.source.slices import Life
from greenlane.checks.source.view import LaneView
from greenlane.record.model import Suggestion

RULES = ("unused-function", "unused-variable", "unused-parameter")

_EXEMPT = Trait.TEMPLATE | Trait.MEMBER | Trait.MAYBE_UNUSED | Trait.SPECIALIZATION | Trait.OPERATOR | Trait.FRIEND
_FIXED_SIGNATURE = Trait.VIRTUAL | Trait.OVERRIDE | Trait.OPERATOR | Trait.BODILESS
_TEXTUAL = (".inc", ".inl", ".def", ".ipp", ".tpp")


def check_file(project: Project, path: str, findings: Findings) -> None:
    lanes = [view for view in project.views_of(path) if project.lane_files[view.id][path] == Life.LIVE]
    if lanes:
        _functions(project, path, lanes, findings)
        _parameters(project, path, lanes, findings)
        _variables(project, path, lanes, findings)


# Functions.


def _functions(project: Project, path: str, lanes: list[LaneView], findings: Findings) -> None:
    unused: dict[tuple[str, int], list[tuple[LaneView, Function]]] = {}
    clusters: dict[tuple[str, int], set[str]] = {}
    is_header = project.sources[path].is_header
    for view in lanes:
        facts = project.facts(view, path)
        internal = [
            function for function in facts.functions if function.has(Trait.INTERNAL) and function.has(Trait.DEFINITION)
        ]
        if not internal or facts.problem is not None:
            continue
        dead = _unreached(internal, _roots(project, view, path, facts, {function.name for function in internal}))
        for function in dead:
            if _is_reported(project, view, path, function, is_header):
                key = (function.name, function.line)
                unused.setdefault(key, []).append((view, function))
                clusters.setdefault(key, set()).update(
                    other.name for other in dead if other.name != function.name and function.name in other.tokens
                )
    for (name, line), entries in unused.items():
        _report(project, path, name, line, entries, sorted(clusters[(name, line)]), findings)


def _roots(project: Project, view: LaneView, path: str, facts: Facts, names: set[str]) -> set[str]:
    """Which of these are mentioned outside of the file's internal functions: other code, macros, what is read along."""
    roots = names & facts.outside
    for define, _ in view.slice(path).defines:
        roots.update(names.intersection(IDENTIFIER.findall(define.body)))
    others: set[str] = set()
    if project.sources[path].is_header or path.endswith(_TEXTUAL):
        for unit in project.units_reaching(view, path):
            others.update(view.reach(unit))
    else:
        others.update(view.reach(path))
    others.discard(path)
    for other in sorted(others):
        if roots >= names:
            break
        roots |= names & project.facts(view, other).tokens
        for define, _ in view.slice(other).defines:
            roots.update(names.intersection(IDENTIFIER.findall(define.body)))
    return roots


def _unreached(internal: list[Function], roots: set[str]) -> list[Function]:
    by_name: dict[str, list[Function]] = {}
    for function in internal:
        by_name.setdefault(function.name, []).append(function)
    waiting = [name for name in by_name if name in roots]
    reached = set(waiting)
    while waiting:
        for function in by_name[waiting.pop()]:
            for name in function.tokens:
                if name in by_name and name not in reached:
                    reached.add(name)
                    waiting.append(name)
    return [function for function in internal if function.name not in reached]


def _is_reported(project: Project, view: LaneView, path: str, function: Function, is_header: bool) -> bool:
    if function.traits & _EXEMPT or function.name == "main" or not project.is_judged(view, path, function.line):
        return False
    facts = project.facts(view, path)
    if (facts.errors or facts.gaps) and project.sources[path].raw_lines[function.first - 1][:1].isspace():
        return False  # perhaps a static member of a class that the grammar lost
    if is_header and function.traits & (Trait.INLINE | Trait.DEVICE | Trait.KERNEL):
        return False
    return not function.has(Trait.INLINE) or (view.lane.compiler or "").startswith(("clang", "hipcc"))


def _report(
    project: Project,
    path: str,
    name: str,
    line: int,
    entries: list[tuple[LaneView, Function]],
    callers: list[str],
    findings: Findings,
) -> None:
    function = entries[0][1]
    dead = {view.id for view, _ in entries}
    who = "clang warns" if function.has(Trait.INLINE) else "gcc and clang warn"
    message = f"function {name!r} is defined but never used; {who} (-Wunused-function)"
    if callers:
        message += (
            f"; only {', '.join(map(repr, callers))} mention{'s' if len(callers) == 1 else ''} it, unused as well"
        )
    uses = [(use, "used here in other lanes") for use in _uses(project, path, function)]
    suggestion = guard_suggestion(project, path, function.first, function.last, [use for use, _ in uses], dead)
    findings.add(
        "unused-function",
        (path, line, function.column),
        dead,
        message,
        [(path, use, text) for use, text in uses[:3]],
        suggestion or Suggestion(text=f"remove {name!r}, or guard it like its uses"),
    )


def _uses(project: Project, path: str, function: Function) -> list[int]:
    """Lines of the whole file, any lane, that mention a function outside of itself."""
    pattern = re.compile(rf"\b{re.escape(function.name)}\b")
    lines = project.sources[path].code_lines
    return [
        number
        for number, line in enumerate(lines, 1)
        if pattern.search(line) and not function.first <= number <= function.last
    ]


# Parameters.


def _parameters(project: Project, path: str, lanes: list[LaneView], findings: Findings) -> None:
    unused: dict[tuple[str, int, int], list[tuple[LaneView, Function, Param]]] = {}
    used: dict[tuple[str, str, str], set[str]] = {}
    for view in lanes:
        macros = _LazyMacros(project, view)
        for function in project.facts(view, path).functions:
            if not function.has(Trait.DEFINITION) or not function.body or function.traits & _FIXED_SIGNATURE:
                continue
            for param in function.params:
                if not param.name or param.maybe_unused:
                    continue
                if param.name in function.tokens or macros.mention(function.tokens, param.name):
                    used.setdefault((function.scope, function.name, param.name), set()).add(view.id)
                elif _is_whole(project, view, path, function):
                    unused.setdefault((param.name, param.line, param.column), []).append((view, function, param))
    for (name, line, column), entries in unused.items():
        _report_parameter(project, path, (name, line, column), entries, used, findings)


def _report_parameter(
    project: Project,
    path: str,
    key: tuple[str, int, int],
    entries: list[tuple[LaneView, Function, Param]],
    used: dict[tuple[str, str, str], set[str]],
    findings: Findings,
) -> None:
    name, line, column = key
    _, function, _ = entries[0]
    lanes = {view.id for view, _, _ in entries}
    drifts = bool(used.get((function.scope, function.name, name), set()) - lanes)
    if not drifts and function.tokens:
        return  # unread in every lane beside code that reads others: style, not a difference between lanes
    findings.add(
        "unused-parameter",
        (path, line, column),
        lanes,
        f"parameter {name!r} of {function.name!r} is never read; gcc and clang warn (-Wunused-parameter)",
        suggestion=_annotate(project, path, line, column)
        if drifts
        else Suggestion(text=f"leave the name {name!r} out"),
        severity=None if drifts else "note",
    )


def _annotate(project: Project, path: str, line: int, column: int) -> Suggestion:
    """`[[maybe_unused]]` in front of the declaration that holds this name."""
    text = project.sources[path].raw_lines[line - 1]
    start = max(text.rfind("(", 0, column - 1), text.rfind(",", 0, column - 1), text.rfind(";", 0, column - 1)) + 1
    while start < len(text) and text[start].isspace():
        start += 1
    new = text[:start] + "[[maybe_unused]] " + text[start:]
    edits = (replaced(path, line, new.rstrip()),) if new.isascii() else ()
    return Suggestion(text="mark it [[maybe_unused]]", edits=edits)


def _is_whole(project: Project, view: LaneView, path: str, function: Function) -> bool:
    """Whether all of a function is certain in this lane."""
    facts = project.facts(view, path)
    if any(first <= function.last and last >= function.first for first, last in facts.errors):
        return False
    if not project.is_judged(view, path, function.line):
        return False
    return not any(
        life == Life.UNSURE and first <= function.last and last >= function.first
        for first, last, life in view.line_life(path).ranges
    )


class _LazyMacros:
    """Identifiers that the macros used in a function bring along."""

    def __init__(self, project: Project, view: LaneView) -> None:
        self._defined = project.macro_names(view)

    def mention(self, tokens: Iterable[str], name: str) -> bool:
        seen: set[str] = set()
        waiting = [token for token in tokens if token in self._defined]
        while waiting:
            macro = waiting.pop()
            if macro in seen:
                continue
            seen.add(macro)
            for _, define, _ in self._defined[macro]:
                inside = IDENTIFIER.findall(define.body)
                if name in inside:
                    return True
                waiting += [token for token in inside if token in self._defined and token not in seen]
        return False


# Locals.


def _variables(project: Project, path: str, lanes: list[LaneView], findings: Findings) -> None:
    for view in lanes:
        macros = _LazyMacros(project, view)
        for function in project.facts(view, path).functions:
            for local in _candidates(function):
                if macros.mention(function.tokens, local.name) or not _is_whole(project, view, path, function):
                    continue
                findings.add(
                    "unused-variable",
                    (path, local.line, local.column),
                    [view.id],
                    f"variable {local.name!r} is never read; gcc and clang warn (-Wunused-variable)",
                    suggestion=_annotate(project, path, local.line, local.column),
                )


def _candidates(function: Function) -> Iterator[Local]:
    for local in function.locals:
        if local.plain and local.mentions == 1 and not local.maybe_unused:
            yield local
