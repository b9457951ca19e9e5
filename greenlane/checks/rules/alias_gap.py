"""A vendor's name in shared code that the lane's alias header doesn't map to its own vendor's."""

from __future__ import annotations

from collections import Counter

from greenlane.checks.findings import Findings
from greenlane.checks.source import vendors
from greenlane.checks.source.includes import is_standard
from greenlane.checks.source.parse import IDENTIFIER
from greenlane.checks.source.places import occurrences
from greenlane.checks.source.project import Project
from greenlane.checks.source.slices import Life
from greenlane.checks.source.view import LaneView
from greenlane.matrix.globs import first_match
from greenlane.record.model import Suggestion

RULES = ("alias-gap",)

_FEWEST = 2  # aliases that make a header a table


def check_file(project: Project, path: str, findings: Findings) -> None:
    owner = vendors.of_path(path)
    for view in project.views_of(path):
        if project.lane_files[view.id][path] != Life.LIVE or (owner is not None and owner not in view.allowed):
            continue
        tables = project.once("alias tables", view, lambda view: _tables(project, view)) if view.allowed else []
        if view.allowed and vendors.CUDA not in view.allowed and not tables:
            continue  # the sources are translated before they are compiled
        _names(project, view, path, tables, findings)


def _names(project: Project, view: LaneView, path: str, tables: list[str], findings: Findings) -> None:
    for name in sorted(project.facts(view, path).tokens):
        vendor = vendors.of_name(name) if name[0] in "cChHmMnr_" else None
        if vendor is None or vendor in view.allowed or name in project.macro_names(view):
            continue
        if _is_own(project, view, path, name) or not (tables or _knows_all(project, view, path)):
            continue
        for place in occurrences(project, view, path, name):
            if not _is_swallowed(project, view, path, place[0]):
                _report(view, path, place, name, vendor, tables, findings)


def _is_own(project: Project, view: LaneView, path: str, name: str) -> bool:
    """Whether a name that looks like a vendor's is declared somewhere in the project."""
    if any(project.names(other).has(kind, name) for other in project.views for kind in ("functions", "objects")):
        return True
    return any(
        name in {param.name for param in function.params} or name in {local.name for local in function.locals}
        for function in project.facts(view, path).functions
    )


def _knows_all(project: Project, view: LaneView, path: str) -> bool:
    """Whether all that may be read along with a file is the project's, the language's or one of the lane's vendors'."""
    units = [path] if path in view.unit_set else project.units_reaching(view, path)
    targets = view.externals({file for unit in units for file in view.reach(unit)})
    return all(is_standard(target) or vendors.of_header(target) & view.allowed for target in targets)


def _is_swallowed(project: Project, view: LaneView, path: str, line: int) -> bool:
    """Whether a macro that drops arguments stands on the line: `#define cublasSetMathMode(handle, mode) OK`."""
    macros = project.macro_names(view)
    for name in IDENTIFIER.findall(project.sources[path].code_lines[line - 1]):
        for _, define, life in macros.of(name):
            if life != Life.DEAD and define.params and not set(define.params) <= set(IDENTIFIER.findall(define.body)):
                return True
    return False


def _tables(project: Project, view: LaneView) -> list[str]:
    """Headers that give a foreign vendor's names a meaning."""
    declared = project.config.alias_headers
    found = {path for path in project.lane_files[view.id] if declared and first_match(declared, path) is not None}
    aliases: Counter[str] = Counter()
    for name in project.names(view).all("macros"):
        vendor = vendors.of_name(name)
        if vendor is not None and vendor not in view.allowed:
            aliases.update(path for path, _, life in project.macro_names(view)[name] if life != Life.DEAD)
    return sorted(found | {path for path, count in aliases.items() if count >= _FEWEST})


def _report(
    view: LaneView, path: str, place: tuple[int, int], name: str, vendor: str, tables: list[str], findings: Findings
) -> None:
    findings.add(
        "alias-gap",
        (path, *place),
        [view.id],
        f"{name!r} is a name of {vendor} that no alias gives a meaning in this lane"
        if tables
        else f"{name!r} is a name of {vendor}, which this lane doesn't have",
        [(table, 1, "maps other names") for table in tables],
        Suggestion(text=f"add {name!r} to {tables[0]}" if tables else f"guard it by what makes {vendor} available"),
    )
