"""Runs a stage's commands from the matrix, one after the other, until one fails or time is up."""

from __future__ import annotations

import time
from collections.abc import Mapping

from greenlane.errors import EnvironmentMissing
from greenlane.executors import Exit
from greenlane.lanes import infra
from greenlane.lanes.context import Context, Ended
from greenlane.lanes.emulation import coverage, forget, wrapped
from greenlane.matrix.model import Stage
from greenlane.record.model import Outcome


def run_commands(
    context: Context, stage: Stage, *, env: Mapping[str, str] | None = None, setup: bool = False, on_card: bool = False
) -> Ended:
    """`on_card`: the commands need the lane's card, so an emulated lane runs them under the emulator."""
    deadline = time.monotonic() + time_limit(context, stage)
    if on_card:
        forget(context)
    for script in context.lane.stages.get(stage, ()):
        left = max(deadline - time.monotonic(), 0.1)
        command = wrapped(context, script) if on_card else script
        ended = context.run(command, env=env, timeout_s=left, setup=setup)
        if ended.code != 0 or ended.timed_out:
            return failed(context, stage, ended)
    return Ended(Outcome.PASS, measurements=coverage(context) if on_card else {})


def failed(context: Context, stage: Stage, ended: Exit) -> Ended:
    if ended.lost is not None:
        raise EnvironmentMissing(f"lane {context.lane.id}, {stage}: {ended.lost}")
    if infra.disk_is_full(context.host.build, context.log.lines()):
        raise EnvironmentMissing(
            f"lane {context.lane.id}, {stage}: no space left on the disk; free some and run it again"
        )
    if ended.timed_out:
        return Ended(Outcome.FAIL, f"stopped after {time_limit(context, stage):g} s, its time limit")
    if ended.out_of_memory:
        return Ended(Outcome.FAIL, f"killed: out of memory{_allowed(context)}")
    if ended.code > 128:
        return Ended(Outcome.FAIL, f"killed by signal {ended.code - 128}")
    return Ended(Outcome.FAIL, f"exit code {ended.code}")


def time_limit(context: Context, stage: Stage) -> float:
    """The stage's own limit, within what is left of the lane's; making the image doesn't count."""
    limits = context.lane.limits
    spent = sum(result.duration_s for result in context.results.values() if result.stage is not Stage.IMAGE)
    left = limits.timeout_s if stage is Stage.IMAGE else max(limits.timeout_s - spent, 1.0)
    return min(limits.stage_timeout_s.get(stage, left), left)


def _allowed(context: Context) -> str:
    limit = context.lane.limits.memory_bytes
    return "" if limit is None else f" (limit {limit / 2**30:.1f} GiB)"
