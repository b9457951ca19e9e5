"""Calls that pass a number of arguments which nothing of that name takes; every call is reported, not the first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from greenlane.checks.findings import Findings
from greenlane.checks.source import vendors
from greenlane.checks.source.facts import Call, Facts, Function
from greenlane.checks.source.places import maybe_lost
from greenlane.checks.source.project import Project
from greenlane.checks.source.scope import Scopes
from greenlane.checks.source.slices import Life
from greenlane.checks.source.view import LaneView

RULES = ("call-arity",)

Candidate = tuple[str, Function]


def check_file(project: Project, path: str, findings: Findings) -> None:
    for view in project.views_of(path):
        if project.lane_files[view.id][path] == Life.LIVE:
            _file(project, view, project.scopes(view), path, findings)


def _file(project: Project, view: LaneView, scopes: Scopes, path: str, findings: Findings) -> None:
    facts = project.facts(view, path)
    macros = project.macro_names(view)
    functions = project.functions(view)
    for call in facts.calls:
        if call.name in macros:
            if call.receiver is None and not call.scope:
                _macro(project, view, path, call, findings)
        elif call.arity >= 0 and call.name in functions:
            least, most = project.arities(view, call.name)
            if least <= call.arity <= most:
                continue  # whichever is meant takes it
            candidates = _candidates(scopes, path, facts, call)
            if candidates and not any(function.accepts(call.arity) for _, function in candidates):
                _report(project, view, path, call, candidates, findings)


def _candidates(scopes: Scopes, path: str, facts: Facts, call: Call) -> Sequence[Candidate]:
    """Everything that the call may mean; empty where something unknown may be meant."""
    inside = facts.functions[call.function] if call.function >= 0 else None
    if call.receiver is not None:
        owner = scopes.receiver_class(path, facts, inside, call.receiver)
        return (scopes.members(owner, call.name) if owner else None) or ()
    if call.scope:
        return scopes.qualified(path, call.scope, call.name)
    if call.name in vendors.STANDARD_NAMES or _is_local(inside, call.name):
        return ()
    return scopes.plain(path, facts, inside, call.name)


def _is_local(function: Function | None, name: str) -> bool:
    if function is None:
        return False
    return any(local.name == name for local in function.locals) or any(param.name == name for param in function.params)


def _report(
    project: Project, view: LaneView, path: str, call: Call, candidates: Sequence[Candidate], findings: Findings
) -> None:
    if not project.is_judged(view, path, call.line) or maybe_lost(
        project, view, view.reach(path) if path in view.units else project.lane_files[view.id], call.name
    ):
        return
    if passes_macro(project, view, path, call.line, call.column):
        return
    taken = _taken(function for _, function in candidates)
    related = [
        (file, function.line, f"{function.name!r} takes {_taken([function])}") for file, function in candidates[:3]
    ]
    findings.add(
        "call-arity",
        (path, call.line, call.column),
        [view.id],
        f"{call.name!r} is given {_count(call.arity)}, but takes {taken}",
        related,
    )


def _taken(functions: Iterable[Function]) -> str:
    ranges = sorted({(function.least, -1 if function.variadic else len(function.params)) for function in functions})
    parts = [
        f"{least} or more" if most < 0 else str(least) if least == most else f"{least} to {most}"
        for least, most in ranges
    ]
    return " or ".join(parts)


def _count(number: int) -> str:
    return f"{number} argument{'s' if number != 1 else ''}"


def passes_macro(project: Project, view: LaneView, path: str, line: int, column: int) -> bool:
    """Whether an argument is a macro that holds commas: how many arguments that makes, only the preprocessor knows."""
    text = "\n".join(project.sources[path].code_lines[line - 1 : line + 40])[column - 1 :]
    start = text.find("(", text.find(">>>") + 1 if text[:200].find("<<<") >= 0 else 0)
    depth, end = 0, len(text)
    for index in range(max(start, 0), len(text)):
        depth += (text[index] == "(") - (text[index] == ")")
        if depth == 0 and index > start:
            end = index
            break
    macros = project.macro_names(view)
    words = set(re.findall(r"[A-Za-z_]\w*", text[max(start, 0) : end]))
    return any("," in define.body for word in words if word in macros for _, define, _ in macros[word])


# Macros that look like functions.


def _macro(project: Project, view: LaneView, path: str, call: Call, findings: Findings) -> None:
    known = project.macro_names(view)[call.name]
    if any(life != Life.LIVE or define.params is None or define.variadic for _, define, life in known):
        return
    if call.name in project.functions(view) and not _reads_macro(project, view, path, [file for file, _, _ in known]):
        return
    wanted = {len(define.params or ()) for _, define, _ in known}
    if call.arity in wanted:
        return
    given = _written_arguments(project, path, call)
    if given is None or given in wanted or (given == 0 and 1 in wanted) or not project.is_judged(view, path, call.line):
        return
    file, define, _ = known[0]
    findings.add(
        "call-arity",
        (path, call.line, call.column),
        [view.id],
        f"{call.name!r} is a macro here; it is given {_count(given)}, "
        f"but takes {' or '.join(map(str, sorted(wanted)))}",
        [(file, define.line, f"{call.name!r} is defined as a macro")],
    )


def _reads_macro(project: Project, view: LaneView, path: str, files: Iterable[str]) -> bool:
    reach = view.reach(path) if path in view.units else project.lane_files[view.id]
    return any(file in reach for file in files)


def _written_arguments(project: Project, path: str, call: Call) -> int | None:
    """Arguments as the preprocessor counts them: commas outside of parentheses, whatever the brackets."""
    lines = project.sources[path].code_lines
    text = "\n".join(lines[call.line - 1 : call.line + 60])[call.column - 1 + len(call.name) :].lstrip()
    if not text.startswith("("):
        return None
    depth, commas = 0, 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return commas + 1 if text[1:index].strip() else 0
        commas += char == "," and depth == 1
    return None
