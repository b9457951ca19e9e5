"""Compiler style: place, severity, message, then the source line with a caret."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from greenlane.checks.report import Report
from greenlane.record.model import Finding

_UNPARSED_SHOWN = 20
_WIDEST = 200


def render(report: Report, root: Path) -> str:
    lines: list[str] = []
    sources = _Lines(root)
    for finding in report.findings:
        lines += _finding(finding, sources, report)
    lines += _unparsed(report)
    lines.append(_summary(report))
    return "\n".join(lines) + "\n"


def _finding(finding: Finding, sources: _Lines, report: Report) -> Iterator[str]:
    everywhere = set(finding.lanes) == set(report.lanes) and len(report.lanes) > 1
    where = "every lane" if everywhere else ", ".join(finding.lanes)
    layer = " (by the source alone, no compiler confirmed it)" if report.asked else ""
    if finding.layer == "compiler":
        layer = " (confirmed by the compiler)"
    place = _place(finding.file, finding.line, finding.column)
    yield f"{place}: {finding.severity}: {_plain(finding.message)} [{finding.rule}]{layer}"
    yield from sources.excerpt(finding.file, finding.line, finding.column)
    yield f"  in {where}"
    for related in finding.related:
        yield f"{_plain(related.file)}:{related.line}: note: {_plain(related.message)}"
    if finding.suggestion is not None:
        yield f"  suggestion: {_plain(finding.suggestion.text)}"


def _place(file: str, line: int, column: int) -> str:
    return f"{_plain(file)}:{line}:{column}"


def _plain(text: str) -> str:
    """Without control characters: file names and code come from strangers."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _unparsed(report: Report) -> Iterator[str]:
    for entry in report.unparsed[:_UNPARSED_SHOWN]:
        yield f"{_plain(entry.file)}:{entry.line}: note: not judged: {_plain(entry.reason)}"
    more = len(report.unparsed) - _UNPARSED_SHOWN
    if more > 0:
        yield f"note: {more} more places were not judged"


def _summary(report: Report) -> str:
    counts = {
        kind: sum(finding.severity == kind for finding in report.findings) for kind in ("error", "warning", "note")
    }
    parts = [f"{count} {kind}{'s' if count != 1 else ''}" for kind, count in counts.items() if count] or ["no findings"]
    extras = [
        f"{count} {word}"
        for count, word in (
            (report.suppressed, "suppressed"),
            (report.baseline, "in the baseline"),
            (report.withdrawn, "withdrawn by the compiler"),
            (len(report.unparsed), "not judged"),
        )
        if count
    ]
    lanes = f"{len(report.lanes)} lane{'s' if len(report.lanes) != 1 else ''}"
    return f"greenlane check: {', '.join(parts)} in {lanes}" + (f" ({', '.join(extras)})" if extras else "")


class _Lines:
    """Source lines for excerpts, each file read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files: dict[str, list[str]] = {}

    def excerpt(self, file: str, line: int, column: int) -> Iterator[str]:
        lines = self._lines(file)
        if not 0 < line <= len(lines):
            return
        text = lines[line - 1].replace("\t", " ").rstrip()
        if not text or len(text) > _WIDEST:
            return
        yield f"{line:5} | {_plain(text)}"
        yield f"      | {' ' * max(0, column - 1)}^"

    def _lines(self, file: str) -> list[str]:
        if file not in self._files:
            try:
                self._files[file] = (self._root / file).read_text(errors="replace").split("\n")
            except OSError:
                self._files[file] = []
        return self._files[file]
