"""A lane whose inputs are all as they were in a green record is answered by that record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from greenlane.lanes import evidence, lease, machine, places, plan, relevant, weights
from greenlane.lanes.findings import findings_of, inputs
from greenlane.lanes.resume import greenlane_digest
from greenlane.lanes.session import Session
from greenlane.matrix.model import Evidence, Lane, Stage
from greenlane.record.digests import gates_digest
from greenlane.record.model import Device, Digests, Outcome, Record


@dataclass(frozen=True, slots=True)
class Known:
    record: Record
    record_id: str


def digests(session: Session, lane: Lane, image: str | None, model: str | None) -> Digests:
    """Everything that goes into a lane's result, as hex SHA-256."""
    return Digests(
        matrix=session.matrix.digest,
        lane=lane.digest,
        tree=relevant.digest(session.tree, session.matrix, lane),
        image=image,
        model=model,
        inputs=gates_digest(lane),
        greenlane=greenlane_digest(),
    )


def find(session: Session, lane: Lane) -> Known | None:
    """Puts and returns a new record that repeats a green one; None when anything that goes in differs.

    Where speed is judged against a base, the base must be the same too.
    """
    executor = places.executor_name(session, lane)
    image = places.known_image(session, lane) if executor == places.DOCKER else None
    if executor == places.DOCKER and image is None:
        return None
    wanted = digests(session, lane, image, weights.known(session, lane, executor, image))
    for record_id, record in _candidates(session, lane, wanted):
        if _same(session, lane, record, wanted, executor) and _still_checked(session, lane, record):
            again = _repeated(session, record, record_id)
            return Known(again, session.ledger.put(again))
    return None


def _candidates(session: Session, lane: Lane, wanted: Digests) -> Iterator[tuple[str, Record]]:
    rows = session.ledger.records(lane=lane.id, tree=wanted.tree, lane_digest=wanted.lane, outcome=Outcome.PASS)
    return ((record_id, record) for record_id, record in rows if record.reused_from is None)


def _same(session: Session, lane: Lane, record: Record, wanted: Digests, executor: str) -> bool:
    ended = {stage.stage for stage in record.stages if stage.outcome is not Outcome.NOT_RUN}
    return (
        record.digests.model_copy(update={"matrix": wanted.matrix}) == wanted
        and record.trust == places.trust()
        and (record.base == session.base or not lane.gates.get(Stage.BENCH))
        and ended >= set(plan.stages_of(lane, executor, session.options.until))
        and not evidence.missing(record.require, record.evidence)
        and tuple(record.require) == tuple(flag for flag in Evidence if flag in lane.require)
        and _same_machine(record.device, lane, executor)
    )


def _same_machine(then: Device | None, lane: Lane, executor: str) -> bool:
    """The same processor or the same kind of card, with the same driver, reached in the same way."""
    if then is None or then.executor != executor:
        return False
    if lane.device is None or lane.emulate:
        return then == machine.device(None, executor)
    return any(then == machine.device(card, executor) for card in lease.cards(lane.device))


def _still_checked(session: Session, lane: Lane, record: Record) -> bool:
    """The checks compare lanes, so another lane's file may bring this one a finding."""
    check = next((stage for stage in record.stages if stage.stage is Stage.CHECK), None)
    if check is not None and check.measurements.get("inputs") == inputs(session.matrix, session.tree):
        return True
    return tuple(findings_of(session.matrix, session.tree).for_lane(lane.id)) == record.findings


def _repeated(session: Session, record: Record, record_id: str) -> Record:
    tree = session.tree
    return record.model_copy(
        update={
            "head": tree.head,
            "base": tree.base or session.base,
            "merge_tree": tree.merge_tree,
            "dirty": tree.dirty,
            "digests": record.digests.model_copy(update={"matrix": session.matrix.digest}),
            "reused_from": record_id,
            "started": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "duration_s": 0.0,
        }
    )
