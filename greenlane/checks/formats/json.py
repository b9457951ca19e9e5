"""The document that programs read; DESIGN.md section 5 fixes its keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from greenlane.checks.report import Report
from greenlane.record.model import Finding


def render(report: Report, root: Path) -> str:
    return json.dumps(document(report), indent=1) + "\n"


def document(report: Report) -> dict[str, Any]:
    return {
        "lanes": list(report.lanes),
        "findings": [entry(finding) for finding in report.findings],
        "unparsed": [{"file": place.file, "line": place.line, "reason": place.reason} for place in report.unparsed],
        "suppressed": report.suppressed,
        "baseline": report.baseline,
        "withdrawn": report.withdrawn,
    }


def entry(finding: Finding) -> dict[str, Any]:
    dumped = finding.model_dump(mode="json")
    if dumped["suggestion"] is None:
        del dumped["suggestion"]
    return dumped
