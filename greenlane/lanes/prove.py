"""`greenlane review --prove GATE`: every lane that says how its gate can be broken is run broken, and must go red."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from greenlane.errors import MatrixError
from greenlane.executors.watchdog import Watchdog
from greenlane.gates import prove as gate_proof
from greenlane.gates.commands import Failed
from greenlane.lanes import pipeline, plan, run, worktree
from greenlane.lanes.interrupt import Interrupted, cancelled_by_signals
from greenlane.lanes.session import Options, Session, open_session
from greenlane.lanes.tree import read
from greenlane.matrix.gates import Proof
from greenlane.matrix.model import Lane, Stage
from greenlane.record.model import Outcome, StageResult

SUFFIX = "@prove"


@dataclass(frozen=True, slots=True)
class Proven:
    """How the proof of one lane's gate ended; `record_id` is the record that now says so."""

    lane: str
    proven: bool
    reason: str
    record_id: str | None = None


def prove(matrix: Path, gate_name: str, only: Sequence[str] = ()) -> list[Proven]:
    """Proves the gate in each lane, or each of these, that has a `prove`; raises MatrixError where none has one."""
    gate = plan.stage_named(gate_name)
    if gate not in gate_proof.PROVABLE:
        known = ", ".join(gate_proof.PROVABLE)
        raise MatrixError(f"--prove {gate_name}: only {known} can be proven by breaking what they guard")
    with ExitStack() as stack:
        session = stack.enter_context(open_session(matrix, Options(until=gate), base=None, merge=False))
        asked = plan.lanes_named(session.matrix.lanes, only) if only else session.matrix.lanes
        lanes = [(lane, proof) for lane in asked if (proof := gate_proof.proof_of(lane, gate))]
        if not lanes:
            raise MatrixError(f"--prove {gate}: no lane says in `gates.{gate}.prove` how to break what it guards")
        if session.tree.dirty:
            raise MatrixError("the tree has changes that are in no commit; a proof names the commit it holds for")
        watchdog = Watchdog()
        stack.callback(watchdog.close)
        session = replace(session, watchdog=watchdog, cancel=stack.enter_context(cancelled_by_signals()))
        return [prove_lane(session, lane, gate, proof) for lane, proof in lanes]


def prove_lane(session: Session, lane: Lane, gate: Stage, proof: Proof) -> Proven:
    """Green as it is, red without what it guards: only both together prove anything."""
    end = run.run_lane(session, lane)
    result = next((r for r in end.record.stages if r.stage is gate), None) if end.record else None
    if result is None or end.record is None or result.outcome is not Outcome.PASS:
        why = end.prevented or (result.reason if result else None) or "it did not run"
        return Proven(lane.id, False, f"{gate} is not green to begin with: {why}")
    try:
        broken = broken_results(session, gate_proof.broken_lane(proof, lane, gate), proof)
    except Failed as failure:
        return Proven(lane.id, False, failure.reason)
    if session.cancel.is_set():
        raise Interrupted("interrupted")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    verdict = gate_proof.judged(gate, proof, broken, session.tree.head, now)
    known: dict[str, Any] = {**(end.record.proven or {}), gate.value: verdict}
    record_id = session.ledger.put(end.record.model_copy(update={"proven": known}))
    return Proven(lane.id, verdict["proven"], verdict["reason"], record_id)


def broken_results(session: Session, lane: Lane, proof: Proof) -> dict[Stage, StageResult]:
    """The stages of the broken lane in a scratch tree; no record is made of a tree that nobody wants."""
    purpose = f"prove-{lane.id}"
    with (
        worktree.of_commit(session.tree.path, session.state.root, session.tree.head, purpose) as tree,
        ExitStack() as stack,
    ):
        gate_proof.break_tree(proof, tree.path)
        scratch = replace(session, tree=read(tree.path), suffix=SUFFIX)
        stack.enter_context(scratch.locked(lane))
        context = pipeline.open_context(scratch, lane, stack)
        return pipeline.run_stages(scratch, context).results


def exit_code(ends: Sequence[Proven]) -> int:
    return 0 if all(end.proven for end in ends) else 1
