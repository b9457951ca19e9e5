"""`greenlane anchors capture LANE`: builds the lane at this commit and writes its device's anchors into the tree."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from greenlane.errors import LaneRed, MatrixError
from greenlane.executors.watchdog import Watchdog
from greenlane.lanes import gate, pipeline, plan
from greenlane.lanes.interrupt import Interrupted, cancelled_by_signals
from greenlane.lanes.session import Options, Session, open_session
from greenlane.matrix.model import Lane, Stage


def command(arguments: argparse.Namespace) -> int:
    options = Options(until=Stage.BUILD)
    with open_session(arguments.matrix, options, base=None, merge=False) as session:
        lane = plan.lanes_named(session.matrix.lanes, [arguments.lane])[0]
        refuse(session, lane)
        files = captured(session, lane)
    for file in files:
        print(f"wrote {file.relative_to(session.tree.path)}")
    print("read the diff: each changed token or gap is what this device now does; then commit it")
    return 0


def refuse(session: Session, lane: Lane) -> None:
    """An anchor names the commit that gave it, so that commit has to hold all of it."""
    if Stage.EXACT not in lane.gates:
        raise MatrixError(f"lane {lane.id} has no exact gate, so it has no anchors")
    if session.tree.dirty:
        raise MatrixError("the tree has changes that are in no commit; commit or remove them, then capture again")


def captured(session: Session, lane: Lane) -> tuple[Path, ...]:
    from greenlane.gates.capture import capture
    from greenlane.gates.commands import Failed

    with ExitStack() as stack:
        watchdog = Watchdog()
        stack.callback(watchdog.close)
        cancel = stack.enter_context(cancelled_by_signals())
        session = replace(session, watchdog=watchdog, cancel=cancel)
        stack.enter_context(session.locked(lane))
        context = pipeline.open_context(session, lane, stack)
        course = pipeline.run_stages(session, context)
        red = next((result for result in course.results.values() if result.outcome.is_red), None)
        if red is not None:
            raise LaneRed(f"lane {lane.id}: {red.stage} is red ({red.reason}); there is nothing to capture from")
        program = gate.program_in(context, Stage.EXACT)
        about = gate.about(context, Stage.EXACT)
        today = datetime.now(UTC).date().isoformat()
        try:
            files = capture(lane.gates[Stage.EXACT], program, about, head=session.tree.head, today=today)
        except Failed as failure:
            raise LaneRed(f"lane {lane.id}: {failure.reason}") from None
        if cancel.is_set():
            raise Interrupted("interrupted")
    return files
