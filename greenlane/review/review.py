"""From records to verdicts: the whole review of one change, read top to bottom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from greenlane.errors import MatrixError
from greenlane.ledger import Ledger, history
from greenlane.ledger.admission import instant
from greenlane.matrix.model import Evidence, Lane, Stage
from greenlane.record.git import commit_of, git, git_text
from greenlane.record.model import Record, StageResult
from greenlane.review import baseline, body, change, claims, faults, findings, merge, policy, standing
from greenlane.review.model import LaneReview, MergeProbe, Review, StageView, Systemic, Verdict
from greenlane.review.policy import Policy
from greenlane.review.standing import Standing
from greenlane.review.verdict import Court, Ruling, judge

Ages = Mapping[tuple[str, str, str], str]  # lane, stage, fingerprint -> start of the oldest record that shows it
SYSTEMIC_LANES = 5  # one fingerprint across more lanes than this is reported once


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be reviewed."""

    repository: Path
    matrix: str  # path inside the repository
    base: str
    head: str
    body: str | None = None  # of the pull request
    others: tuple[str, ...] = ()  # refs of other open changes
    now: datetime | None = None


def review(ledger: Ledger, asked: Asked) -> Review:
    """Merge probe, policy of the merge base, records against the baseline, claims. Changes nothing."""
    now = asked.now or datetime.now(UTC)
    head, base = _commit(asked, asked.head, "--head"), _commit(asked, asked.base, "--base")
    ledger.mend()
    probe = merge.probe(asked.repository, base, head, asked.others)
    rules = policy.read(asked.repository, probe.merge_base or base, head, asked.matrix)
    standings = standing.read(ledger, rules, head, probe, now, baseline.commits(asked.repository, base))
    court = _court(ledger, asked.repository, rules, probe, base, head, standings, now)
    ages = history.first_seen_of(ledger, _fingerprints(standings))
    lanes = tuple(_lane(court, rules, found, ages) for found in standings.values())
    return Review(
        head=head,
        base=base,
        merge=probe,
        lanes=lanes,
        claims=claims.read(asked.body, standings, baseline.loader(ledger)) if asked.body else (),
        policy_changes=rules.changes,
        systemic=tuple(_systemic(lanes)),
        notes=tuple(_notes(asked, probe)),
        base_commit=asked.base,
        head_subject=_subject(asked.repository, head),
        findings=tuple(findings.gathered(lanes)),
        text_problems=body.problems(asked.body, rules.ruling) if asked.body is not None else (),
        broken=rules.broken,
    )


def _subject(repository: Path, commit: str) -> str:
    return git(repository, "log", "-1", "--format=%s", commit).stdout.decode("utf-8", "replace").strip()


def _commit(asked: Asked, revision: str, option: str) -> str:
    commit = commit_of(asked.repository, revision)
    if commit is None:
        raise MatrixError(f"{option} {revision}: no such commit here; fetch it, or name another")
    return commit


def _court(
    ledger: Ledger,
    repository: Path,
    rules: Policy,
    probe: MergeProbe,
    base: str,
    head: str,
    standings: Mapping[str, Standing],
    now: datetime,
) -> Court:
    known = rules.ruling.known_red
    if probe.merge_base is None:
        return Court(None, change.Change({}), known, now, kept_red=rules.head.known_red)
    current = [found.current for found in standings.values() if found.current is not None]
    red = [record for record in current if any(stage.outcome.is_red for stage in record.stages)]
    seen = baseline.read(ledger, repository, probe.merge_base, [record.lane for record in red])
    merged = [record.lane for record in red if record.merge_tree is not None]
    tip = baseline.read(ledger, repository, base, merged) if merged and base != probe.merge_base else None
    touched = change.read(repository, probe.merge_base, head)
    return Court(seen, touched, known, now, tip, rules.head.known_red)


def _lane(court: Court, rules: Policy, found: Standing, ages: Ages) -> LaneReview:
    lane, record = found.lane, found.current
    if record is None:
        return _without_record(rules, found)
    missing = tuple(flag for flag in lane.require if flag not in found.evidence)
    ruling = _distrusted(judge(court, lane, record, missing, list(found.others)), record, found, missing)
    return replace(
        _identity(rules, lane),
        verdict=ruling.verdict,
        reason=ruling.reason,
        evidence=found.evidence,
        missing=missing,
        stages=tuple(_view(record, stage) for stage in record.stages),
        fingerprint=_fingerprint(record, ruling.stage),
        record=found.current_id,
        commit=record.head,
        last_run=_last_run(found, record),
        trust=record.trust,
        image=record.digests.image,
        owner=ruling.owner,
        age_days=_age(ages, record, ruling, court.now),
        findings=tuple(finding.model_dump(mode="json") for finding in record.findings),
        duration_s=record.duration_s,
        bench=_bench(record),
        device=record.device.name if record.device else None,
        device_arch=record.device.arch if record.device else None,
        reused_from=record.reused_from,
        new_findings=ruling.new_findings,
    )


def _without_record(rules: Policy, found: Standing) -> LaneReview:
    lane = found.lane
    newest = found.stale[0] if found.stale else None
    told = "no record of this lane exists"
    if newest is not None:
        told = f"its newest record {newest.why}"
    if lane.hosted_only and newest is None:
        told = f"not run here: {lane.hosted_only}"
    if rules.broken:
        told = "the matrix of this change can't be read, so no record can speak for it"
    return replace(
        _identity(rules, lane),
        verdict=Verdict.NOT_RUN,
        reason=told,
        missing=lane.require,
        record=newest.row.id if newest else None,
        commit=newest.row.head if newest else None,
        stale=newest is not None,
        last_run=_last_run(found, None),
        trust=newest.row.trust if newest else None,
    )


def _identity(rules: Policy, lane: Lane) -> LaneReview:
    return LaneReview(
        id=lane.id,
        verdict=Verdict.NOT_RUN,
        reason="",
        required=lane.id in rules.required,
        row=lane.row,
        backend=lane.backend,
        arch=lane.arch,
        variant=lane.variant,
    )


def _distrusted(ruling: Ruling, record: Record, found: Standing, missing: tuple[str, ...]) -> Ruling:
    """Nothing that only a fork's own run vouches for lets a change pass; refused evidence says why it was."""
    if record.trust == "fork" and not ruling.verdict.blocks:
        told = "green" if ruling.verdict is Verdict.GREEN else f"{ruling.verdict} ({ruling.reason})"
        return Ruling(Verdict.NOT_RUN, f"{told} in the fork's own run only; a trusted run has to confirm it")
    if ruling.verdict is Verdict.NOT_RUN and missing and found.refused:
        return Ruling(Verdict.NOT_RUN, found.refused)
    return ruling


def _view(record: Record, stage: StageResult) -> StageView:
    error = faults.first_error(record, stage) if stage.outcome.is_red else stage.first_error
    return StageView(
        stage=stage.stage,
        outcome=stage.outcome,
        reason=stage.reason,
        duration_s=stage.duration_s,
        message=error.message if error else None,
        file=error.file if error else None,
        line=error.line if error else None,
        log=stage.log,
        measurements=stage.measurements,
    )


def _fingerprint(record: Record, stage: StageResult | None) -> str | None:
    return faults.of(record, stage).fingerprint or None if stage is not None else None


def _last_run(found: Standing, record: Record | None) -> str | None:
    if record is not None and Evidence.RAN_ON_TARGET in record.evidence and record.trust != "fork":
        return record.head
    row = found.stale_with(Evidence.RAN_ON_TARGET)
    return row.head if row else None


def _fingerprints(standings: Mapping[str, Standing]) -> set[str]:
    """Of every red stage that speaks for this commit."""
    records = [found.current for found in standings.values() if found.current is not None]
    errors = [stage.first_error for record in records for stage in record.stages if stage.outcome.is_red]
    return {error.fingerprint for error in errors if error is not None and error.fingerprint}


def _age(ages: Ages, record: Record, ruling: Ruling, now: datetime) -> int | None:
    if ruling.verdict not in {Verdict.RED_ON_BASE, Verdict.OVERLAP_RED, Verdict.KNOWN_RED} or ruling.stage is None:
        return None
    if ruling.since is not None:
        return max(0, (now.date() - datetime.fromisoformat(ruling.since).date()).days)
    begun = instant(ages.get((record.lane, ruling.stage.stage, _fingerprint(record, ruling.stage) or ""), ""))
    return max(0, (now - begun).days) if begun else None


def _bench(record: Record) -> dict[str, object] | None:
    stage = next((stage for stage in record.stages if stage.stage is Stage.BENCH), None)
    return {"outcome": str(stage.outcome), **stage.measurements} if stage and stage.measurements else None


def _systemic(lanes: Iterable[LaneReview]) -> Iterable[Systemic]:
    """Findings of the checks are not among them: they are told once anyway."""
    groups: dict[str, list[LaneReview]] = defaultdict(list)
    for lane in lanes:
        red = next((stage.stage for stage in lane.stages if stage.outcome.is_red), None)
        if lane.fingerprint and red != Stage.CHECK and lane.verdict not in {Verdict.KNOWN_RED, Verdict.RED_ON_BASE}:
            groups[lane.fingerprint].append(lane)
    for fingerprint, group in groups.items():
        if len(group) > SYSTEMIC_LANES:
            message = next((stage.message for lane in group for stage in lane.stages if stage.message), None)
            yield Systemic(fingerprint, message or "", tuple(lane.id for lane in group))


def _notes(asked: Asked, probe: MergeProbe) -> Iterable[str]:
    if probe.merge_base is not None and git_text(asked.repository, "rev-parse", "--is-shallow-repository") == "true":
        yield "This clone is shallow, so its older commits were not seen; git fetch --unshallow brings them."
    for other in probe.unknown_others:
        yield f"{other} was not tried: it is not here, or shares no commit with this change."
    if asked.body is None:
        yield "No pull-request text was given, so no claim was looked at."
