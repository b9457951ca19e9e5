"""A vendor's name in shared code that the lane's alias header doesn't map to its own vendor's."""

from __future__ import annotations

from collections.abc import Iterable

from greenlane.checks.findings import Findings
from greenlane.checks.source import vendors
from greenlane.checks.source.parse import IDENTIFIER
from greenlane.checks.source.places import occurrences
from greenlane.checks.source.project import Project
from greenlane.checks.source.slices import Life
from greenlane.checks.source.view import LaneView
from greenlane.matrix.globs import first_match
from greenlane.record.model import Suggestion

RULES = ("alias-gap",)

_FEWEST = 2  # aliases that make a header a table


def check(project: Project, findings: Findings) -> None:
    known = _declared_anywhere(project)
    for view in project.views:
        if view.allowed and vendors.CUDA not in view.allowed:
            _lane(project, view, known, findings)


def _declared_anywhere(project: Project) -> set[str]:
    """Names that look like a vendor's and are the project's own."""
    names: set[str] = set()
    for view in project.views:
        for path in project.lane_files[view.id]:
            names |= {name for name in project.facts(view, path).names if vendors.of_name(name) is not None}
    return names


def _lane(project: Project, view: LaneView, known: set[str], findings: Findings) -> None:
    reach = project.lane_files[view.id]
    tables = _tables(project, view, reach)
    if not tables:
        return  # without a table the sources are translated before they are compiled
    for path, life in reach.items():
        owner = vendors.of_path(path)
        if life != Life.LIVE or (owner is not None and owner not in view.allowed):
            continue
        for name in project.facts(view, path).tokens:
            vendor = vendors.of_name(name) if name[0] in "cCn_" else None
            if vendor is None or vendor in view.allowed or name in known or name in project.macro_names(view):
                continue
            for place in occurrences(project, view, path, name):
                if _is_swallowed(project, view, path, place[0]):
                    continue
                _report(view, path, place, name, vendor, tables, findings)


def _is_swallowed(project: Project, view: LaneView, path: str, line: int) -> bool:
    """Whether a macro that drops arguments stands on the line: `#define cublasSetMathMode(handle, mode) OK`."""
    macros = project.macro_names(view)
    for name in IDENTIFIER.findall(project.sources[path].code_lines[line - 1]):
        for _, define, life in macros.get(name, ()):
            if life != Life.DEAD and define.params and not set(define.params) <= set(IDENTIFIER.findall(define.body)):
                return True
    return False


def _tables(project: Project, view: LaneView, reach: Iterable[str]) -> list[str]:
    """Headers that give a foreign vendor's names a meaning."""
    found = []
    for path in reach:
        if project.config.alias_headers and first_match(project.config.alias_headers, path) is not None:
            found.append(path)
            continue
        aliases = [
            define.name
            for define, life in view.slice(path).defines
            if life != Life.DEAD and (vendor := vendors.of_name(define.name)) is not None and vendor not in view.allowed
        ]
        if len(aliases) >= _FEWEST:
            found.append(path)
    return sorted(found)


def _report(
    view: LaneView, path: str, place: tuple[int, int], name: str, vendor: str, tables: list[str], findings: Findings
) -> None:
    findings.add(
        "alias-gap",
        (path, *place),
        [view.id],
        f"{name!r} is a name of {vendor} that no alias gives a meaning in this lane",
        [(table, 1, "maps other names") for table in tables],
        Suggestion(text=f"add {name!r} to {tables[0]}"),
    )
