"""One lane as the page shows it: from its record, and from its review where there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from greenlane.matrix.model import Lane, Stage
from greenlane.record.model import Finding, Outcome, Record, StageResult
from greenlane.report import signs
from greenlane.report.page import gates, history, loose
from greenlane.report.page.gates import Comparison, Counter, MetricView
from greenlane.report.page.history import Past
from greenlane.report.signs import Family
from greenlane.review.model import LaneReview

FINDINGS = 8  # shown per lane; the rest is counted
MESSAGE = 2000  # characters of a message
RAW_LINES = 14  # of a first error's raw output
DIGEST = 23  # characters of a digest that are shown


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage; `x` and `width` are its place on the lane's time line, in per cent."""

    name: str
    outcome: str
    family: Family
    duration: str
    x: float
    width: float
    reason: str


@dataclass(frozen=True, slots=True)
class ErrorView:
    stage: str
    message: str
    place: str
    raw: str
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class LaneView:
    id: str
    backend: str
    arch: str | None
    toolkit: str | None
    variant: str | None
    word: str  # verdict, or the record's outcome
    family: Family
    reason: str
    required: bool = True
    row: str | None = None
    record: str | None = None
    head: str | None = None
    stale: bool = False
    dirty: bool = False
    trust: str | None = None
    evidence: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    error: ErrorView | None = None
    stages: tuple[StageRow, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    counters: tuple[Counter, ...] = ()
    metrics: tuple[MetricView, ...] = ()
    findings: tuple[dict[str, Any], ...] = ()
    more_findings: int = 0
    facts: tuple[tuple[str, str], ...] = ()
    past: Past | None = None

    @property
    def searched(self) -> str:
        """What the filter looks through."""
        said = (self.id, self.row, self.arch, self.toolkit, self.word, self.error and self.error.message)
        return " ".join(part for part in said if part).lower()[:240]


def view(lane: Lane, record: Record | None, record_id: str | None, judged: LaneReview | None, past: Past) -> LaneView:
    word, family, reason, missing = _standing(record, judged)
    stages = record.stages if record else ()
    findings = record.findings if record else ()
    by_stage = {stage.stage: stage.measurements for stage in stages}
    return LaneView(
        id=lane.id,
        backend=lane.backend,
        arch=lane.arch,
        toolkit=lane.toolkit,
        variant=lane.variant,
        word=word,
        family=family,
        reason=reason,
        required=judged.required if judged else True,
        row=lane.row,
        record=record_id,
        head=record.head if record else None,
        stale=judged.stale if judged else False,
        dirty=record.dirty if record else False,
        trust=record.trust if record else None,
        evidence=judged.evidence if judged else record.evidence if record else (),
        missing=missing,
        error=_error(stages),
        stages=_time_line(stages),
        comparisons=gates.comparisons(by_stage.get(Stage.EXACT, {})),
        counters=gates.counters(by_stage.get(Stage.REACH, {})),
        metrics=gates.metrics(by_stage.get(Stage.BENCH, {})),
        findings=tuple(_finding(found) for found in findings[:FINDINGS]),
        more_findings=max(0, len(findings) - FINDINGS),
        facts=tuple(_facts(record)) if record else (),
        past=history.shown(past),
    )


def _finding(found: Finding) -> dict[str, Any]:
    return {
        "place": loose.word(f"{found.file}:{found.line}"),
        "kind": loose.word(f"{found.rule}, {found.severity}"),
        "message": loose.word(found.message, MESSAGE),
        "related": [(loose.word(f"{one.file}:{one.line}"), loose.word(one.message)) for one in found.related[:3]],
        "suggestion": loose.word(found.suggestion.text) if found.suggestion else "",
    }


def _standing(record: Record | None, judged: LaneReview | None) -> tuple[str, Family, str, tuple[str, ...]]:
    """(word, family, why, evidence that is missing)."""
    if judged is not None:
        return str(judged.verdict), signs.of_verdict(judged.verdict), judged.reason, judged.missing
    if record is None:
        return "not-run", Family.NONE, "no record of this lane exists", ()
    missing = tuple(flag for flag in record.require if flag not in record.evidence)
    family = signs.of_outcome(record.outcome)
    if missing and family is Family.GOOD:
        return signs.INCOMPLETE, Family.NONE, "nothing is red, but the lane lacks evidence that it requires", missing
    red = next((stage for stage in record.stages if stage.outcome.is_red), None)
    return str(record.outcome), family, f"{red.stage} is red" if red else "", missing


def _error(stages: Sequence[StageResult]) -> ErrorView | None:
    stage = next((stage for stage in stages if stage.outcome.is_red), None)
    if stage is None:
        return None
    error = stage.first_error
    if error is None:
        return ErrorView(str(stage.stage), loose.word(stage.reason) or str(stage.outcome), "", "")
    place = f"{error.file}:{error.line}" if error.file and error.line else error.file or ""
    raw = "\n".join((error.raw or "").splitlines()[:RAW_LINES])[:4000]
    message = loose.word(error.message, MESSAGE)
    raw = "" if raw.strip() == error.message.strip() else raw
    return ErrorView(str(stage.stage), message, loose.word(place), raw, error.fingerprint)


def _time_line(stages: Sequence[StageResult]) -> tuple[StageRow, ...]:
    total = sum(max(0.0, stage.duration_s) for stage in stages) or 1.0
    rows, passed = [], 0.0
    for stage in stages:
        took = max(0.0, stage.duration_s)
        rows.append(
            StageRow(
                name=str(stage.stage),
                outcome=str(stage.outcome),
                family=signs.of_outcome(stage.outcome),
                duration=loose.duration(took),
                x=round(100 * passed / total, 1),
                width=round(max(0.5, 100 * took / total), 1) if took else 0.0,
                reason="" if stage.outcome is Outcome.BLOCKED else loose.word(stage.reason),
            )
        )
        passed += took
    return tuple(rows)


def _facts(record: Record) -> list[tuple[str, str]]:
    tools, device, digests = record.toolchain, record.device, record.digests
    host = device.host if device else {}
    facts = [
        ("head", record.head),
        ("base", record.base),
        ("merge tree", record.merge_tree),
        ("started", record.started),
        ("took", loose.duration(record.duration_s)),
        ("compiler", " ".join(part for part in (tools.compiler, tools.version) if part)),
        ("toolkit", tools.toolkit),
        ("architectures", " ".join(tools.archs)),
        ("device", device and " ".join(part for part in (device.name, device.arch) if part)),
        ("driver", device and device.driver),
        ("executor", device and device.executor),
        ("host", ", ".join(f"{name} {value}" for name, value in sorted(host.items()))),
        ("family", record.family and " ".join(f"{name} {value}" for name, value in sorted(record.family.items()))),
        ("image", (digests.image or "")[:DIGEST]),
        ("model", (digests.model or "")[:DIGEST]),
        ("tree", digests.tree[:DIGEST]),
        ("lane", digests.lane[:DIGEST]),
        ("reused from", (record.reused_from or "")[:DIGEST]),
        ("proven", ", ".join(_proof(gate, loose.mapping(said)) for gate, said in (record.proven or {}).items())),
    ]
    return [(name, loose.word(value)) for name, value in facts if value]


def _proof(gate: str, said: Mapping[str, Any]) -> str:
    """A gate that was broken on purpose, and whether it noticed."""
    noticed = "went red when it was broken" if said.get("proven") is True else "did not notice that it was broken"
    return f"{gate} {noticed} ({loose.word(said.get('how'))}, {loose.word(said.get('commit'))[:10]})"
