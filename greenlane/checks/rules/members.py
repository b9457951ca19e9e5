"""Members that a class has in other lanes only: guarded out of this lane, and called all the same."""

from __future__ import annotations

import re

from greenlane.checks.findings import Findings
from greenlane.checks.source.facts import Function, Trait
from greenlane.checks.source.project import Project
from greenlane.checks.source.slices import Life
from greenlane.checks.source.view import LaneView

RULES = ("link-presence",)


def check_file(project: Project, path: str, findings: Findings) -> None:
    for view in project.views_of(path):
        if project.lane_files[view.id][path] == Life.LIVE:
            _lost_members(project, view, path, findings)


def _lost_members(project: Project, view: LaneView, path: str, findings: Findings) -> None:
    scopes = project.scopes(view)
    facts = project.facts(view, path)
    for call in facts.calls:
        if not call.receiver:
            continue
        inside = facts.functions[call.function] if call.function >= 0 else None
        owner = scopes.receiver_class(path, facts, inside, call.receiver)
        if owner is None or scopes.hierarchy(owner) is None or scopes.members(owner, call.name) != []:
            continue
        there = _member_elsewhere(project, view, owner, call.name)
        if there is None or _mentions(project, view, owner, call.name):
            continue
        if project.is_judged(view, path, call.line):
            file, function = there
            findings.add(
                "link-presence",
                (path, call.line, call.column),
                [view.id],
                f"{owner!r} has no member {call.name!r} in this lane",
                [(file, function.line, f"{call.name!r} is declared here, for other lanes")],
            )


def _mentions(project: Project, view: LaneView, owner: str, name: str) -> bool:
    """Whether a file that holds the class or one of its bases mentions the name at all."""
    classes = project.scopes(view).hierarchy(owner) or set()
    holding = {path for entry in classes for path in project.names(view).files("classes", entry)}
    return any(name in _member_tokens(project, view, path, classes) for path in holding)


def _member_tokens(project: Project, view: LaneView, path: str, classes: set[str]) -> set[str]:
    """Identifiers between the braces of these classes, on lines that the lane may compile."""
    found: set[str] = set()
    lines = project.sources[path].code_lines
    for entry in project.facts(view, path).classes:
        if entry.name in classes:
            for number in range(entry.line, entry.last + 1):
                if view.life(path, number) != Life.DEAD:
                    found.update(re.findall(r"[A-Za-z_]\w*", lines[number - 1]))
    return found


def _member_elsewhere(project: Project, view: LaneView, owner: str, name: str) -> tuple[str, Function] | None:
    for other in project.views:
        for file, function in project.functions(other).of(name):
            if other.id != view.id and function.has(Trait.MEMBER) and function.scope.rpartition("::")[2] == owner:
                return file, function
    return None
