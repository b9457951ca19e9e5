"""Headers of a vendor that a lane doesn't have: reached, or kept out by a condition that says nothing of the vendor."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from greenlane.checks.findings import Findings, insert
from greenlane.checks.source import expressions, vendors
from greenlane.checks.source.directives import Structure, parse_include
from greenlane.checks.source.files import SourceFile
from greenlane.checks.source.project import Project
from greenlane.checks.source.slices import Life, enclosing, include_guard
from greenlane.checks.source.view import Edge, LaneView
from greenlane.record.model import Suggestion

RULES = ("foreign-include", "guard-availability")


def check_file(project: Project, path: str, findings: Findings) -> None:
    for view in project.views_of(path):
        if path in view.unit_set:
            owners = project.once("owners", view, lambda view: _Owners(project))
            if owners[path] is None or owners[path] in view.allowed:
                _walk(project, view, path, owners, findings)


class _Owners(dict[str, str | None]):
    """The vendor of each file that is asked for."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def __missing__(self, path: str) -> str | None:
        self[path] = _owner(self._project, path)
        return self[path]


def _owner(project: Project, path: str) -> str | None:
    """Whose a file is: by its folder, or because all it takes from vendors is one vendor's, without any condition."""
    owner = vendors.of_path(path)
    file = project.sources[path]
    if owner is not None and file.is_header and _asks_for_lanes(project, file):
        return None
    if owner is not None or not file.is_header:
        return owner
    found: set[str] = set()
    guard = include_guard(file.structure)
    for directive in file.structure.directives:
        include = parse_include(directive) if directive.kind == "include" else None
        belongs = vendors.of_header(include.target) if include else frozenset()
        if include is None or not belongs:
            continue
        if [index for index, _ in enclosing(file.structure, directive.line) if guard is None or index != guard.chain]:
            return None
        found.add(next(iter(belongs)) if len(belongs) == 1 else "")
    return next(iter(found)) if len(found) == 1 and "" not in found else None


def _asks_for_lanes(project: Project, file: SourceFile) -> bool:
    """Whether a header decides by the lanes' own macros what it holds: such a one is made for all to include."""
    return any(
        expressions.names(arm.condition) & project.universe for chain in file.structure.chains for arm in chain.arms
    )


def _walk(project: Project, view: LaneView, unit: str, owned: _Owners, findings: Findings) -> None:
    parents: dict[str, tuple[str, int]] = {}
    seen = {unit}
    waiting = deque([unit])
    while waiting:
        path = waiting.popleft()
        for edge in view.edges(path):
            vendor = _foreign(view, edge, owned)
            if vendor is not None:
                if edge.life == Life.LIVE:
                    _report(project, view, path, edge, vendor, parents, findings)
                else:
                    _availability(project, view, path, edge, vendor, findings)
            elif edge.path is not None and edge.life == Life.LIVE and edge.path not in seen:
                seen.add(edge.path)
                parents[edge.path] = (path, edge.include.line)
                waiting.append(edge.path)


def _foreign(view: LaneView, edge: Edge, owned: _Owners) -> str | None:
    """The vendor of an included header, where the lane may not use it."""
    if edge.path is not None:
        owner = owned[edge.path]
        return owner if owner is not None and owner not in view.allowed else None
    belongs = vendors.of_header(edge.include.target)
    return None if not belongs or belongs & view.allowed else min(belongs)


def _report(
    project: Project,
    view: LaneView,
    path: str,
    edge: Edge,
    vendor: str,
    parents: dict[str, tuple[str, int]],
    findings: Findings,
) -> None:
    line = edge.include.line
    chain = list(_chain(path, parents))
    behind = _vendor_header_behind(project, view, edge)
    via = f", which includes {behind}" if behind else ""
    structure = project.sources[path].structure
    guards = _guards(structure, line)
    related = [(file, at, f"reached through this #include of {target}") for file, at, target in chain]
    related += [(path, at, "this guard lets it through") for at in guards[-1:]]
    findings.add(
        "foreign-include",
        (path, line, 1),
        [view.id],
        f"{edge.include.target} belongs to {vendor}{via}; lanes without {vendor} reach it",
        related,
        _suggestion(project, path, line, vendor, guarded=bool(guards)),
    )


def _chain(path: str, parents: dict[str, tuple[str, int]]) -> Iterator[tuple[str, int, str]]:
    while path in parents:
        includer, line = parents[path]
        yield includer, line, path
        path = includer


def _vendor_header_behind(project: Project, view: LaneView, edge: Edge) -> str | None:
    """The toolkit header that a project header pulls in."""
    waiting, seen = [edge.path], set()
    while waiting:
        path = waiting.pop()
        if path is None or path in seen:
            continue
        seen.add(path)
        for inner in view.edges(path):
            if (
                inner.path is None
                and vendors.of_header(inner.include.target)
                and not vendors.of_header(inner.include.target) & view.allowed
            ):
                return inner.include.target
            waiting.append(inner.path)
    return None


def _guards(structure: Structure, line: int) -> list[int]:
    guard = include_guard(structure)
    return [
        structure.chains[index].first
        for index, _ in enclosing(structure, line)
        if guard is None or index != guard.chain
    ]


def _suggestion(project: Project, path: str, line: int, vendor: str, guarded: bool) -> Suggestion | None:
    macro = _macro_of(project, vendor)
    if macro is None:
        return Suggestion(text=f"guard it by what makes {vendor} available")
    if guarded:
        return Suggestion(text=f"let the guard ask for defined({macro})")
    edits = (insert(path, line, f"#ifdef {macro}"), insert(path, line + 1, "#endif"))
    return Suggestion(text=f"guard it by #ifdef {macro}", edits=edits)


def _macro_of(project: Project, vendor: str) -> str | None:
    """A macro that is on in exactly the lanes that have a vendor."""
    having = {view.id for view in project.views if vendor in view.allowed}
    for name in sorted(project.universe):
        if {view.id for view in project.views if view.lane.macros.get(name) not in (None, "0")} == having and having:
            return name
    return None


def _availability(project: Project, view: LaneView, path: str, edge: Edge, vendor: str, findings: Findings) -> None:
    """The condition asks for a platform or for a file that happens to be there, not for the vendor."""
    structure = project.sources[path].structure
    arms = view.slice(path).arms
    for index, position in enclosing(structure, edge.include.line):
        if arms[index][position] != Life.UNSURE:
            continue
        text = structure.chains[index].arms[position].condition
        if not _asks_for_presence(text):
            return
        directive = structure.directives[structure.chains[index].arms[position].directive]
        findings.add(
            "guard-availability",
            (path, directive.line, 1),
            [view.id],
            f"{edge.include.target} of {vendor} is taken whenever `{text}` holds, also in lanes without {vendor}",
            [(path, edge.include.line, "included here")],
            Suggestion(
                text=f"ask for {_macro_of(project, vendor) or 'the macro that turns ' + vendor + ' on'} as well"
            ),
        )
        return


def _asks_for_presence(text: str) -> bool:
    names = expressions.names(text)
    return ("__has_include" in text and not names) or (
        bool(names) and all(map(vendors.is_platform, names)) and not re.search(r"__has", text)
    )
