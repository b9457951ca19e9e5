"""The smallest guard that says what the uses of something say; in the words of a guard of the file, where one fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from greenlane.checks.findings import insert
from greenlane.checks.source.directives import Structure
from greenlane.checks.source.project import Project
from greenlane.checks.source.slices import arm_conditions, enclosing, include_guard
from greenlane.checks.source.worlds import Formula, atoms, both, condition, either, macro, negate
from greenlane.record.model import Suggestion

_MOST_MACROS = 6


def presence(structure: Structure, line: int) -> Formula:
    """Under which condition a line is compiled; the include guard aside."""
    guard = include_guard(structure)
    parts: list[Formula] = []
    for index, position in enclosing(structure, line):
        if guard is not None and index == guard.chain:
            continue
        for text, holds in arm_conditions(structure.chains[index], position):
            parts.append(condition(text) if holds else negate(condition(text)))
    return both(parts)


def guard_suggestion(
    project: Project, path: str, first: int, last: int, uses: Iterable[int], dead: set[str]
) -> Suggestion | None:
    """Guard the lines `first..last` so that they are there exactly where a use is."""
    structure = project.sources[path].structure
    own = presence(structure, first)
    wanted = either(presence(structure, line) for line in uses)
    if wanted.op in {"true", "false"}:
        return None
    opener = next(_openers(project, structure, own, wanted), None)
    if opener is None:
        return None
    edits = (insert(path, first, opener), insert(path, last + 1, "#endif"))
    return Suggestion(text=f"guard it like its uses: {opener}", edits=edits)


def _openers(project: Project, structure: Structure, own: Formula, wanted: Formula) -> Iterator[str]:
    """#if lines that mean `wanted` where `own` holds already: the file's own first, then by size."""
    for directive in structure.directives:
        if directive.kind in {"if", "ifdef", "ifndef"}:
            text = f"#{directive.kind} {directive.argument}"
            if _fits(project, condition(_as_condition(directive.kind, directive.argument)), own, wanted):
                yield text
    for text in _formulas(wanted):
        if _fits(project, condition(text), own, wanted):
            yield f"#if {text}"


def _as_condition(kind: str, argument: str) -> str:
    return {"if": argument, "ifdef": f"defined({argument})", "ifndef": f"!defined({argument})"}[kind]


def _fits(project: Project, candidate: Formula, own: Formula, wanted: Formula) -> bool:
    if candidate.op in {"true", "false"} or not atoms(candidate) <= atoms(wanted) | atoms(own):
        return False
    return not project.worlds.possible(own, candidate, negate(wanted)) and not project.worlds.possible(
        own, wanted, negate(candidate)
    )


def _formulas(wanted: Formula) -> Iterator[str]:
    """Conjunctions and disjunctions of up to three literals over the macros of the wanted formula, small ones first."""
    names = sorted({macro(atom) for atom in atoms(wanted) if atom.startswith("defined ")} - {""})[:_MOST_MACROS]
    literals = [text for name in names for text in (f"defined({name})", f"!defined({name})")]
    for size in (1, 2, 3):
        for chosen in combinations(literals, size):
            if len({text.lstrip("!") for text in chosen}) < size:
                continue
            yield " && ".join(chosen)
            if size > 1:
                yield " || ".join(chosen)
