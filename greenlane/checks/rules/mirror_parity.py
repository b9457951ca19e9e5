"""Twins of two vendors that drifted apart: parameters, order, types, defaults; functions that one lacks; answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from greenlane.checks.findings import Findings
from greenlane.checks.source import types, vendors
from greenlane.checks.source.facts import Function, Trait
from greenlane.checks.source.project import Project
from greenlane.matrix.checks import Mirror
from greenlane.matrix.globs import first_match

RULES = ("mirror-parity",)

_VENDOR_WORD = re.compile(r"cuda|hip|rocm|musa|metal", re.I)
_LIBRARY = re.compile(r"\b(?:cu|hip|roc|mu)(?=blas|fft|rand|sparse|solver|dnn)", re.I)

Site = tuple[str, Function]


def is_touched(project: Project, changed: Iterable[str]) -> bool:
    sides = [side for mirror in project.config.mirrors for side in (mirror.left, mirror.right)]
    if any(side.startswith("namespace ") for side in sides):
        return True
    return any(
        first_match(tuple(sides), path) is not None if sides else vendors.of_path(path) is not None for path in changed
    )


def check_tree(project: Project, findings: Findings) -> None:
    twins = [] if project.config.mirrors else list(_twin_folders(project))
    functions = list(_all_functions(project, _mirrored(project, twins)))
    for mirror in project.config.mirrors:
        left = [site for site in functions if _is_on(mirror.left, site)]
        right = [site for site in functions if _is_on(mirror.right, site)]
        _compare(project, mirror, left, right, findings)
    for one, other in twins:
        mirror = Mirror(left=one[0], right=other[0], complete=False, ignore=())
        _compare(project, mirror, _in_files(functions, one), _in_files(functions, other), findings)


def _mirrored(project: Project, twins: list[tuple[list[str], list[str]]]) -> list[str]:
    """The files in which a side of a mirror may stand."""
    if not project.config.mirrors:
        return sorted({path for pair in twins for side in pair for path in side})
    sides = tuple(side for mirror in project.config.mirrors for side in (mirror.left, mirror.right))
    if any(side.startswith("namespace ") for side in sides):
        return list(project.read_files)
    return [path for path in project.read_files if first_match(sides, path) is not None]


def _all_functions(project: Project, files: Iterable[str]) -> Iterator[Site]:
    """Each function of these files once, whatever the lanes that see it."""
    seen: set[tuple[str, int, str]] = set()
    for path in files:
        for view in project.views_of(path):
            for function in project.facts(view, path).functions:
                key = (path, function.line, function.name)
                if key not in seen and not function.traits & (
                    Trait.INTERNAL | Trait.KERNEL | Trait.SPECIALIZATION | Trait.OPERATOR
                ):
                    seen.add(key)
                    yield path, function


def _is_on(side: str, site: Site) -> bool:
    path, function = site
    if side.startswith("namespace "):
        wanted = side.removeprefix("namespace ").strip()
        return function.scope == wanted or function.scope.startswith(wanted + "::")
    return first_match((side,), path) is not None


def _twin_folders(project: Project) -> Iterator[tuple[list[str], list[str]]]:
    """Headers of one name in folders that differ by the vendor alone."""
    groups: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for path in project.read_files:
        vendor = vendors.of_path(path)
        if vendor is not None and project.sources[path].is_header:
            groups.setdefault(tuple(_plain(part) for part in PurePosixPath(path).parts), {}).setdefault(
                vendor, []
            ).append(path)
    for sides in groups.values():
        names = sorted(sides)
        for index, one in enumerate(names):
            for other in names[index + 1 :]:
                yield sides[one], sides[other]


def _in_files(functions: Iterable[Site], files: list[str]) -> list[Site]:
    return [site for site in functions if site[0] in files]


def _plain(text: str) -> str:
    """A name or type without its vendor."""
    return _LIBRARY.sub("#", _VENDOR_WORD.sub("#", text)).lower()


def _by_name(sites: Iterable[Site]) -> dict[tuple[str, str], list[Site]]:
    found: dict[tuple[str, str], list[Site]] = {}
    for path, function in sites:
        found.setdefault((_owner(function), _plain(function.name)), []).append((path, function))
    return found


def _owner(function: Function) -> str:
    """The class of a member, without its vendor; free functions have none, for their namespaces may differ."""
    return _plain(function.scope.rpartition("::")[2]) if function.has(Trait.MEMBER) else ""


def _compare(project: Project, mirror: Mirror, left: list[Site], right: list[Site], findings: Findings) -> None:
    ours, theirs = _by_name(left), _by_name(right)
    for name, sites in ours.items():
        if name in theirs:
            _signatures(project, sites, theirs[name], findings)
        elif mirror.complete and right:
            _absent(project, mirror, sites[0], mirror.right, right[0], findings)
    for name, sites in theirs.items():
        if name not in ours and mirror.complete and left:
            _absent(project, mirror, sites[0], mirror.left, left[0], findings)


def _absent(project: Project, mirror: Mirror, site: Site, side: str, neighbour: Site, findings: Findings) -> None:
    path, function = site
    if function.name in mirror.ignore or function.has(Trait.CONSTRUCTOR):
        return
    findings.add(
        "mirror-parity",
        (neighbour[0], 1, 1),
        _lanes(project, neighbour[0]),
        f"{side} has no twin of {function.name!r}",
        [(path, function.line, f"{function.name!r} is declared here")],
    )


def _signatures(project: Project, left: list[Site], right: list[Site], findings: Findings) -> None:
    """Only where each side has one signature: overloads are compared by nobody."""
    if (
        len({_signature(function) for _, function in left}) != 1
        or len({_signature(function) for _, function in right}) != 1
    ):
        return
    (left_path, one), (right_path, other) = _declared(left), _declared(right)
    difference = _difference(one, other)
    if difference is None:
        _answers(project, (left_path, one), (right_path, other), findings)
        return
    shorter, longer = (
        ((left_path, one), (right_path, other))
        if len(one.params) <= len(other.params)
        else ((right_path, other), (left_path, one))
    )
    findings.add(
        "mirror-parity",
        (shorter[0], shorter[1].line, shorter[1].column),
        sorted({*_lanes(project, left_path), *_lanes(project, right_path)}),
        f"{shorter[1].name!r} and its twin {longer[1].name!r} differ: {difference}",
        [(longer[0], longer[1].line, f"{longer[1].name!r}, the twin")],
    )


def _answers(project: Project, left: Site, right: Site, findings: Findings) -> None:
    """A capability that one twin claims and the other denies: what stands behind it is dead there."""
    answers = [_constant(left[1]), _constant(right[1])]
    if sorted(map(str, answers)) != ["False", "True"]:
        return
    denying, claiming = (left, right) if answers[0] is False else (right, left)
    findings.add(
        "mirror-parity",
        (denying[0], denying[1].line, denying[1].column),
        _lanes(project, denying[0]),
        f"{denying[1].name!r} answers false and its twin true: what it switches on is never reached here",
        [(claiming[0], claiming[1].line, "the twin answers true")],
    )


def _constant(function: Function) -> bool | None:
    """The only answer that a definition gives."""
    rest = function.tokens - {"return", "const", "override", "final", "noexcept"}
    return rest == {"true"} if function.has(Trait.DEFINITION) and rest in ({"true"}, {"false"}) else None


def _declared(sites: list[Site]) -> Site:
    return min(sites, key=lambda site: (site[1].has(Trait.DEFINITION), site[0], site[1].line))


def _signature(function: Function) -> tuple[str, ...]:
    return tuple(_plain(param.type).replace(" ", "") for param in function.params)


def _difference(one: Function, other: Function) -> str | None:
    if len(one.params) != len(other.params):
        return f"{len(one.params)} parameters against {len(other.params)}"
    names = [[_plain(param.name) for param in function.params] for function in (one, other)]
    if names[0] != names[1] and all(names[0]) and sorted(names[0]) == sorted(names[1]):
        return "the order of their parameters"
    for left, right in zip(one.params, other.params, strict=True):
        if types.differ(left.type, right.type):
            return f"{left.name or 'a parameter'} is {left.type!r} here and {right.type!r} there"
        if bool(left.default) != bool(right.default) or _plain(left.default) != _plain(right.default):
            return f"the default of {left.name or right.name!r}"
    return None


def _lanes(project: Project, path: str) -> list[str]:
    return [view.id for view in project.views if path in project.lane_files[view.id]]
