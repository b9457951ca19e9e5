"""The parts of the pull-request comment, each as Markdown, in the order in which a reviewer needs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from greenlane.record.model import Outcome
from greenlane.report.headline import OLDER
from greenlane.report.markdown import block, code, folded, table, text
from greenlane.review.figures import interval
from greenlane.review.model import (
    Claim,
    ClaimState,
    Conflict,
    FoundFinding,
    LaneReview,
    Review,
    StageView,
    Systemic,
    Verdict,
)

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
    ClaimState.PROVEN: "✅\u00a0proven",
    ClaimState.STALE: "⏳\u00a0stale",
    ClaimState.OTHER_DEVICE: "↔️\u00a0proven on another device",
    ClaimState.CONTRADICTED: "❌\u00a0contradicted",
    ClaimState.UNPROVEN: "❔\u00a0unproven",
}
ORDER = tuple(SIGN)  # of the lane table; green lanes come last
ON_DEVICE = ("ran-on-family", "ran-on-target")
NOTHING = (Outcome.NOT_RUN, Outcome.BLOCKED)
MOST_FINDINGS = 20
MOST_PLACES = 6  # of one finding
MOST_CHANGES = 40


@dataclass(frozen=True, slots=True)
class Section:
    """One part. What has the highest `weight` is cut last; `short` stands in for it when it does not fit."""

    name: str
    content: str
    weight: int
    short: str = ""


def binding(review: Review) -> str:
    """What all this speaks of."""
    head = f"{code(review.head[:12])} {text(review.head_subject, 80)}"
    behind = f", which is {counted(review.merge.behind, 'commit')} ahead" if review.merge.behind else ""
    tree = f" Their merge is the tree {code(review.merge.tree[:12])}." if review.merge.tree else ""
    return f"{head} onto {code(review.base_commit)} {code(review.base[:12])}{behind}.{tree}"


def broken(review: Review) -> str:
    return f"### Matrix\n\n{block(review.broken)}" if review.broken else ""


def conflicts(review: Review) -> str:
    lines = [f"- {_conflict(conflict)}" for conflict in review.merge.conflicts]
    for other, found in review.merge.others.items():
        files = ", ".join(code(conflict.file) for conflict in found[:5])
        lines.append(f"- {code(other)}, another open change, conflicts with this one in {files}")
    if review.merge.state == "unknown":
        lines.append(f"- Whether it merges is not known: {text(review.merge.reason)}")
    return "### Merge\n\n" + "\n".join(lines) if lines else ""


def _conflict(conflict: Conflict) -> str:
    """Where the author has to look: lines of the head's own file."""
    places = ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in conflict.hunks[:8])
    word = "line" if len(conflict.hunks) == 1 and conflict.hunks[0][0] == conflict.hunks[0][1] else "lines"
    where = f" {word} {places} of this change" if places else ""
    gone = ", which this change removes" if conflict.gone else ""
    other = "" if conflict.own else " (not lines that it changes)"
    return f"{code(conflict.file)}{where}{gone}{other}"


def counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def sentence(told: str) -> str:
    """A reason that stands alone."""
    return f"{text(told[:1].upper() + told[1:])}."


def named(lanes: Sequence[str], most: int = 6) -> str:
    """Lanes by name, the rest by their number."""
    shown = ", ".join(code(lane) for lane in lanes[:most])
    return f"{shown} and {len(lanes) - most} more" if len(lanes) > most else shown


def findings(review: Review) -> str:
    """What the checks say, each finding once: those of the red lanes open, bare notes folded."""
    red = [found for found in review.findings if found.severity != "note"]
    alike = _alike(review.findings)
    lines = [_found(group) for group in alike[:MOST_FINDINGS]]
    rest = sum(len(group) for group in alike[MOST_FINDINGS:])
    if rest:
        lines.append(f"- and {rest} more; {code('greenlane check')} shows them")
    if not red:
        notes = counted(len(review.findings), "note") + " of the checks"
        return folded(notes, "\n".join(lines)) if lines else ""
    lane = next((one for found in red for one in found.lanes), "LANE")
    again = f"Again, without a compiler: {code('greenlane check')} at {code(review.head)}, or {code(f'nox -s {lane}')}."
    return "\n".join(("### What the checks found", "", *lines, "", again))


def _alike(found: Sequence[FoundFinding]) -> list[list[FoundFinding]]:
    """Findings that differ by their line alone are told together."""
    groups: dict[FoundFinding, list[FoundFinding]] = {}
    for one in found:
        groups.setdefault(replace(one, line=0), []).append(one)
    return list(groups.values())


def _found(group: Sequence[FoundFinding]) -> str:
    found = group[0]
    sign = "ℹ️" if found.severity == "note" else "🔴" if found.new_in or found.whose_is_unknown else "🟤"
    where = ", ".join(code(f"{one.file}:{one.line}") for one in group[:MOST_PLACES])
    more = f" and {len(group) - MOST_PLACES} more places" if len(group) > MOST_PLACES else ""
    said = f"- {sign} {code(found.rule)} {where}{more}: {text(found.message)} — in {named(found.lanes)}"
    near = [f"  - {code(f'{file}:{line}')}: {text(what, 160)}" for file, line, what in found.related[:3]]
    return "\n".join((said, *near, *([f"  - To mend it: {text(found.suggestion)}"] if found.suggestion else [])))


def lane_table(lanes: Iterable[LaneReview], head: str) -> str:
    """A row per lane; a gate's column only where some lane has something to show in it."""
    rows = [_row(lane, head) for lane in lanes]
    header = ("lane", "verdict", "evidence", "exact", "bench", "commit")
    shown = [at for at in range(len(header)) if at not in (3, 4) or any(row[at] != "—" for row in rows)]
    if not rows:
        return ""
    return table(tuple(header[at] for at in shown), [tuple(row[at] for at in shown) for row in rows])


def by_urgency(lanes: Iterable[LaneReview]) -> list[LaneReview]:
    """Blocking first, then what is shown, then green."""
    return sorted(
        lanes,
        key=lambda lane: (not lane.blocks, lane.verdict is Verdict.GREEN, ORDER.index(lane.verdict), lane.id),
    )


def _row(lane: LaneReview, head: str) -> tuple[str, ...]:
    star = "" if lane.required else " _(optional)_"
    commit = "—"
    if lane.commit:
        commit = code(lane.commit[:10]) + (
            f" _stale{'' if lane.commit != head else ', see below'}_" if lane.stale else ""
        )
    trust = {"fork": " _by the fork_", "local": " _by hand_"}.get(lane.trust or "", "")
    verdict = f"{SIGN[lane.verdict]}\u00a0{lane.verdict}"
    return (code(lane.id) + star, verdict, _evidence(lane), _exact(lane), _bench(lane), commit + trust)


def _evidence(lane: LaneReview) -> str:
    flags = [code(flag) + (f" ({code(lane.device_arch)})" if flag in ON_DEVICE and lane.device_arch else "")
             for flag in lane.evidence]  # fmt: skip
    if any(stage.outcome is Outcome.INERT for stage in lane.stages):
        flags.append("_inert: no run reaches it_")
    missing = f"needs {' '.join(code(flag) for flag in lane.missing)}" if lane.missing else ""
    return "; ".join(part for part in (" ".join(flags), missing) if part) or "—"


def _exact(lane: LaneReview) -> str:
    stage = _stage(lane, "exact")
    if stage is None or stage.outcome in NOTHING:
        return "—"
    compared = stage.measurements.get("comparisons")
    comparisons = [found for found in compared if isinstance(found, dict)] if isinstance(compared, list) else []
    counts = [found.get("positions") for found in comparisons]
    positions = sum(count for count in counts if isinstance(count, int))
    return f"{stage.outcome} ({positions} tokens)" if positions else str(stage.outcome)


def _bench(lane: LaneReview) -> str:
    """The verdict of each metric with its interval, or the bare figure where there was no base."""
    stage = _stage(lane, "bench")
    if stage is None or stage.outcome in NOTHING:
        return "—"
    metrics = stage.measurements.get("metrics")
    found = metrics if isinstance(metrics, dict) else {}
    parts = [_metric(name, metric) for name, metric in found.items() if isinstance(metric, dict)]
    return "; ".join(parts[:4]) or str(stage.outcome)


def _metric(name: str, found: dict[str, Any]) -> str:
    ends = interval(found)
    if ends is not None:
        low, high = (f"{100 * end:+.1f}" for end in ends)
        return f"{text(name, 24)} {text(found.get('verdict', ''), 12)} \\[{low}, {high}\\] %"
    median = found.get("median")
    shown = f"{float(median):.4g}" if isinstance(median, int | float) else "—"
    return f"{text(name, 24)} {shown} {text(found.get('unit') or '', 16)}".rstrip()


def _stage(lane: LaneReview, name: str) -> StageView | None:
    return next((stage for stage in lane.stages if stage.stage == name), None)


def groups(reds: Sequence[LaneReview], systemic: Sequence[Systemic] = ()) -> list[list[LaneReview]]:
    """Lanes that fail alike are told together; those that the checks keep red are told by their findings."""
    found: dict[tuple[str, ...], list[LaneReview]] = {}
    events = {event.fingerprint for event in systemic}
    for lane in reds:
        stage = red_stage(lane)
        if stage is not None and stage.stage == "check" and lane.findings:
            continue
        if lane.fingerprint in events:
            alike: tuple[str, ...] = (str(lane.fingerprint),)
        else:
            alike = (lane.verdict, stage.stage if stage else "", lane.fingerprint or lane.id)
        found.setdefault(alike, []).append(lane)
    return list(found.values())


def red_stage(lane: LaneReview) -> StageView | None:
    """The stage that a person has to look at."""
    undecided = (stage for stage in lane.stages if stage.outcome is Outcome.UNDECIDED and lane.verdict is Verdict.VOID)
    return next((stage for stage in lane.stages if stage.outcome.is_red), None) or next(undecided, None)


def red_group(lanes: Sequence[LaneReview], head: str, systemic: Sequence[Systemic] = ()) -> str:
    """What a person needs to mend a red: the error, where, how to see it again, what the checks say of it."""
    lane = lanes[0]
    stage = red_stage(lane)
    who = named([one.id for one in lanes])
    one_event = any(event.fingerprint == lane.fingerprint for event in systemic)
    cause = f"one cause in {len(lanes)} lanes: " if one_event else ""
    verdicts = ", ".join(dict.fromkeys(str(one.verdict) for one in lanes))
    parts = [f"#### {SIGN[lane.verdict]} {cause}{who}: {verdicts}{_where(stage)}", sentence(lane.reason)]
    if stage and (stage.message or stage.reason) and not _is_told(stage, lane.reason):
        parts.append(block(stage.message or str(stage.reason)))
    explained = "\n".join(f"- {finding}" for finding in _explaining(lane, stage))
    return "\n\n".join((*parts, *([explained] if explained else []), _again(lane, head)))


def _is_told(stage: StageView, reason: str) -> bool:
    return (stage.message or str(stage.reason)) in reason


def _where(stage: StageView | None) -> str:
    if stage is None:
        return ""
    place = f"{stage.file}:{stage.line}" if stage.line else stage.file
    return f" in {stage.stage}" + (f" at {code(place)}" if place else "")


def _again(lane: LaneReview, head: str) -> str:
    image = f", image {code(lane.image)}" if lane.image else ""
    record = f", or {code(f'greenlane reproduce {lane.record[:12]}')}" if lane.record else ""
    mark = f". Fingerprint {code(lane.fingerprint)}" if lane.fingerprint else ""
    return f"Again: {code(f'nox -s {lane.id}')} at {code(head)}{image}{record}{mark}."


def _explaining(lane: LaneReview, stage: StageView | None) -> list[str]:
    """Findings of greenlane check that bear on this red: those in the failing file first."""
    name = PurePosixPath(stage.file).name if stage and stage.file else None
    ranked = sorted(lane.findings, key=lambda found: PurePosixPath(str(found["file"])).name != name)
    return [_finding(found) for found in ranked[:3]]


def _finding(found: dict[str, Any]) -> str:
    place = f"{found['file']}:{found['line']}"
    return f"{code(found['rule'])} {code(place)}: {text(found['message'])}"


def claim_table(review: Review) -> str:
    """Each claim with its record. A row that the text's own section refuses already is not told twice."""
    lines = {problem.line for problem in review.text_problems}
    shown = [claim for claim in review.claims if not (claim.kind == "row" and claim.line in lines)]
    rows = [(text(claim.text, 120), _claim_word(claim), text(claim.reason, 160)) for claim in shown]
    return "### Claims\n\n" + table(("the text says", "", "because"), rows) if rows else ""


def _claim_word(claim: Claim) -> str:
    return "⚠️\u00a0too\u00a0early" if claim.kind == "closes" else CLAIM_WORD[claim.state]


def text_problems(review: Review) -> str:
    lines = [
        f"- line {problem.line}: {text(problem.message)}"
        for problem in sorted(review.text_problems, key=lambda one: one.line)
    ]
    return "### The pull request's text\n\n" + "\n".join(lines) if lines else ""


def policy(review: Review) -> str:
    if not review.policy_changes:
        return ""
    rows = [
        (text(change.what, 120) + (" ⚠️ loosens" if change.loosens else ""), code(change.before, 80),
         code(change.after, 80))
        for change in review.policy_changes[:MOST_CHANGES]
    ]  # fmt: skip
    told = "This change edits its own rules. It is judged by the merge base's; its own take effect after the merge."
    more = len(review.policy_changes) - MOST_CHANGES
    rest = f"\n\n{counted(more, 'more edit')} of the matrix." if more > 0 else ""
    return f"### Policy changes\n\n{told}\n\n" + table(("what", "before", "after"), rows) + rest


def older_reds(review: Review) -> str:
    rows = [
        (code(lane.id), str(lane.verdict), _first_error(lane), text(lane.reason), text(lane.owner or "—", 40),
         _days(lane.age_days))
        for lane in review.lanes
        if lane.verdict in OLDER
    ]  # fmt: skip
    if not rows:
        return ""
    summary = f"{counted(len(rows), 'lane')} {'was' if len(rows) == 1 else 'were'} red before this change"
    return folded(summary, table(("lane", "verdict", "first error", "why", "owner", "age"), rows))


def _first_error(lane: LaneReview) -> str:
    stage = red_stage(lane)
    if stage is None:
        return "—"
    return f"{stage.stage}: {text(stage.message or stage.reason or 'no error', 120)}"


def _days(age: int | None) -> str:
    return "—" if age is None else counted(age, "day")


def not_run(review: Review) -> str:
    lanes = [lane for lane in review.lanes if lane.verdict is Verdict.NOT_RUN]
    if not lanes:
        return ""
    summary = f"{counted(len(lanes), 'lane')} not proven at this commit"
    reasons = {lane.reason for lane in lanes}
    last = [code(lane.last_run[:10]) if lane.last_run else "never" for lane in lanes]
    if len(reasons) > 1 or len(lanes) == 1:
        rows = [(code(lane.id), text(lane.reason), ran) for lane, ran in zip(lanes, last, strict=True)]
        return folded(summary, table(("lane", "why", "last ran on its target at"), rows))
    rows_alike = [(code(lane.id), ran) for lane, ran in zip(lanes, last, strict=True)]
    told = f"Of each lane: {text(reasons.pop())}."
    return folded(summary, f"{told}\n\n{table(('lane', 'last ran on its target at'), rows_alike)}")


def notes(review: Review) -> str:
    return "\n".join(f"_{text(note)}_" for note in review.notes)
