"""Gives a gate its way into the lane, and takes its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from greenlane.errors import EnvironmentMissing
from greenlane.executors import Stream
from greenlane.gates.contract import GateContext, Program, Ran
from greenlane.lanes.commands import time_limit
from greenlane.lanes.context import Context, Ended
from greenlane.lanes.emulation import coverage, forget, wrapped
from greenlane.matrix.model import Stage
from greenlane.record.model import StageResult

Gate = Callable[[Mapping[str, Any], Program, GateContext], StageResult]
MOST_OUTPUT = 64 * 2**20  # characters of standard output that are kept for a gate to read


def run_gate(context: Context, stage: Stage, gate: Gate) -> Ended:
    forget(context)
    result = gate(context.lane.gates[stage], program_in(context, stage), about(context, stage))
    return Ended(result.outcome, result.reason, {**result.measurements, **coverage(context)}, gate=result)


def about(context: Context, stage: Stage) -> GateContext:
    return GateContext(
        lane=context.lane,
        stage=stage,
        source=context.tree.path,
        artifacts=context.host.artifacts,
        emulated=context.emulated,
        base=context.base,
        log=context.log.line,
    )


def program_in(context: Context, stage: Stage) -> Program:
    """Runs commands inside the lane; standard output is the program's answer, so it stays out of the log."""

    def program(command: str, *, env: Mapping[str, str] | None = None, timeout_s: float | None = None) -> Ran:
        out = Kept(MOST_OUTPUT)
        err = Kept(64 * 1024)

        def hear(stream: Stream, line: str) -> None:
            (out if stream is Stream.OUT else err).add(line)
            if stream is Stream.ERR:
                context.log.line(line)

        limit = min(timeout_s or time_limit(context, stage), time_limit(context, stage))
        ended = context.run(
            wrapped(context, command), cwd=context.executor.inside.artifacts, env=env, timeout_s=limit, on_line=hear
        )
        if ended.lost is not None:
            raise EnvironmentMissing(f"lane {context.lane.id}, {stage}: {ended.lost}")
        return Ran(ended.code, out.text(), err.text(), ended.timed_out)

    return program


class Kept:
    """Lines up to a size; the rest is dropped, oldest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._lines: list[str] = []
        self._from = 0

    def add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1
        while self._size > self._most and self._from < len(self._lines):
            self._size -= len(self._lines[self._from]) + 1
            self._lines[self._from] = ""
            self._from += 1

    def text(self) -> str:
        return "\n".join(self._lines[self._from :])
