"""`greenlane report`: the newest record of every lane, for other readers."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from greenlane.errors import EnvironmentMissing
from greenlane.ledger import Ledger
from greenlane.ledger.store import write_durably
from greenlane.matrix import load
from greenlane.record.model import Outcome, Record, StageResult
from greenlane.report.markdown import code, plain, table, text

SARIF_LEVEL = {"error": "error", "warning": "warning", "note": "note"}


def command(arguments: argparse.Namespace) -> int:
    records = newest(arguments.matrix)
    if arguments.format not in RENDERERS:
        raise EnvironmentMissing("--format html is not in this version yet; use markdown, json, junit or sarif")
    shown = RENDERERS[arguments.format](records)
    if arguments.output:
        write_durably(arguments.output, shown.encode())
    else:
        print(shown, end="")
    return 0


def newest(matrix: Path) -> list[Record]:
    """The newest record of each lane of the matrix, in the matrix's order; lanes without one are left out."""
    ledger = Ledger(matrix.parent / ".greenlane" / "ledger")
    found: dict[str, Record] = {}
    wanted = [lane.id for lane in load(matrix).lanes]
    for lane in wanted:
        record = next((record for _, record in ledger.records(lane=lane)), None)
        if record is not None:
            found[lane] = record
    return [found[lane] for lane in wanted if lane in found]


def as_json(records: list[Record]) -> str:
    lanes = [record.model_dump(mode="json", by_alias=True) for record in records]
    return json.dumps({"lanes": lanes}, indent=1, ensure_ascii=False) + "\n"


def as_markdown(records: list[Record]) -> str:
    """A step summary: one row per lane."""
    rows = [_row(record) for record in records]
    return (
        table(("lane", "outcome", "evidence", "commit", "first error"), rows) if rows else "No lane has run."
    ) + "\n"


def _row(record: Record) -> tuple[str, ...]:
    error = next((stage.first_error for stage in record.stages if stage.first_error), None)
    evidence = " ".join(code(flag) for flag in record.evidence) or "—"
    dirty = " _dirty_" if record.dirty else ""
    return (
        code(record.lane),
        text(record.outcome),
        evidence,
        code(record.head[:10]) + dirty,
        text(error.message, 120) if error else "—",
    )


def as_junit(records: list[Record]) -> str:
    """A suite per lane, a case per stage: red is a failure, what was not run is skipped with its reason."""
    root = ElementTree.Element("testsuites")
    for record in records:
        suite = ElementTree.SubElement(root, "testsuite", name=record.lane, time=str(record.duration_s))
        for stage in record.stages:
            _case(suite, record, stage)
        cases = list(suite)
        suite.set("tests", str(len(cases)))
        suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
        suite.set("skipped", str(sum(case.find("skipped") is not None for case in cases)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, record: Record, stage: StageResult) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=record.lane, name=str(stage.stage), time=str(stage.duration_s)
    )
    message = plain(stage.first_error.message if stage.first_error else stage.reason or stage.outcome)
    if stage.outcome.is_red:
        ElementTree.SubElement(case, "failure", message=message, type=str(stage.outcome))
    elif stage.outcome in {Outcome.NOT_RUN, Outcome.BLOCKED}:
        ElementTree.SubElement(case, "skipped", message=message)


def as_sarif(records: list[Record]) -> str:
    """SARIF 2.1.0 of all findings; one that several lanes share is given once, with its lanes."""
    findings = {
        (found.rule, found.file, found.line, found.message): found for record in records for found in record.findings
    }
    rules = sorted({found.rule for found in findings.values()})
    driver = {"name": "greenlane", "rules": [{"id": rule} for rule in rules]}
    results = [_result(found.model_dump(mode="json")) for found in findings.values()]
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _result(found: dict[str, Any]) -> dict[str, Any]:
    region = {"startLine": max(1, found["line"]), "startColumn": max(1, found["column"])}
    place = {"artifactLocation": {"uri": found["file"]}, "region": region}
    return {
        "ruleId": found["rule"],
        "level": SARIF_LEVEL[found["severity"]],
        "message": {"text": f"{found['message']} [{', '.join(found['lanes'])}]"},
        "locations": [{"physicalLocation": place}],
    }


RENDERERS = {"json": as_json, "markdown": as_markdown, "junit": as_junit, "sarif": as_sarif}
