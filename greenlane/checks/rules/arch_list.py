"""GPU targets in build scripts: unknown, misspelt, too new for the compiler, or fewer than the matrix builds for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import NamedTuple

from greenlane.checks.findings import Findings
from greenlane.checks.source import vendors
from greenlane.checks.source.files import is_build_script
from greenlane.checks.source.project import Project
from greenlane.checks.source.view import LaneView
from greenlane.matrix.globs import first_match
from greenlane.matrix.targets import compiler_is_unfit, targets

RULES = ("arch-list",)

_VARIABLES = (
    r"GPU_TARGETS|AMDGPU_TARGETS|HIP_ARCHITECTURES|CMAKE_HIP_ARCHITECTURES|PYTORCH_ROCM_ARCH|GPU_ARCHS|ROCM_ARCH"
    r"|HCC_AMDGPU_TARGET|HIP_ARCH\w*"
)
_LIST = re.compile(rf"\b({_VARIABLES})\b[\s=:\"']+((?:gfx[0-9a-f]+(?:-generic)?(?:[:;,+\-\w]*)[;,\s\"']*)+)")
_GFX = re.compile(r"(?<![\w.])gfx[0-9][0-9a-z]*(?:-[0-9])?(?:-generic)?(?![\w*\[.?(|-])")
# Targets of old cards, which the table of today's targets leaves out.
_OLD = frozenset(
    """gfx600 gfx601 gfx602 gfx700 gfx701 gfx702 gfx703 gfx704 gfx705 gfx801 gfx802 gfx803 gfx805 gfx810 gfx940 gfx941
    gfx1250 gfx1251""".split()
)


class _Listed(NamedTuple):
    path: str
    line: int
    column: int
    variable: str
    names: tuple[str, ...]


def is_touched(project: Project, changed: Iterable[str]) -> bool:
    return False  # no source is read


def check_tree(project: Project, findings: Findings) -> None:
    amd = [view for view in project.views if vendors.HIP in view.allowed]
    lists: list[_Listed] = []
    for path, data in sorted(project.files.others.items()):
        if not is_build_script(path) or first_match(project.config.vendored, path) is not None or b"gfx" not in data:
            continue
        lines = data.decode("utf-8", "replace").split("\n")
        for number, text in enumerate(lines, 1):
            code = text.partition("#")[0]
            _unknown(project, path, number, code, findings)
            lists += _lists(path, number, code)
    _missing(lists, amd, findings)
    _too_new(lists, amd, findings)


def _lists(path: str, number: int, code: str) -> Iterator[_Listed]:
    for match in _LIST.finditer(code):
        names = tuple(_GFX.findall(match.group(2)))
        if names:
            yield _Listed(path, number, match.start(2) + 1, match.group(1), names)


def _unknown(project: Project, path: str, number: int, code: str, findings: Findings) -> None:
    declared = {arch for lane in project.lanes for arch in (*lane.archs, lane.arch or "")}
    known = {name for name, target in targets().items() if target.vendor == "amd"} | _OLD | declared
    for match in _GFX.finditer(code):
        name = match.group()
        if name in known or any(other.startswith(name) for other in known):
            continue
        near = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
        findings.add(
            "arch-list",
            (path, number, match.start() + 1),
            [view.id for view in project.views if vendors.HIP in view.allowed] or [view.id for view in project.views],
            f"no compiler knows the target {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""),
        )


def _missing(lists: Iterable[_Listed], views: Iterable[LaneView], findings: Findings) -> None:
    """A list that names cards, none of them a lane's, in a build that the matrix does not override."""
    groups: dict[tuple[str, str], list[_Listed]] = {}
    for entry in lists:
        groups.setdefault((entry.path, entry.variable), []).append(entry)
    for (path, variable), entries in groups.items():
        named = {name for entry in entries for name in entry.names}
        for view in views:
            wanted = [
                arch
                for arch in view.lane.archs or (view.lane.arch or "",)
                if arch.startswith("gfx") and arch not in named
            ]
            if not wanted or _is_overridden(view, variable) or _covers(named, wanted):
                continue
            findings.add(
                "arch-list",
                (path, entries[0].line, entries[0].column),
                [view.id],
                f"{variable} lists {', '.join(entries[0].names)} and lacks {', '.join(wanted)}, "
                "which the matrix builds for",
            )


def _is_overridden(view: LaneView, variable: str) -> bool:
    given = {*view.lane.defines, *view.lane.env}
    related = {"GPU_TARGETS", "AMDGPU_TARGETS", "CMAKE_HIP_ARCHITECTURES", "HIP_ARCHITECTURES"}
    return variable in given or (variable in related and bool(related & given))


def _covers(named: set[str], wanted: Iterable[str]) -> bool:
    """Whether generic targets among the listed ones run on all of the wanted."""
    families = {targets()[name].family for name in named if name.endswith("-generic") and name in targets()}
    return all(arch in targets() and targets()[arch].family in families for arch in wanted)


def _too_new(lists: Iterable[_Listed], views: Iterable[LaneView], findings: Findings) -> None:
    for entry in lists:
        for view in views:
            compiler, version = _compiler(view)
            for name in entry.names:
                target = targets().get(name)
                reason = compiler_is_unfit(target, compiler, version) if target else None
                if reason is not None:
                    findings.add(
                        "arch-list",
                        (entry.path, entry.line, entry.column),
                        [view.id],
                        f"{entry.variable} lists {name}, which {view.lane.compiler} does not know: {reason}",
                    )


def _compiler(view: LaneView) -> tuple[str | None, str | None]:
    """`clang-14` names its version; otherwise the lane's compiler version or toolkit does."""
    name = view.lane.compiler
    match = re.fullmatch(r"([a-z+]+?)-?(\d+(?:\.\d+)*)", name or "")
    if match:
        return match.group(1).rstrip("+"), match.group(2)
    return name, view.lane.compiler_version or view.lane.toolkit
