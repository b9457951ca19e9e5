"""Guards that keep a header from being read twice: mismatched, shared by two headers, or absent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from greenlane.checks.findings import Findings
from greenlane.checks.source.files import SourceFile
from greenlane.checks.source.project import Project
from greenlane.checks.source.slices import Guard, include_guard

RULES = ("header-guard",)

_HEADERS = frozenset({".h", ".hpp", ".hh", ".hxx", ".cuh"})
_DEFINES_TWICE = re.compile(r"^\s*(?:template\s*<.*>\s*)?(?:struct|class|enum(?:\s+class)?|union)\s+\w+[^;()]*\{", re.M)


def is_touched(project: Project, changed: Iterable[str]) -> bool:
    return any(project.sources[path].is_header for path in changed)


def check_tree(project: Project, findings: Findings) -> None:
    guards: dict[str, list[tuple[str, Guard]]] = {}
    near = {path.rpartition("/")[0] for path in project.read_files}
    for path, file in sorted(project.sources.items()):
        if PurePosixPath(path).suffix not in _HEADERS or path.rpartition("/")[0] not in near:
            continue
        if file.structure.strays or file.problem is not None:
            continue
        guard = include_guard(file.structure)
        if guard is None:
            _missing(project, path, file, findings)
        elif guard.name != guard.defined:
            _mismatch(project, path, file, guard, findings)
        elif not _is_once(file):
            guards.setdefault(guard.name, []).append((path, guard))
    for name, holders in guards.items():
        if len(holders) > 1:
            _collision(project, name, holders, findings)


def _lanes(project: Project, path: str) -> list[str]:
    """The lanes that read a header; all of them where none does."""
    reading = [view.id for view in project.views if path in project.lane_files[view.id]]
    return reading or [view.id for view in project.views]


def _is_once(file: SourceFile) -> bool:
    return any(
        directive.kind == "pragma" and directive.argument.startswith("once") for directive in file.structure.directives
    )


def _mismatch(project: Project, path: str, file: SourceFile, guard: Guard, findings: Findings) -> None:
    if _is_once(file) or SequenceMatcher(None, guard.name, guard.defined).ratio() < 0.6:
        return
    findings.add(
        "header-guard",
        (path, guard.line, 1),
        _lanes(project, path),
        f"the guard tests {guard.name} and defines {guard.defined}, so the header is read as often as it is included",
    )


def _missing(project: Project, path: str, file: SourceFile, findings: Findings) -> None:
    """Only where one more #include breaks a build: a type is defined and two files take the header in."""
    if (
        _is_once(file)
        or not _DEFINES_TWICE.search(file.text.code)
        or any(define for define in file.structure.chains[:1] if define.first < 3)
    ):
        return
    twice = [view for view in project.views if _including(project, view.id, path) > 1]
    if not twice:
        return
    findings.add(
        "header-guard",
        (path, 1, 1),
        [view.id for view in twice],
        "the header has no guard, defines types and is included by more than one header",
        severity="note",
    )


def _including(project: Project, lane: str, path: str) -> int:
    view = project.view(lane)
    includers = {
        other
        for other in project.lane_files[lane]
        if project.sources[other].is_header and any(edge.path == path for edge in view.edges(other))
    }
    return len(includers)


def _collision(project: Project, name: str, holders: list[tuple[str, Guard]], findings: Findings) -> None:
    owner = max(holders, key=lambda holder: _likeness(name, holder[0]))
    for path, guard in holders:
        if path == owner[0] or not _may_meet(project, path, owner[0]):
            continue
        findings.add(
            "header-guard",
            (path, guard.line, 1),
            _lanes(project, path),
            f"the guard {name} is also that of {owner[0]}: whoever includes both gets one of them",
            [(owner[0], owner[1].line, f"{name} guards this header too")],
        )


def _likeness(name: str, path: str) -> float:
    """How well a guard's name fits a file."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    ends = re.sub(r"[^a-z0-9]", "", PurePosixPath(path).name.lower())
    return SequenceMatcher(None, plain, ends).ratio() + (1 if plain.endswith(ends) else 0) - len(path) / 10_000


def _may_meet(project: Project, one: str, other: str) -> bool:
    """Twins of one name are chosen by the include path; they collide only where a unit reads both."""
    if PurePosixPath(one).name != PurePosixPath(other).name:
        return not _apart(one, other) or _met(project, one, other)
    return _met(project, one, other)


def _apart(one: str, other: str) -> bool:
    """Whether two headers belong to different top folders: two libraries that happen to lie in one tree."""
    return PurePosixPath(one).parts[:1] != PurePosixPath(other).parts[:1]


def _met(project: Project, one: str, other: str) -> bool:
    return any(one in view.reach(unit) and other in view.reach(unit) for view in project.views for unit in view.units)
