"""`greenlane run`: takes lanes through their stages and writes what happened. Start reading here."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

from rich.console import Console

from greenlane.errors import EnvironmentMissing, GreenlaneError, MatrixError
from greenlane.executors import daemon as daemons
from greenlane.executors.docker import sweep
from greenlane.executors.watchdog import Watchdog
from greenlane.lanes import base, infra, pipeline, places, plan, progress, reuse, summary
from greenlane.lanes.interrupt import Interrupted, cancelled_by_signals
from greenlane.lanes.session import Options, Session, open_session
from greenlane.lanes.summary import LaneEnd
from greenlane.matrix.model import Lane


def command(arguments: argparse.Namespace) -> int:
    if arguments.jobs < 1:
        raise MatrixError(f"--jobs {arguments.jobs}: at least one lane must run")
    options = Options(
        executor=arguments.executor,
        until=plan.stage_named(arguments.until),
        jobs=arguments.jobs,
        keep_going=arguments.keep_going,
        fresh=arguments.fresh,
    )
    console = progress.console()
    with open_session(arguments.matrix, options, base=arguments.base, merge=arguments.merge) as session:
        lanes = plan.lanes_named(session.matrix.lanes, arguments.lanes)
        ends = run_lanes(session, lanes, console)
    summary.show(ends, console)
    return summary.exit_code(ends)


def run_lanes(session: Session, lanes: Sequence[Lane], console: Console) -> list[LaneEnd]:
    """Every lane's end, in the order asked for; at most `--jobs` at a time."""
    sweep_leftovers(session, lanes)
    watchdog = Watchdog()
    with ExitStack() as stack:
        stack.callback(watchdog.close)
        cancel = stack.enter_context(cancelled_by_signals())
        shown = stack.enter_context(progress.watching([lane.id for lane in lanes], console))
        here = replace(session, progress=shown, watchdog=watchdog, cancel=cancel)
        red = threading.Event()
        with ThreadPoolExecutor(max_workers=session.options.jobs) as pool:
            pending = [pool.submit(run_unless_red, here, lane, red) for lane in lanes]
            ends = [future.result() for future in pending]
    if cancel.is_set():
        raise Interrupted("interrupted; the same command goes on where it was cut")
    return ends


def sweep_leftovers(session: Session, lanes: Sequence[Lane]) -> None:
    """Removes containers of greenlanes that are no more, where a lane of this call uses containers at all."""
    if any(places.executor_name(session, lane) == places.DOCKER for lane in lanes):
        daemon = daemons.find()
        if daemon is not None:
            sweep(daemon)


def run_unless_red(session: Session, lane: Lane, red: threading.Event) -> LaneEnd:
    if red.is_set() and not session.options.keep_going:
        return LaneEnd(lane.id, skipped=True)
    end = run_lane(session, lane)
    if end.exit_code == 1:
        red.set()
    return end


def run_lane(session: Session, lane: Lane) -> LaneEnd:
    """One lane: answered from a green record where nothing has changed, else run through its stages."""
    try:
        if not session.options.fresh and (known := reuse.find(session, lane)) is not None:
            return LaneEnd(lane.id, known.record, known.record_id)
        with session.locked(lane):
            end = pipeline.run(session, lane, base.program if session.base is not None else None)
        if end.exit_code == 1 and session.base is not None:
            base.rerun(session, lane, end)
        return end
    except (EnvironmentMissing, OSError) as error:
        return LaneEnd(lane.id, prevented=infra.reason(error))
    except GreenlaneError:
        session.cancel.set()
        raise
