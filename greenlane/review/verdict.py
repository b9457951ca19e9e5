"""A lane's verdict: what its record says, weighed against the baseline, the known reds and the change itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase

from greenlane.matrix.model import Evidence, KnownRed, Lane
from greenlane.record.model import Outcome, Record, StageResult
from greenlane.review.baseline import Baseline
from greenlane.review.change import Change
from greenlane.review.model import Verdict

INFRASTRUCTURE = "infra"  # rule of a first error that is nobody's code
MEASURED = frozenset({Evidence.REACHED, Evidence.EXACT, Evidence.BENCHED})


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict and the sentence that justifies it."""

    verdict: Verdict
    reason: str
    stage: StageResult | None = None
    owner: str | None = None
    since: str | None = None  # date that a known red was entered


@dataclass(frozen=True, slots=True)
class Court:
    """What every lane is judged with."""

    baseline: Baseline | None
    change: Change
    known_red: tuple[KnownRed, ...]
    now: datetime


def judge(court: Court, lane: Lane, record: Record, missing: tuple[str, ...], others: list[Record]) -> Ruling:
    """The verdict of one current record. `others` are further records of the same inputs; `missing` is the evidence
    that the policy requires of the lane and the record lacks."""
    red = next((stage for stage in record.stages if _is_red(stage, lane)), None)
    if red is not None:
        return _judge_red(court, lane, red)
    if record.outcome is Outcome.VOID:
        return Ruling(Verdict.VOID, "the tree changed while the lane ran, so the record proves nothing")
    passing = _unexpected_pass(court, lane, record)
    if passing is not None:
        return passing
    if any(_red_stage(other, lane) for other in others):
        return Ruling(Verdict.FLAKY, "the same inputs failed before and pass now")
    if missing:
        return Ruling(Verdict.NOT_RUN, f"nothing is red, but {', '.join(missing)} is not reached{_why(record)}")
    return Ruling(Verdict.GREEN, "reached what it requires")


def _why(record: Record) -> str:
    reasons = [f"{s.stage}: {s.reason}" for s in record.stages if s.outcome is Outcome.NOT_RUN and s.reason]
    return f" ({reasons[0]})" if reasons else ""


def _is_red(stage: StageResult, lane: Lane) -> bool:
    if stage.outcome is Outcome.UNDECIDED:
        return stage.stage == "bench" and Evidence.BENCHED in lane.require
    return stage.outcome.is_red


def _red_stage(record: Record, lane: Lane) -> StageResult | None:
    return next((stage for stage in record.stages if _is_red(stage, lane)), None)


def _judge_red(court: Court, lane: Lane, red: StageResult) -> Ruling:
    error = red.first_error
    if red.outcome in {Outcome.VOID, Outcome.UNDECIDED}:
        return Ruling(Verdict.VOID, f"{red.stage} is not measured: {red.reason or 'no reason given'}", red)
    if error is not None and error.rule == INFRASTRUCTURE:
        return Ruling(Verdict.INFRA, f"{red.stage} was cut by the infrastructure: {error.message}", red)
    fingerprint = error.fingerprint if error else ""
    known = _known(court, lane, red, fingerprint)
    if known is not None:
        return known
    if not fingerprint:
        return Ruling(Verdict.UNCLASSIFIED, f"{red.stage} failed without an error that identifies it", red)
    if court.baseline is None:
        return Ruling(Verdict.UNCLASSIFIED, "there is no merge base, so nobody can say whose red this is", red)
    older = court.baseline.red_on_base(lane.id, red.stage, fingerprint, court.now)
    if older is not None:
        touched = error is not None and (
            court.change.touches(error.file, error.line) or court.change.mentions(error.target)
        )
        if touched:
            return Ruling(Verdict.OVERLAP_RED, f"{older}, but this change touches the failing code", red)
        return Ruling(Verdict.RED_ON_BASE, older, red)
    green = court.baseline.green_at(lane.id, red.stage)
    if green is not None:
        return Ruling(Verdict.NEW_RED, f"{red.stage} is green on base commit {green[:10]}", red)
    return Ruling(
        Verdict.UNCLASSIFIED, f"no base commit has a record of {red.stage} in this lane that could clear it", red
    )


def _known(court: Court, lane: Lane, red: StageResult, fingerprint: str) -> Ruling | None:
    for entry in court.known_red:
        if not (fnmatchcase(lane.id, entry.lane) and entry.stage == red.stage and entry.fingerprint == fingerprint):
            continue
        if _expired(entry, court.now):
            return Ruling(
                Verdict.NEW_RED, f"the known red of {entry.owner} expired on {entry.expires}", red, entry.owner
            )
        told = f"known since {entry.since}, owned by {entry.owner}, until {entry.expires}"
        return Ruling(Verdict.KNOWN_RED, told, red, entry.owner, entry.since)
    return None


def _unexpected_pass(court: Court, lane: Lane, record: Record) -> Ruling | None:
    passed = {stage.stage for stage in record.stages if stage.outcome.is_green}
    for entry in court.known_red:
        if fnmatchcase(lane.id, entry.lane) and entry.stage in passed and lane.id == entry.lane:
            reason = f"{entry.stage} is a known red of {entry.owner} and passes: remove the entry from the matrix"
            return Ruling(Verdict.NEW_RED, reason, owner=entry.owner)
    return None


def _expired(entry: KnownRed, now: datetime) -> bool:
    return date.fromisoformat(entry.expires) < now.astimezone(UTC).date()
