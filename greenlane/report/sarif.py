"""Findings of records as SARIF 2.1.0; one that several lanes share is given once, with its lanes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from greenlane.record.model import Finding, Record

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(records: Sequence[Record]) -> str:
    findings = {
        (found.rule, found.file, found.line, found.message): found for record in records for found in record.findings
    }
    rules = sorted({found.rule for found in findings.values()})
    driver = {"name": "greenlane", "rules": [{"id": rule} for rule in rules]}
    results = [_result(found) for found in findings.values()]
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _result(found: Finding) -> dict[str, Any]:
    region = {"startLine": max(1, found.line), "startColumn": max(1, found.column)}
    place = {"artifactLocation": {"uri": found.file}, "region": region}
    return {
        "ruleId": found.rule,
        "level": found.severity,
        "message": {"text": f"{found.message} [{', '.join(found.lanes)}]"},
        "locations": [{"physicalLocation": place}],
    }
