"""SARIF 2.1.0 within GitHub's limits: 5,000 results are shown of a run, 10 MB compressed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from greenlane import __version__
from greenlane.checks.report import Report
from greenlane.matrix.checks import Rule
from greenlane.record.model import Edit, Finding

_MOST_RESULTS = 5000
_MOST_RELATED = 50
_LONGEST = 1000  # characters of a message
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "note": "note"}


def render(report: Report, root: Path) -> str:
    return json.dumps(document(report), indent=1) + "\n"


def document(report: Report) -> dict[str, Any]:
    ranked = sorted(report.findings, key=lambda finding: list(_LEVELS).index(finding.severity))
    shown = ranked[:_MOST_RESULTS]
    used = sorted({finding.rule for finding in shown})
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "greenlane", "version": __version__, "rules": [_rule(rule) for rule in used]}},
        "columnKind": "utf16CodeUnits",
        "results": [_result(finding, used.index(finding.rule)) for finding in shown],
        "properties": {
            "lanes": list(report.lanes),
            "suppressed": report.suppressed,
            "notShown": len(ranked) - len(shown),
        },
    }
    notes = [_notification(entry.file, entry.line, entry.reason) for entry in report.unparsed[:_MOST_RELATED]]
    run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": notes}]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: str) -> dict[str, Any]:
    return {
        "id": rule,
        "name": "".join(part.title() for part in rule.split("-")),
        "shortDescription": {"text": SUMMARIES[Rule(rule)]},
    }


def _result(finding: Finding, index: int) -> dict[str, Any]:
    text = f"{finding.message} (in {', '.join(finding.lanes)})"[:_LONGEST]
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": _physical(finding.file, finding.line, finding.column)}],
        "partialFingerprints": {"greenlane/v1": fingerprint(finding)},
        "properties": {"lanes": list(finding.lanes), "layer": finding.layer},
    }
    if finding.related:
        result["relatedLocations"] = [
            {"physicalLocation": _physical(related.file, related.line), "message": {"text": related.message[:_LONGEST]}}
            for related in finding.related[:_MOST_RELATED]
        ]
    if finding.suggestion is not None and finding.suggestion.edits:
        result["fixes"] = [_fix(finding.suggestion.text, finding.suggestion.edits)]
    return result


def fingerprint(finding: Finding) -> str:
    """Survives lines moving: rule, file and message, no line number."""
    return hashlib.sha256(f"{finding.rule}\0{finding.file}\0{finding.message}".encode()).hexdigest()[:32]


def _physical(file: str, line: int, column: int | None = None) -> dict[str, Any]:
    region = {"startLine": max(1, line)} | ({"startColumn": max(1, column)} if column is not None else {})
    return {"artifactLocation": {"uri": quote(file), "uriBaseId": "%SRCROOT%"}, "region": region}


def _notification(file: str, line: int, reason: str) -> dict[str, Any]:
    return {
        "level": "note",
        "message": {"text": f"not judged: {reason}"},
        "locations": [{"physicalLocation": _physical(file, line)}],
    }


def _fix(text: str, edits: tuple[Edit, ...]) -> dict[str, Any]:
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(edit.file, []).append(edit)
    changes = [
        {
            "artifactLocation": {"uri": quote(file), "uriBaseId": "%SRCROOT%"},
            "replacements": [_replacement(edit) for edit in entries],
        }
        for file, entries in by_file.items()
    ]
    return {"description": {"text": text[:_LONGEST]}, "artifactChanges": changes}


def _replacement(edit: Edit) -> dict[str, Any]:
    end = edit.first if edit.last < edit.first else edit.last + 1
    region = {"startLine": edit.first, "startColumn": 1, "endLine": end, "endColumn": 1}
    return {"deletedRegion": region, "insertedContent": {"text": edit.text + "\n"}}


SUMMARIES = {
    Rule.ALIAS_GAP: "A vendor's name is used where the lane's alias header lacks it.",
    Rule.ARCH_LIST: "A list of GPU targets disagrees with the matrix or the compiler.",
    Rule.CALL_ARITY: "A call passes a number of arguments that no declaration takes.",
    Rule.DECLARATION_MISMATCH: "A definition or override differs from its declaration.",
    Rule.ENV_DOC: "An environment variable is read and not documented, or documented and never read.",
    Rule.FOREIGN_INCLUDE: "A lane reaches the header of a vendor that it doesn't have.",
    Rule.GUARD_AVAILABILITY: "A guard asks for a platform or a file where a vendor's availability is meant.",
    Rule.GUARD_DEAD: "No lane can select this arm, or it stands outside of any chain.",
    Rule.GUARD_DOUBLED: "A condition is implied already where it stands.",
    Rule.GUARD_MISSING_ARM: "A lane is left without the arm that it needs.",
    Rule.GUARD_NEGATION: "A negated or definition test says more than it means.",
    Rule.GUARD_UNKNOWN_MACRO: "A condition asks for a macro that nothing defines.",
    Rule.HEADER_GUARD: "A header's guard is mismatched, shared or absent.",
    Rule.LAUNCH_ARITY: "A kernel launch passes a number of arguments that the kernel doesn't take.",
    Rule.LINK_PRESENCE: "Something is used in a lane that lacks its declaration or definition.",
    Rule.MIRROR_PARITY: "The twins of two vendors offer different functions.",
    Rule.MISSING_INCLUDE: "A name is used in a lane that doesn't include its declaration.",
    Rule.POINTER_CAST_MISMATCH: "A function looked up by name is cast to a type that it doesn't have.",
    Rule.RECORD: "The pull request's text lacks what the project requires.",
    Rule.SUPPRESSION: "A suppression has no reason, or matches nothing.",
    Rule.UNUSED_FUNCTION: "An internal function has no caller in a lane.",
    Rule.UNUSED_PARAMETER: "A named parameter is never read in a lane.",
    Rule.UNUSED_VARIABLE: "A local is never read in a lane.",
    Rule.WARP_SIZE: "A literal fixes the number of lanes of a wavefront.",
}
