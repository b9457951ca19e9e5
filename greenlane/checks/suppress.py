"""Findings that are accepted: by a comment beside them, or by the matrix; always with a reason, never for nothing.

`// greenlane: allow(rule) reason` covers its own line and, where it stands alone, the next line of code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from greenlane.checks.source.project import Project
from greenlane.matrix.checks import Rule, Suppression
from greenlane.matrix.globs import first_match
from greenlane.record.model import Finding

_COMMENT = re.compile(r"(?://|#|<!--|/\*)\s*greenlane:\s*allow\(([^)\n]*)\)[ \t:-]*([^\n]*)")
_CLOSERS = re.compile(r"\s*(\*/|-->)\s*$")


@dataclass
class Allowance:
    rules: tuple[str, ...]
    file: str
    line: int  # of the comment
    covers: tuple[int, ...]
    reason: str
    used: int = 0


def apply(project: Project, findings: Iterable[Finding]) -> tuple[list[Finding], int]:
    """What is left to say, and how many findings were suppressed."""
    allowances = list(_allowances(project))
    declared = [(entry, [0]) for entry in project.config.suppress]
    kept, suppressed = [], 0
    for finding in findings:
        rest = _by_matrix(_by_comment(finding, allowances), declared)
        if rest is None:
            suppressed += 1
        else:
            kept.append(rest)
    kept += [_problem(project, allowance) for allowance in allowances if _wrong(allowance) is not None]
    kept += [_idle(project, entry) for entry, used in declared if not used[0]]
    return sorted(kept, key=lambda finding: (finding.file, finding.line, finding.column, finding.rule)), suppressed


def _by_comment(finding: Finding, allowances: list[Allowance]) -> Finding | None:
    for allowance in allowances:
        if (
            finding.file == allowance.file
            and finding.line in allowance.covers
            and finding.rule in allowance.rules
            and allowance.reason
        ):
            allowance.used += 1
            return None
    return finding


def _by_matrix(finding: Finding | None, declared: list[tuple[Suppression, list[int]]]) -> Finding | None:
    """Takes the lanes away that a suppression names; without any left the finding is gone."""
    for entry, used in declared:
        if finding is None:
            return None
        if not _matches(entry, finding):
            continue
        rest = tuple(lane for lane in finding.lanes if entry.lanes and first_match(entry.lanes, lane) is None)
        if rest != finding.lanes:
            used[0] += 1
            finding = finding.model_copy(update={"lanes": rest}) if rest else None
    return finding


def _matches(entry: Suppression, finding: Finding) -> bool:
    return (
        entry.rule == finding.rule
        and first_match((entry.file,), finding.file) is not None
        and entry.line in (None, finding.line)
        and (entry.contains is None or entry.contains in finding.message)
    )


def _allowances(project: Project) -> Iterator[Allowance]:
    for path, file in sorted(project.sources.items()):
        if b"greenlane:" in file.data and first_match(project.config.vendored, path) is None:
            yield from _in(path, file.raw_lines, file.code_lines)
    for path, data in sorted(project.files.others.items()):
        if b"greenlane:" in data and not path.endswith((".py", ".md", ".rst")):
            lines = data.decode("latin-1").split("\n")
            yield from _in(path, lines, [line.partition("#")[0] for line in lines])


def _in(path: str, raw: list[str], code: list[str]) -> Iterator[Allowance]:
    for number, line in enumerate(raw, 1):
        match = _COMMENT.search(line) if "greenlane:" in line else None
        if match is None:
            continue
        covers = [number]
        if not code[number - 1].strip():
            following = next((after for after in range(number, len(code)) if code[after].strip()), None)
            covers += [following + 1] if following is not None else []
        rules = tuple(rule.strip() for rule in match.group(1).split(","))
        yield Allowance(rules, path, number, tuple(covers), _CLOSERS.sub("", match.group(2)).strip())


def _wrong(allowance: Allowance) -> str | None:
    known = {str(rule) for rule in Rule}
    for rule in allowance.rules:
        if rule not in known:
            return f"no rule is called {rule!r}"
    if not allowance.reason:
        return "a suppression needs a reason behind the parenthesis"
    return None if allowance.used else f"suppresses nothing: no finding of {', '.join(allowance.rules)} stands here"


def _problem(project: Project, allowance: Allowance) -> Finding:
    return _finding(project, allowance.file, allowance.line, _wrong(allowance) or "")


def _idle(project: Project, entry: Suppression) -> Finding:
    return _finding(
        project,
        project.matrix.file,
        1,
        f"the suppression of {entry.rule} in {entry.file} ({entry.why}) matches nothing",
    )


def _finding(project: Project, file: str, line: int, message: str) -> Finding:
    return Finding(
        rule=str(Rule.SUPPRESSION),
        severity=project.config.severity_of(Rule.SUPPRESSION),
        file=file,
        line=line,
        column=1,
        lanes=tuple(lane.id for lane in project.lanes),
        message=message,
    )
