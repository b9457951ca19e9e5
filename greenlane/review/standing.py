"""Which record speaks for which lane at this commit, and what the older ones certify."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from greenlane.ledger import InvalidRecord, Ledger
from greenlane.ledger.admission import sortable
from greenlane.ledger.index import Row
from greenlane.matrix.model import Evidence, Lane, Stage
from greenlane.record.digests import gates_digest
from greenlane.record.model import Outcome, Record
from greenlane.review.model import MergeProbe
from greenlane.review.policy import Policy
from greenlane.review.verdict import MEASURED, is_infrastructure

TRUST_ORDER = ("runner", "local", "fork")  # a fork's word never hides a runner's
ASKED = 20  # records of one head and lane that are read, the most trusted and newest first
CLOCK_SLACK = timedelta(minutes=10)  # that another machine's clock may run ahead

# The stage whose green end a flag rests on. Where a lane ran is said by any stage that runs the program.
RESTS_ON = {
    Evidence.CHECKED: (Stage.CHECK,),
    Evidence.BUILT: (Stage.BUILD,),
    Evidence.TESTED: (Stage.TEST,),
    Evidence.REACHED: (Stage.REACH,),
    Evidence.EXACT: (Stage.EXACT,),
    Evidence.BENCHED: (Stage.BENCH,),
}
RUNS = (Stage.TEST, Stage.REACH, Stage.EXACT, Stage.BENCH)
WHERE = {Evidence.EMULATED, Evidence.RAN_ON_FAMILY, Evidence.RAN_ON_TARGET}
PLACE = ("device", "arch", "archs", "emulate")  # of a lane: what makes a run one on its target


@dataclass(frozen=True, slots=True)
class Stale:
    """A record that does not speak for this commit."""

    row: Row
    why: str
    of_other: bool = False  # of another commit
    of_base: bool = False  # of a commit that the base has too: it says nothing of the change


@dataclass(frozen=True)
class Standing:
    """One lane's records, newest first."""

    lane: Lane
    current: Record | None = None
    current_id: str | None = None
    others: tuple[Record, ...] = ()  # further records of the same inputs
    evidence: tuple[str, ...] = ()  # of the current record, as far as the policy accepts it
    refused: str | None = None  # why some of its evidence is not accepted
    stale: tuple[Stale, ...] = ()  # those of this commit, then of the change's other commits, then of the base

    def stale_with(self, flag: str) -> Row | None:
        """The newest of the stale records that carries the flag; a fork's own word is none."""
        return next((old.row for old in self.stale if flag in old.row.evidence and old.row.trust != "fork"), None)


@dataclass(frozen=True, slots=True)
class Bench:
    """What every lane's records are held against."""

    ledger: Ledger
    policy: Policy
    head: str
    merge: MergeProbe
    latest: str  # start of a record that is still believed, as the index writes it
    base: frozenset[str]  # commits that the base has


def read(
    ledger: Ledger, policy: Policy, head: str, merge: MergeProbe, now: datetime, base: frozenset[str] = frozenset()
) -> dict[str, Standing]:
    """Standing of every lane of the policy. Loads only what speaks for this head."""
    rows: Mapping[str, list[Row]] = _by_lane(ledger)
    bench = Bench(ledger, policy, head, merge, sortable((now + CLOCK_SLACK).isoformat()), base - {head})
    return {name: _standing(bench, lane, rows.get(name, [])) for name, lane in policy.lanes().items()}


def _by_lane(ledger: Ledger) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in ledger.rows():
        rows[row.lane].append(row)
    return rows


def _standing(bench: Bench, lane: Lane, rows: list[Row]) -> Standing:
    head_lane = bench.policy.head_lanes.get(lane.id)
    current: list[tuple[str, Record]] = []
    stale: list[Stale] = []
    candidates: list[Row] = []
    for row in rows:
        reason = _why_stale(row, bench, head_lane)
        if reason is None:
            candidates.append(row)
        else:
            stale.append(Stale(row, reason, row.head != bench.head, row.head in bench.base))
    candidates.sort(key=lambda row: _rank(row.trust))  # stable: newest first within one trust
    for row in candidates[:ASKED]:
        record, reason = _loaded(bench, row)
        if record is not None:
            current.append((row.id, record))
        else:
            stale.append(Stale(row, str(reason)))
    stale.sort(key=lambda old: (old.of_base, old.of_other))  # stable: newest first
    if not current:
        return Standing(lane, stale=tuple(stale))
    current.sort(key=lambda pair: (_rank(pair[1].trust), is_infrastructure(pair[1])))
    (record_id, record), *rest = current
    evidence, refused = _accepted(bench.policy, lane, record)
    others = tuple(other for _, other in rest if other.trust == record.trust and other.digests == record.digests)
    return Standing(lane, record, record_id, others, evidence, refused, tuple(stale))


def _rank(trust: str) -> int:
    return TRUST_ORDER.index(trust) if trust in TRUST_ORDER else len(TRUST_ORDER)


def _why_stale(row: Row, bench: Bench, lane: Lane | None) -> str | None:
    if row.head in bench.base:
        return f"is of the base's commit {row.head[:10]}, before this change"
    if row.head != bench.head:
        return f"is of commit {row.head[:10]}"
    if row.dirty:
        return "is of a tree with uncommitted edits"
    if lane is None:
        return "is of a lane that this change removes"
    if row.lane_digest != lane.digest:
        return "is of the lane as an older matrix, or an older greenlane, had it"
    if row.started > bench.latest:
        return f"says that it was begun in the future, at {row.started}: a clock is wrong"
    return None


def _loaded(bench: Bench, row: Row) -> tuple[Record | None, str | None]:
    """The record, or why it does not speak for this commit. What counts is its file; the index may have been edited."""
    try:
        record = bench.ledger.get(row.id)
    except InvalidRecord:
        return None, "is damaged"
    said = (record.lane, record.head, record.dirty, record.trust, record.digests.lane, sortable(record.started))
    if said != (row.lane, row.head, row.dirty, row.trust, row.lane_digest, row.started):
        return None, "is not what the index says of it; greenlane ledger reindex mends the index"
    if record.merge_tree is not None and record.merge_tree != bench.merge.tree:
        return None, _why_merge_is_stale(record, bench.merge)
    return record, None


def _why_merge_is_stale(record: Record, merge: MergeProbe) -> str:
    with_base = f"is of the merge with {(record.base or 'an unknown base')[:10]}"
    if merge.state == "conflict":
        return f"{with_base}, and the base has moved since and conflicts"
    if merge.state == "unknown":
        return f"{with_base}, and whether that is today's merge is not known"
    return f"{with_base}, and the base has moved since"


def _accepted(policy: Policy, lane: Lane, record: Record) -> tuple[tuple[str, ...], str | None]:
    """The record's evidence as far as its own stages and the merge base's rules bear it out."""
    refusals: list[str] = []
    flags = [flag for flag in Evidence if flag in record.evidence]
    shown = [flag for flag in flags if _rests_on_a_stage(flag, record)]
    if shown != flags:
        refusals.append("the record claims evidence that none of its stages shows")
    before = policy.base_lanes.get(lane.id)
    if before is not None and record.digests.inputs != gates_digest(before) and MEASURED & set(shown):
        shown = [flag for flag in shown if flag not in MEASURED]
        refusals.append("its gates are this change's own, not those of the merge base: run it with --base")
    if policy.edits_checks and record.base is None and Evidence.CHECKED in shown:
        shown.remove(Evidence.CHECKED)
        refusals.append("its checks are this change's own, not those of the merge base: run it with --base")
    moved = before is not None and _place(before) != _place(policy.head_lanes.get(lane.id))
    if moved and WHERE & set(shown):
        shown = [flag for flag in shown if flag not in WHERE]
        refusals.append("this change edits what the lane's target is, so where it ran says nothing yet")
    return tuple(str(flag) for flag in shown), "; ".join(refusals) or None


def _rests_on_a_stage(flag: Evidence, record: Record) -> bool:
    green = {stage.stage for stage in record.stages if stage.outcome.is_green and stage.outcome is not Outcome.INERT}
    return bool(green & set(RESTS_ON.get(flag, RUNS)))


def _place(lane: Lane | None) -> tuple[object, ...] | None:
    return None if lane is None else tuple(getattr(lane, name) for name in PLACE)


def families(lanes: Mapping[str, Standing]) -> dict[str, list[Standing]]:
    """Lane id -> standings of sibling lanes: same backend and variant, another arch of the same family."""
    groups: dict[tuple[str, str | None, str | None], list[Standing]] = defaultdict(list)
    for standing in lanes.values():
        lane = standing.lane
        if lane.family:
            groups[lane.backend, lane.variant, lane.family].append(standing)
    return {
        standing.lane.id: [other for other in group if other.lane.id != standing.lane.id]
        for group in groups.values()
        for standing in group
    }
