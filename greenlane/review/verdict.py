"""A lane's verdict: what its record says, weighed against the baseline, the known reds and the change itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase

from greenlane.matrix.model import Evidence, KnownRed, Lane, Stage
from greenlane.record.model import FirstError, Outcome, Record, StageResult
from greenlane.review import faults
from greenlane.review.baseline import Baseline
from greenlane.review.change import Change
from greenlane.review.faults import Fault
from greenlane.review.model import Verdict

INFRASTRUCTURE = "infra"  # rule of a first error that is nobody's code
MEASURED = frozenset({Evidence.REACHED, Evidence.EXACT, Evidence.BENCHED})
SHOWN = 3  # new findings that a reason counts out


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict and the sentence that justifies it."""

    verdict: Verdict
    reason: str
    stage: StageResult | None = None
    owner: str | None = None
    since: str | None = None  # date that a known red was entered
    new_findings: tuple[str, ...] | None = None  # of a red check: what the base lacks; None where nobody knows


@dataclass(frozen=True, slots=True)
class Court:
    """What every lane is judged with."""

    baseline: Baseline | None  # of the merge base
    change: Change
    known_red: tuple[KnownRed, ...]
    now: datetime
    merged: Baseline | None = None  # of the base's tip: for records of the merge with it
    kept_red: tuple[KnownRed, ...] | None = None  # known reds as the change leaves them; None: as they were

    def withdraws(self, entry: KnownRed, lane: Lane) -> bool:
        """Whether the change takes an entry out of the matrix, as far as the lane goes: it says that it mends the red.
        That asks more of the change, so it counts at once."""
        if self.kept_red is None:
            return False
        same = (kept for kept in self.kept_red if kept.fingerprint == entry.fingerprint)
        return not any(_speaks_of(kept, lane, entry.stage) for kept in same)


def judge(court: Court, lane: Lane, record: Record, missing: tuple[str, ...], others: list[Record]) -> Ruling:
    """The verdict of one current record. `others` are further records of the same inputs; `missing` is the evidence
    that the policy requires of the lane and the record lacks."""
    red = red_stage(record, lane)
    if red is not None:
        return _judge_red(court, lane, record, red, others)
    if record.outcome is Outcome.VOID:
        return Ruling(Verdict.VOID, "the tree changed while the lane ran, so the record proves nothing")
    if record.outcome.is_red:
        return Ruling(Verdict.UNCLASSIFIED, f"the record says {record.outcome} and shows no red stage")
    blocked = next((stage for stage in record.stages if stage.outcome is Outcome.BLOCKED), None)
    if blocked is not None:
        return Ruling(Verdict.BLOCKED, f"{blocked.stage} was not run: {blocked.reason or 'an earlier stage is red'}")
    passing = _unexpected_pass(court, lane, record)
    if passing is not None:
        return passing
    if any(red_stage(other, lane) and not is_infrastructure(other) for other in others):
        return Ruling(Verdict.FLAKY, "the same inputs failed before and pass now")
    if missing:
        return Ruling(Verdict.NOT_RUN, f"nothing is red, but {', '.join(missing)} is not reached{_why(record)}")
    return Ruling(Verdict.GREEN, "reached what it requires")


def is_infrastructure(record: Record) -> bool:
    """Whether the machine cut the lane, so that the record says nothing of the code. Such a lane may be run again."""
    errors = (stage.first_error for stage in record.stages if stage.outcome.is_red)
    return any(error is not None and error.rule == INFRASTRUCTURE for error in errors)


def _why(record: Record) -> str:
    reasons = [f"{s.stage}: {s.reason}" for s in record.stages if s.outcome is Outcome.NOT_RUN and s.reason]
    if Evidence.RAN_ON_FAMILY in record.evidence and record.device is not None and record.device.arch:
        reasons.insert(0, f"it ran on a {record.device.arch}")
    return f" ({reasons[0]})" if reasons else ""


def red_stage(record: Record, lane: Lane) -> StageResult | None:
    """The first stage that ended red."""
    return next((stage for stage in record.stages if _is_red(stage, lane)), None)


def _is_red(stage: StageResult, lane: Lane) -> bool:
    if stage.outcome is Outcome.UNDECIDED:
        return stage.stage is Stage.BENCH and Evidence.BENCHED in lane.require
    return stage.outcome.is_red


def _judge_red(court: Court, lane: Lane, record: Record, red: StageResult, others: list[Record]) -> Ruling:
    error = faults.first_error(record, red)
    if red.outcome in {Outcome.VOID, Outcome.UNDECIDED}:
        return Ruling(Verdict.VOID, f"{red.stage} is not measured: {red.reason or 'no reason given'}", red)
    if error is not None and error.rule == INFRASTRUCTURE:
        return Ruling(Verdict.INFRA, f"{red.stage} was cut by the infrastructure: {error.message}", red)
    fault = faults.of(record, red)
    known = _known(court, lane, red, fault)
    if known is not None:
        return known
    if any(other.outcome is not Outcome.VOID and red_stage(other, lane) is None for other in others):
        return Ruling(Verdict.FLAKY, "the same inputs passed before and fail now", red)
    if not fault.parts:
        return Ruling(Verdict.UNCLASSIFIED, f"{red.stage} failed without an error that identifies it", red)
    baseline = court.merged if record.merge_tree is not None and court.merged is not None else court.baseline
    if baseline is None:
        return Ruling(Verdict.UNCLASSIFIED, "there is no merge base, so nobody can say whose red this is", red)
    older = baseline.red_on_base(lane.id, red.stage, fault, court.now)
    if older is not None:
        if _overlaps(court.change, record, red, error):
            return Ruling(Verdict.OVERLAP_RED, f"{older}, but this change touches the failing code", red)
        return Ruling(Verdict.RED_ON_BASE, older, red, new_findings=())
    return _new_or_unclassified(baseline, lane, red, fault)


def _new_or_unclassified(baseline: Baseline, lane: Lane, red: StageResult, fault: Fault) -> Ruling:
    """New needs evidence too: a base commit that ended this stage without it."""
    green = baseline.green_at(lane.id, red.stage)
    if green is not None:
        new = tuple(sorted(fault.parts)) if red.stage is Stage.CHECK else None
        return Ruling(Verdict.NEW_RED, f"{red.stage} is green on base commit {green[:10]}", red, new_findings=new)
    found = baseline.new_parts(lane.id, red.stage, fault) if red.stage is Stage.CHECK else None
    if found is not None and found[1]:
        commit, new = found
        told = f"{len(new)} of its {len(fault.parts)} findings are not on base commit {commit[:10]}"
        return Ruling(Verdict.NEW_RED, told, red, new_findings=new)
    told = f"no base commit has a record of {red.stage} in this lane that could clear it"
    return Ruling(Verdict.UNCLASSIFIED, told, red)


def _overlaps(change: Change, record: Record, red: StageResult, error: FirstError | None) -> bool:
    if red.stage is Stage.CHECK and red.first_error is None:
        return any(change.touches(finding.file, finding.line) for finding in faults.red_findings(record))
    return error is not None and (change.touches(error.file, error.line) or change.mentions(error.target))


def _known(court: Court, lane: Lane, red: StageResult, fault: Fault) -> Ruling | None:
    for entry in court.known_red:
        if not (fault.fingerprint and _speaks_of(entry, lane, red.stage) and entry.fingerprint == fault.fingerprint):
            continue
        if court.withdraws(entry, lane):
            told = f"this change takes the known red of {entry.owner} out of the matrix, and the lane fails as before"
            return Ruling(Verdict.NEW_RED, told, red, entry.owner, entry.since)
        if _expired(entry, court.now):
            told = f"the known red of {entry.owner} expired on {entry.expires}"
            return Ruling(Verdict.NEW_RED, told, red, entry.owner, entry.since)
        told = f"known since {entry.since}, owned by {entry.owner}, until {entry.expires}"
        return Ruling(Verdict.KNOWN_RED, told, red, entry.owner, entry.since)
    return None


def _speaks_of(entry: KnownRed, lane: Lane, stage: str) -> bool:
    return entry.stage == stage and fnmatchcase(lane.id, entry.lane)


def _unexpected_pass(court: Court, lane: Lane, record: Record) -> Ruling | None:
    """A known red that passes. Of an entry for many lanes each lane is asked: it says that all of them are red."""
    passed = {stage.stage for stage in record.stages if stage.outcome.is_green}
    entries = [
        entry
        for entry in court.known_red
        if any(_speaks_of(entry, lane, stage) for stage in passed) and not court.withdraws(entry, lane)
    ]
    if not entries:
        return None
    entry = entries[0]
    mend = "remove the entry from the matrix" if entry.lane == lane.id else f"take {lane.id} out of {entry.lane!r}"
    reason = f"{entry.stage} is a known red of {entry.owner} and passes: {mend}"
    return Ruling(Verdict.NEW_RED, reason, owner=entry.owner, since=entry.since)


def _expired(entry: KnownRed, now: datetime) -> bool:
    return date.fromisoformat(entry.expires) < now.astimezone(UTC).date()
