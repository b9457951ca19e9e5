"""Guards that logic alone condemns: implied where they stand, never true, outside of any chain."""

from __future__ import annotations

import re
from collections.abc import Iterator

from greenlane.checks.findings import Findings
from greenlane.checks.source.directives import Chain, Structure
from greenlane.checks.source.files import SourceFile
from greenlane.checks.source.project import Project
from greenlane.checks.source.slices import Life, arm_conditions, enclosing, include_guard
from greenlane.checks.source.view import LaneView
from greenlane.checks.source.worlds import TRUE, Formula, atoms, both, condition, macro, negate

RULES = ("guard-doubled", "guard-dead")

_REFUSAL = re.compile(r"^\s*#\s*(error|pragma|warning)\b|static_assert", re.M)


def check_file(project: Project, path: str, findings: Findings) -> None:
    file = project.sources[path]
    views = project.views_of(path)
    lanes = [view.id for view in views]
    _strays(file, lanes, findings)
    if file.structure.strays or not file.structure.chains:
        return
    changed = _changed_macros(file.structure)
    for index, chain in enumerate(file.structure.chains):
        _chain(project, file, index, chain, changed, lanes, findings)
    _whole_file(project, file, views, findings)


def _strays(file: SourceFile, lanes: list[str], findings: Findings) -> None:
    strays = file.structure.strays
    for number, stray in enumerate(strays):
        related = [(file.path, stray.closed, "this #endif closes the chain")] if stray.closed else []
        if stray.kind in {"if", "ifdef", "ifndef"}:
            message = f"#{stray.kind} has no #endif"
        elif number and strays[number - 1].closed == stray.closed and stray.kind in {"else", "endif"}:
            continue  # the rest of the chain that the first one belongs to
        else:
            message = f"#{stray.kind} stands outside of any chain"
        findings.add("guard-dead", (file.path, stray.line, 1), lanes, message, related)


def _chain(
    project: Project,
    file: SourceFile,
    index: int,
    chain: Chain,
    changed: set[str],
    lanes: list[str],
    findings: Findings,
) -> None:
    structure = file.structure
    guard = include_guard(structure)
    if guard is not None and index == guard.chain:
        return
    context = _context(structure, chain, guard.chain if guard else -1)
    if any(macro(atom) in changed for atom in atoms(context)):
        context = TRUE
    if not project.worlds.possible(context):
        return  # `#if 0`, or dead for a reason that is reported further out
    before = context
    for position, arm in enumerate(chain.arms):
        own = condition(arm.condition)
        if any(macro(atom) in changed for atom in atoms(own)):
            return
        line = structure.directives[arm.directive].line
        if position == 0 and "true" not in {context.op, own.op} and project.worlds.implies(context, own):
            _report_doubled(file, structure, chain, index, arm.condition, lanes, findings)
        elif _is_dead(project, before, own) and not _only_refuses(file, arm.first, arm.last):
            _report_dead(file, chain, position, line, lanes, findings)
        if own.op == "true":
            return  # `#if 1` chooses by hand
        before = both([before, negate(own)])


def _is_dead(project: Project, before: Formula, own: Formula) -> bool:
    """Whether a condition that can hold by itself can't hold where it stands."""
    return own.op != "false" and not project.worlds.possible(before, own) and project.worlds.possible(own)


def _context(structure: Structure, chain: Chain, guard: int) -> Formula:
    parts = []
    index, position = chain.parent, chain.parent_arm
    while index >= 0:
        outer = structure.chains[index]
        if index != guard:
            for text, holds in arm_conditions(outer, position):
                parts.append(condition(text) if holds else negate(condition(text)))
        index, position = outer.parent, outer.parent_arm
    return both(parts)


def _changed_macros(structure: Structure) -> set[str]:
    """Macros that the file itself turns on or off: what they are depends on the line."""
    return {
        re.split(r"[\s(]", directive.argument, maxsplit=1)[0]
        for directive in structure.directives
        if directive.kind in {"define", "undef"}
    }


def _only_refuses(file: SourceFile, first: int, last: int) -> bool:
    lines = file.code_lines[first - 1 : last]
    return all(not line.strip() or _REFUSAL.search(line) for line in lines) or any(
        re.match(r"\s*#\s*error", line) for line in lines
    )


def _report_doubled(
    file: SourceFile, structure: Structure, chain: Chain, index: int, text: str, lanes: list[str], findings: Findings
) -> None:
    outer = [structure.chains[around] for around, _ in enclosing(structure, chain.first)]
    related = [(file.path, around.first, "already guarded here") for around in outer[-1:]]
    findings.add(
        "guard-doubled",
        (file.path, chain.first, 1),
        lanes,
        f"the guard around it implies `{text}` already; a narrower condition may be meant",
        related,
    )


def _report_dead(
    file: SourceFile, chain: Chain, position: int, line: int, lanes: list[str], findings: Findings
) -> None:
    kind = file.structure.directives[chain.arms[position].directive].kind
    text = "" if kind == "else" else f" `{chain.arms[position].condition}`"
    findings.add(
        "guard-dead",
        (file.path, line, 1),
        lanes,
        f"no lane can ever select this #{kind}{text}: what stands around and before it rules it out",
        [(file.path, chain.first, "the chain begins here")] if position else [],
    )


def _whole_file(project: Project, file: SourceFile, views: tuple[LaneView, ...], findings: Findings) -> None:
    """A unit wrapped in a condition that already decides whether it is compiled."""
    compiling = [view for view in views if file.path in view.units]
    others = [view for view in project.views if file.path not in view.units]
    chain = _wrapping(file)
    if chain is None or not compiling or not others or not all(view.lane.sources for view in project.views):
        return
    text = chain.arms[0].condition
    names = {macro(atom) for atom in atoms(condition(text))}
    if not names or not names <= project.universe:
        return
    if any(view.slice(file.path).arms[file.structure.chains.index(chain)][0] != Life.LIVE for view in compiling):
        return
    if any(view.macros.given.get(name) is not None for view in others for name in names):
        return
    findings.add(
        "guard-doubled",
        (file.path, chain.first, 1),
        [view.id for view in compiling],
        f"the whole file is guarded by `{text}`, which holds in every lane that compiles it",
        severity="note",
    )


def _wrapping(file: SourceFile) -> Chain | None:
    """The chain that holds every line of code of a file."""
    if file.is_header or not file.structure.chains:
        return None
    chain = file.structure.chains[0]
    if len(chain.arms) != 1:
        return None
    outside: Iterator[str] = (
        line
        for number, line in enumerate(file.code_lines, 1)
        if not chain.first <= number <= chain.last and line.strip()
    )
    return chain if next(outside, None) is None else None
