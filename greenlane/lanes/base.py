"""The base commit beside the head: a red stage run again there, and a build of it for a gate to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from greenlane.errors import EnvironmentMissing
from greenlane.gates.contract import Program
from greenlane.lanes import infra, pipeline, worktree
from greenlane.lanes.context import Context
from greenlane.lanes.gate import program_in
from greenlane.lanes.session import Session
from greenlane.lanes.summary import LaneEnd
from greenlane.matrix.model import Lane, Stage
from greenlane.record.git import git
from greenlane.record.model import Record

SUFFIX = "@base"


def rerun(session: Session, lane: Lane, end: LaneEnd) -> None:
    """Runs the lane up to its red stage on the base, unless the base's record already says how that ends.

    The base is what the lane's tree was made from: the merge base, or for a merge the tip that it merges with.
    """
    assert end.record is not None
    red = next((result.stage for result in end.record.stages if result.outcome.is_red), None)
    session = replace(session, base=_origin(session))
    if red is None or _is_known(session, lane, red):
        return
    session.progress.said(f"{lane.id} {red} is red: the same stage on the base {(session.base or '')[:12]}")
    with _session_for(session, lane, red) as (base, before):
        if before is None:
            session.progress.said(f"{lane.id} is new: the base has no such lane")
            return
        with base.locked(before):
            pipeline.run(base, before)


def program(session: Session, context: Context, stack: ExitStack) -> Program:
    """The base's build in the same kind of place, open until `stack` ends."""
    lane = context.lane
    base, before = stack.enter_context(_session_for(session, lane, Stage.BUILD))
    if before is None:
        raise EnvironmentMissing(f"lane {lane.id} is new: there is no base to measure it against")
    stack.enter_context(base.locked(before))
    there = pipeline.open_context(base, before, stack, card=context.card)
    course = pipeline.run_stages(base, there)
    red = next((result for result in course.results.values() if result.outcome.is_red), None)
    if red is not None:
        raise EnvironmentMissing(f"lane {lane.id}: the base can't be measured: its {red.stage} is red ({red.reason})")
    return program_in(there, Stage.BENCH)


def _origin(session: Session) -> str | None:
    tree = session.tree
    if session.base is None or tree.merge_tree is not None:
        return session.base
    found = git(tree.path, "merge-base", session.base, tree.head, check=False).stdout.decode().strip()
    return found or session.base


def _is_known(session: Session, lane: Lane, stage: Stage) -> bool:
    records = session.ledger.records(lane=lane.id, head=session.base or "")
    results = (result for _, record in records if _counts(record) for result in record.stages)
    return any(result.stage is stage and not infra.prevented(result) for result in results)


def _counts(record: Record) -> bool:
    """Whether the record may be a baseline."""
    return not record.dirty and record.trust != "fork"


@contextmanager
def _session_for(session: Session, lane: Lane, until: Stage) -> Iterator[tuple[Session, Lane | None]]:
    """The base's tree, matrix and lane, with a state folder of its own; a tree per lane, for lanes run side by side."""
    from greenlane.matrix import load

    purpose = f"base-{lane.id}"
    with worktree.of_commit(session.tree.path, session.state.root, session.base or "", purpose) as tree:
        options = replace(session.options, until=until, fresh=False)
        matrix = load(tree.path / Path(session.matrix.file).name)
        base = replace(session, matrix=matrix, tree=tree, options=options, base=None, suffix=SUFFIX)
        yield base, matrix.lane(lane.id)
