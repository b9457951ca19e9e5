"""Which record speaks for which lane at this commit, and what the older ones certify."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from greenlane.ledger import InvalidRecord, Ledger
from greenlane.ledger.index import Row
from greenlane.matrix.model import Evidence, Lane
from greenlane.record.digests import gates_digest
from greenlane.record.model import Record
from greenlane.review.model import MergeProbe
from greenlane.review.policy import Policy
from greenlane.review.verdict import MEASURED

TRUST_ORDER = ("runner", "local", "fork")  # a fork's word never hides a runner's


@dataclass(frozen=True)
class Standing:
    """One lane's records, newest first."""

    lane: Lane
    current: Record | None = None
    current_id: str | None = None
    others: tuple[Record, ...] = ()  # further records of the same inputs
    evidence: tuple[str, ...] = ()  # of the current record, as far as the policy accepts it
    refused: str | None = None  # why some of its evidence is not accepted
    stale: tuple[tuple[Row, str], ...] = ()  # older or other records, and why they don't speak for this commit

    def stale_with(self, flag: str) -> Row | None:
        return next((row for row, _ in self.stale if flag in row.evidence), None)


def read(ledger: Ledger, policy: Policy, head: str, merge: MergeProbe) -> dict[str, Standing]:
    """Standing of every lane of the policy. Loads only what speaks for this head."""
    rows: Mapping[str, list[Row]] = _by_lane(ledger)
    found = {}
    for lane_id in policy.lane_ids():
        lane = policy.lane(lane_id)
        assert lane is not None, f"{lane_id} comes from the policy"
        found[lane_id] = _standing(ledger, policy, lane, rows.get(lane_id, []), head, merge)
    return found


def _by_lane(ledger: Ledger) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in ledger.rows():
        rows[row.lane].append(row)
    return rows


def _standing(ledger: Ledger, policy: Policy, lane: Lane, rows: list[Row], head: str, merge: MergeProbe) -> Standing:
    head_lane = policy.head.lane(lane.id)
    current: list[tuple[str, Record]] = []
    stale: list[tuple[Row, str]] = []
    for row in rows:
        reason = _why_stale(row, head, head_lane)
        record = _loaded(ledger, row) if reason is None else None
        if record is not None:
            reason = _why_merge_is_stale(record, merge)
        if record is not None and reason is None:
            current.append((row.id, record))
        else:
            stale.append((row, reason or "its file is damaged"))
    if not current:
        return Standing(lane, stale=tuple(stale))
    current.sort(key=lambda pair: TRUST_ORDER.index(pair[1].trust))  # stable: newest first within one trust
    (record_id, record), *rest = current
    evidence, refused = _accepted(policy, lane, record)
    others = tuple(other for _, other in rest if other.trust == record.trust and other.digests == record.digests)
    return Standing(lane, record, record_id, others, evidence, refused, tuple(stale))


def _why_stale(row: Row, head: str, lane: Lane | None) -> str | None:
    if row.head != head:
        return f"it is of commit {row.head[:10]}"
    if row.dirty:
        return "it is of a tree with uncommitted edits"
    if lane is None:
        return "this change removes the lane"
    if row.lane_digest != lane.digest:
        return "the matrix has changed this lane since"
    return None


def _why_merge_is_stale(record: Record, merge: MergeProbe) -> str | None:
    if record.merge_tree is not None and merge.tree is not None and record.merge_tree != merge.tree:
        return f"it is of the merge with an older base ({(record.base or 'unknown')[:10]})"
    return None


def _loaded(ledger: Ledger, row: Row) -> Record | None:
    try:
        return ledger.get(row.id)
    except InvalidRecord:
        return None


def _accepted(policy: Policy, lane: Lane, record: Record) -> tuple[tuple[str, ...], str | None]:
    """The record's evidence. What gates measured counts only if they were the gates of the merge base."""
    evidence = tuple(str(flag) for flag in Evidence if flag in record.evidence)
    if policy.base is None or policy.base.lane(lane.id) is None or record.digests.inputs == gates_digest(lane):
        return evidence, None
    if not MEASURED & set(record.evidence):
        return evidence, None
    kept = tuple(flag for flag in evidence if flag not in MEASURED)
    return kept, "its gates are this change's own, not those of the merge base: run it with --base"


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
