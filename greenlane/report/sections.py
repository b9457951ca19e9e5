"""The parts of the pull-request comment, each as Markdown, in the order in which a reviewer needs them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from greenlane.report.markdown import block, code, folded, table, text
from greenlane.review.model import Claim, ClaimState, LaneReview, Review, StageView, Verdict

SIGN = {
    Verdict.GREEN: "🟢",
    Verdict.NEW_RED: "🔴",
    Verdict.OVERLAP_RED: "🔴",
    Verdict.UNCLASSIFIED: "🔴",
    Verdict.FLAKY: "🟠",
    Verdict.VOID: "🟠",
    Verdict.INFRA: "🟠",
    Verdict.BLOCKED: "🟠",
    Verdict.RED_ON_BASE: "🟤",
    Verdict.KNOWN_RED: "🟤",
    Verdict.NOT_RUN: "⚪",
}
CLAIM_WORD = {
    ClaimState.PROVEN: "✅ proven",
    ClaimState.STALE: "⏳ stale",
    ClaimState.OTHER_DEVICE: "↔️ proven on another device",
    ClaimState.CONTRADICTED: "❌ contradicted",
    ClaimState.UNPROVEN: "❔ unproven",
}
OLDER = (Verdict.RED_ON_BASE, Verdict.KNOWN_RED)
ORDER = tuple(SIGN)  # of the lane table; green lanes come last


@dataclass(frozen=True, slots=True)
class Section:
    """One part. What has the highest `weight` is cut last; `short` stands in for it when it does not fit."""

    name: str
    content: str
    weight: int
    short: str = ""


def title(review: Review) -> str:
    """One line: what needs whom."""
    required = [lane for lane in review.lanes if lane.required]
    reds = [lane for lane in required if lane.blocks and lane.verdict is not Verdict.NOT_RUN]
    missing = [lane for lane in required if lane.verdict is Verdict.NOT_RUN]
    if review.merge.state == "conflict":
        return f"## 🔴 Conflicts with {code(review.base_commit)}: the author has to rebase"
    if reds:
        return f"## 🔴 {_count(reds, 'lane')} red: the author has to look"
    if missing:
        return f"## ⚪ Nothing is red, but {_count(missing, 'lane')} not proven: somebody has to run them"
    return f"## 🟢 All {len(required)} required lanes are proven at this commit"


def _count(items: list[Any], word: str) -> str:
    return f"{len(items)} {word}{'s are' if len(items) != 1 else ' is'}"


def binding(review: Review) -> str:
    """What all this speaks of."""
    tree = f", merged tree {code(review.merge.tree[:12])}" if review.merge.tree else ""
    behind = f", {review.merge.behind} commits behind it" if review.merge.behind else ""
    head = f"{code(review.head[:12])} {text(review.head_subject, 80)}"
    return f"For {head} onto {code(review.base_commit)} {code(review.base[:12])}{behind}{tree}."


def conflicts(review: Review) -> str:
    lines = []
    for conflict in review.merge.conflicts:
        where = ", ".join(f"{first}-{last}" for first, last in conflict.hunks[:5])
        own = " (this change's own lines)" if conflict.own else ""
        lines.append(f"- {code(conflict.file)} {f'lines {where} of the merge' if where else ''}{own}")
    for other, found in review.merge.others.items():
        files = ", ".join(code(conflict.file) for conflict in found[:5])
        lines.append(f"- also conflicts with {code(other)} in {files}")
    if review.merge.state == "unknown":
        lines.append(f"- Whether it merges is not known: {text(review.merge.reason)}")
    return "### Merge\n\n" + "\n".join(lines) if lines else ""


def lane_table(lanes: Iterable[LaneReview]) -> str:
    rows = [_row(lane) for lane in sorted(lanes, key=lambda lane: (ORDER.index(lane.verdict), lane.id))]
    return table(("lane", "verdict", "evidence", "exact", "bench", "commit"), rows) if rows else ""


def by_urgency(lanes: Iterable[LaneReview]) -> list[LaneReview]:
    """Blocking first, then what is shown, then green."""
    return sorted(
        lanes,
        key=lambda lane: (not lane.blocks, lane.verdict is Verdict.GREEN, ORDER.index(lane.verdict), lane.id),
    )


def _row(lane: LaneReview) -> tuple[str, ...]:
    star = "" if lane.required else " _(optional)_"
    commit = code(lane.commit[:10]) + (" _stale_" if lane.stale else "") if lane.commit else "—"
    evidence = " ".join(code(flag) for flag in lane.evidence) or "—"
    missing = f"; needs {' '.join(code(flag) for flag in lane.missing)}" if lane.missing else ""
    trust = " _fork_" if lane.trust == "fork" else ""
    verdict = f"{SIGN[lane.verdict]} {lane.verdict}"
    return (code(lane.id) + star, verdict, evidence + missing, _exact(lane), _bench(lane), commit + trust)


def _exact(lane: LaneReview) -> str:
    stage = _stage(lane, "exact")
    if stage is None or stage.outcome == "not-run":
        return "—"
    comparisons = [found for found in stage.measurements.get("comparisons", []) if isinstance(found, dict)]
    counts = [found.get("positions", 0) for found in comparisons]
    positions = sum(count for count in counts if isinstance(count, int))
    return f"{stage.outcome} ({positions} tokens)" if positions else str(stage.outcome)


def _bench(lane: LaneReview) -> str:
    """The verdict of each metric with its interval, or the bare figure where there was no base."""
    stage = _stage(lane, "bench")
    if stage is None or stage.outcome == "not-run":
        return "—"
    metrics = stage.measurements.get("metrics", {})
    parts = [_metric(name, found) for name, found in metrics.items() if isinstance(found, dict)]
    return "; ".join(parts[:4]) or str(stage.outcome)


def _metric(name: str, found: dict[str, Any]) -> str:
    interval = found.get("interval")
    if isinstance(interval, list | tuple) and [type(end) for end in interval] == [float, float]:
        low, high = (f"{100 * end:+.1f}" for end in interval)
        return f"{text(name, 24)} {text(found.get('verdict', ''), 12)} \\[{low}, {high}\\] %"
    median = found.get("median")
    shown = f"{float(median):.4g}" if isinstance(median, int | float) else "—"
    return f"{text(name, 24)} {shown} {text(found.get('unit', ''), 16)}"


def _stage(lane: LaneReview, name: str) -> StageView | None:
    return next((stage for stage in lane.stages if stage.stage == name), None)


def red_lane(lane: LaneReview, head: str) -> str:
    """What a person needs to mend one red lane: the error, where, how to see it again, what the checks say of it."""
    stage = next((stage for stage in lane.stages if stage.outcome.is_red), None)
    parts = [f"#### {SIGN[lane.verdict]} {code(lane.id)}: {lane.verdict}{_where(stage)}", text(lane.reason)]
    if stage and (stage.message or stage.reason):
        parts.append(block(stage.message or str(stage.reason)))
    parts += [f"- {finding}" for finding in _explaining(lane, stage)]
    parts.append(_again(lane, head))
    return "\n\n".join(parts)


def _where(stage: StageView | None) -> str:
    if stage is None:
        return ""
    place = f"{stage.file}:{stage.line}" if stage.line else stage.file
    return f" in {stage.stage}" + (f" at {code(place)}" if place else "")


def _again(lane: LaneReview, head: str) -> str:
    image = f", image {code(lane.image[:19])}" if lane.image else ""
    record = f", or {code(f'greenlane reproduce {lane.record[:12]}')}" if lane.record else ""
    return f"Again: {code(f'nox -s {lane.id}')} at {code(head[:12])}{image}{record}"


def _explaining(lane: LaneReview, stage: StageView | None) -> list[str]:
    """Findings of greenlane check that bear on this red: those in the failing file first."""
    name = PurePosixPath(stage.file).name if stage and stage.file else None
    ranked = sorted(lane.findings, key=lambda found: PurePosixPath(str(found["file"])).name != name)
    return [_finding(found) for found in ranked[:3]]


def _finding(found: dict[str, Any]) -> str:
    place = f"{found['file']}:{found['line']}"
    return f"{code(found['rule'])} {code(place)}: {text(found['message'])}"


def systemic(review: Review) -> str:
    lines = [
        f"- {len(event.lanes)} lanes fail alike ({code(event.fingerprint)}): {code(event.message)} in "
        + ", ".join(code(lane) for lane in event.lanes[:8])
        + ("…" if len(event.lanes) > 8 else "")
        for event in review.systemic
    ]
    return "### One cause, many lanes\n\n" + "\n".join(lines) if lines else ""


def claim_table(claims: tuple[Claim, ...]) -> str:
    rows = [(text(claim.text, 120), CLAIM_WORD[claim.state], text(claim.reason, 160)) for claim in claims]
    return "### Claims\n\n" + table(("the pull request says", "", "because"), rows) if rows else ""


def policy(review: Review) -> str:
    if not review.policy_changes:
        return ""
    rows = [
        (text(change.what, 80) + (" ⚠️" if change.loosens else ""), code(change.before, 80), code(change.after, 80))
        for change in review.policy_changes
    ]
    told = "This change edits its own rules. They are judged by the merge base's, and take effect after the merge."
    return f"### Policy changes\n\n{told}\n\n" + table(("what", "before", "after"), rows)


def older_reds(review: Review) -> str:
    rows = [
        (code(lane.id), str(lane.verdict), text(lane.reason), text(lane.owner or "—", 40), _days(lane.age_days))
        for lane in review.lanes
        if lane.verdict in OLDER
    ]
    if not rows:
        return ""
    return folded(
        f"{len(rows)} reds that this change did not make", table(("lane", "verdict", "why", "owner", "age"), rows)
    )


def _days(age: int | None) -> str:
    return "—" if age is None else f"{age} days"


def not_run(review: Review) -> str:
    rows = [
        (code(lane.id), text(lane.reason), code(lane.last_run[:10]) if lane.last_run else "never")
        for lane in review.lanes
        if lane.verdict is Verdict.NOT_RUN
    ]
    if not rows:
        return ""
    return folded(f"{len(rows)} lanes not proven", table(("lane", "why", "last ran on its target at"), rows))


def notes(review: Review) -> str:
    return "\n".join(f"_{text(note)}_" for note in review.notes)
