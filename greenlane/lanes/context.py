"""What a stage is given: the lane, the place it runs in, and what the stages before it found."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from greenlane.executors import Command, Executor, Exit, Folders, Stream
from greenlane.lanes.lease import Card
from greenlane.lanes.log import StageLog
from greenlane.lanes.passthrough import passed_through
from greenlane.lanes.placeholders import Placeholders
from greenlane.matrix.model import Lane, Matrix, Stage
from greenlane.record.model import Device, Finding, Outcome, StageResult

if TYPE_CHECKING:
    from greenlane.gates.contract import Program
    from greenlane.lanes.folders import LaneFolder
    from greenlane.lanes.tree import SourceTree


@dataclass(frozen=True, slots=True)
class Ended:
    """What a stage's module says of its own run; the pipeline adds the times, the log and the first error."""

    outcome: Outcome
    reason: str | None = None
    measurements: Mapping[str, object] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    gate: StageResult | None = None  # a gate's own result, first error and all


@dataclass
class Context:
    lane: Lane
    matrix: Matrix
    tree: SourceTree
    folder: LaneFolder
    host: Folders  # the lane's folders as greenlane sees them
    executor: Executor
    device: Device  # the card that the lane holds, else the processor
    jobs: int
    fresh: bool
    cancel: threading.Event
    card: Card | None = None  # the card that the lane holds
    wanted_image: str | None = None  # hex id of the image to use instead of what the Dockerfile gives
    base: Callable[[], Program] | None = None
    image: str | None = None  # hex id, once the image stage has run
    model: str | None = None  # hex digest of the model that the gates measure with
    image_files: str | None = None  # hex digest of what is in it, whatever its labels are
    log: StageLog = field(default_factory=StageLog)
    results: dict[Stage, StageResult] = field(default_factory=dict)

    @property
    def emulated(self) -> bool:
        return self.lane.emulate

    def ended_green(self, stage: Stage) -> bool:
        return stage in self.results and self.results[stage].outcome.is_green

    def placeholders(self) -> Placeholders:
        return Placeholders(self.lane, self.executor.inside, self.executor.python, self.jobs)

    def environment(self) -> dict[str, str]:
        """What the matrix gives the lane's commands, and what it lets in."""
        places = self.placeholders()
        return {name: places.fill(value) for name, value in self.lane.env.items()} | passed_through(self.lane)

    def run(
        self,
        script: str,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        setup: bool = False,
        on_line: Callable[[Stream, str], None] | None = None,
    ) -> Exit:
        """Runs one command of the matrix inside the lane, its output into the stage's log or to `on_line`."""
        text = self.placeholders().fill(script)
        self.log.command(text)

        hear = on_line or (lambda stream, line: self.log.line(line))
        cwd = cwd or self.executor.inside.build
        wanted = {**self.environment(), **(env or {})}
        return self.executor.run(Command(text, cwd, wanted, timeout_s, setup), hear)
