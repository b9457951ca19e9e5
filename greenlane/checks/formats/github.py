"""Annotations as GitHub's workflow commands, within the number that it shows."""

from __future__ import annotations

from pathlib import Path

from greenlane.checks.report import Report
from greenlane.record.model import Finding

_SHOWN = {"error": 10, "warning": 10, "note": 10}  # per step and kind; what is more is dropped by GitHub in silence
_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Report, root: Path) -> str:
    lines: list[str] = []
    for severity, most in _SHOWN.items():
        chosen = [finding for finding in report.findings if finding.severity == severity]
        whole = chosen if len(chosen) <= most else chosen[: most - 1]
        lines += [_annotation(finding) for finding in whole]
        if len(chosen) > len(whole):
            more = len(chosen) - len(whole)
            lines.append(f"::{_COMMANDS[severity]}::{more} more findings of this kind; run greenlane check")
    return "\n".join(lines) + ("\n" if lines else "")


def _annotation(finding: Finding) -> str:
    place = f"file={_property(finding.file)},line={finding.line},col={finding.column},title={_property(finding.rule)}"
    text = f"{finding.message} (in {', '.join(finding.lanes)})"
    return f"::{_COMMANDS[finding.severity]} {place}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
