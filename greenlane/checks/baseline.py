"""Findings that were there before: what an old tree brings along when it adopts the checks.

A baseline is an earlier `--format json`. A missing file is written, so that the first run makes it.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from greenlane.checks.report import Report
from greenlane.errors import MatrixError
from greenlane.record.model import Finding

Identity = tuple[str, str, str]


def compare(report: Report, file: Path, root: Path) -> Report:
    """Without the findings of the baseline; one that appears more often than it did is new."""
    if not file.exists():
        _write(report, file, root)
        return replace(report, findings=(), baseline=len(report.findings))
    known = _read(file)
    fresh: list[Finding] = []
    for finding in report.findings:
        rest = _unknown_lanes(finding, known)
        if rest:
            fresh.append(finding.model_copy(update={"lanes": rest}) if rest != finding.lanes else finding)
    return replace(report, findings=tuple(fresh), baseline=len(report.findings) - len(fresh))


def _unknown_lanes(finding: Finding, known: Counter[tuple[Identity, str]]) -> tuple[str, ...]:
    rest = []
    for lane in finding.lanes:
        key = (_identity(finding.rule, finding.file, finding.message), lane)
        if known[key] > 0:
            known[key] -= 1
        else:
            rest.append(lane)
    return tuple(rest)


def _identity(rule: str, file: str, message: str) -> Identity:
    """No line: code above a finding may grow."""
    return rule, file, message


def _read(file: Path) -> Counter[tuple[Identity, str]]:
    known: Counter[tuple[Identity, str]] = Counter()
    try:
        document: Any = json.loads(file.read_text())
        for entry in document["findings"]:
            for lane in entry["lanes"]:
                known[(_identity(entry["rule"], entry["file"], entry["message"]), lane)] += 1
    except OSError as error:
        raise MatrixError(f"{file}: {error.strerror}; --baseline needs the output of --format json") from None
    except (ValueError, KeyError, TypeError):
        raise MatrixError(f"{file}: no baseline; write one with `greenlane check --format json > {file}`") from None
    return known


def _write(report: Report, file: Path, root: Path) -> None:
    from greenlane.checks.formats import json as as_json

    try:
        file.write_text(as_json.render(report, root))
    except OSError as error:
        raise MatrixError(f"{file}: {error.strerror}; the baseline cannot be written") from None
