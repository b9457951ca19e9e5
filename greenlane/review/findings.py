"""The findings that keep lanes red, each told once with its lanes, those that are new before the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from greenlane.record.model import Finding
from greenlane.review import faults
from greenlane.review.model import FoundFinding, LaneReview, Verdict

WEIGHT = {"error": 0, "warning": 1, "note": 2}
PASSED_OVER = (Verdict.RED_ON_BASE, Verdict.KNOWN_RED)  # whose findings are nobody's news


@dataclass
class Gathered:
    finding: dict[str, Any]
    lanes: list[str] = field(default_factory=list)
    new_in: list[str] = field(default_factory=list)
    unknown: bool = False


def gathered(lanes: Iterable[LaneReview]) -> list[FoundFinding]:
    """Every finding of the lanes' records, notes too, but for those of lanes whose red is older than the change."""
    found: dict[tuple[Any, ...], Gathered] = {}
    for lane in lanes:
        if lane.verdict in PASSED_OVER or lane.stale:
            continue
        for finding in lane.findings:
            key = tuple(finding[name] for name in ("file", "line", "column", "rule", "message"))
            entry = found.setdefault(key, Gathered(finding))
            entry.lanes.append(lane.id)
            entry.unknown |= lane.new_findings is None
            if lane.new_findings and faults.identity(Finding.model_validate(finding)) in lane.new_findings:
                entry.new_in.append(lane.id)
    return sorted((_told(entry) for entry in found.values()), key=_order)


def _order(found: FoundFinding) -> tuple[object, ...]:
    return WEIGHT.get(found.severity, 0), not found.new_in, found.file, found.line, found.rule


def _told(entry: Gathered) -> FoundFinding:
    finding = entry.finding
    suggestion = finding.get("suggestion")
    return FoundFinding(
        rule=finding["rule"],
        severity=finding["severity"],
        file=finding["file"],
        line=finding["line"],
        message=finding["message"],
        lanes=tuple(entry.lanes),
        new_in=tuple(entry.new_in),
        whose_is_unknown=entry.unknown,
        suggestion=suggestion["text"] if suggestion else None,
        related=tuple((near["file"], near["line"], near["message"]) for near in finding.get("related", ())),
    )
