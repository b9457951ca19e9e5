"""Apply the suggested edits, look at every lane again, and take back what made anything worse."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from greenlane.checks.report import Report
from greenlane.record.model import Edit, Finding

_MOST_SINGLE_TRIES = 50


@dataclass(frozen=True)
class Outcome:
    applied: int
    refused: int

    @property
    def summary(self) -> str:
        text = f"greenlane check --fix: applied {self.applied} suggestion{'s' if self.applied != 1 else ''}"
        return text + (f", took {self.refused} back: they led to other findings" if self.refused else "")


def apply(report: Report, root: Path, recheck: Callable[[], Report]) -> Outcome:
    """Edits files under `root`. `recheck` must cover all lanes and rules."""
    fixable = _disjoint(
        finding for finding in report.findings if finding.suggestion is not None and finding.suggestion.edits
    )
    if not fixable:
        return Outcome(0, 0)
    before = _identities(recheck())
    if _try(fixable, root, before, recheck):
        return Outcome(len(fixable), 0)
    applied = 0
    for finding in sorted(fixable, key=lambda finding: (finding.file, -finding.line))[:_MOST_SINGLE_TRIES]:
        applied += _try([finding], root, before, recheck)
    return Outcome(applied, len(fixable) - applied)


def _disjoint(findings: Iterable[Finding]) -> list[Finding]:
    """Findings whose edits touch no line twice."""
    taken: set[tuple[str, int]] = set()
    chosen = []
    for finding in findings:
        lines = {
            (edit.file, line) for edit in _edits(finding) for line in range(edit.first, max(edit.first, edit.last) + 1)
        }
        if not lines & taken:
            taken |= lines
            chosen.append(finding)
    return chosen


def _edits(finding: Finding) -> tuple[Edit, ...]:
    return finding.suggestion.edits if finding.suggestion is not None else ()


def _identities(report: Report) -> set[tuple[str, str, str, tuple[str, ...]]]:
    return {(finding.rule, finding.file, finding.message, finding.lanes) for finding in report.findings}


def _try(
    findings: list[Finding],
    root: Path,
    before: set[tuple[str, str, str, tuple[str, ...]]],
    recheck: Callable[[], Report],
) -> bool:
    edits: dict[str, list[Edit]] = {}
    for finding in findings:
        for edit in _edits(finding):
            edits.setdefault(edit.file, []).append(edit)
    paths = {file: root / file for file in edits}
    if any(path.is_symlink() or not path.resolve().is_relative_to(root.resolve()) for path in paths.values()):
        return False
    old = {path: path.read_bytes() for path in paths.values()}
    for file, path in paths.items():
        _write(path, edited(old[path], edits[file]))
    after = _identities(recheck())
    fixed = {(finding.rule, finding.file, finding.message, finding.lanes) for finding in findings}
    if after <= before and not fixed <= after:
        return True
    for path, data in old.items():
        _write(path, data)
    return False


def edited(data: bytes, edits: Iterable[Edit]) -> bytes:
    """The file after the edits; line ends stay what they are."""
    end = b"\r\n" if b"\r\n" in data else b"\n"
    lines = data.split(b"\n")
    for edit in sorted(edits, key=lambda edit: (edit.first, edit.last), reverse=True):
        new = [line.encode() + end[:-1] for line in edit.text.split("\n")]
        lines[edit.first - 1 : max(edit.last, edit.first - 1)] = new
    return b"\n".join(lines)


def _write(path: Path, data: bytes) -> None:
    """All or nothing, with the file's own mode."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
    Path(temporary).chmod(path.stat().st_mode & 0o7777)
    Path(temporary).replace(path)
