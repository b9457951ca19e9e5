"""What a run leaves on the screen: a table per lane, the first error of each red stage, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from greenlane.lanes.colours import COLOUR, SIGN
from greenlane.lanes.evidence import missing
from greenlane.matrix.model import Stage
from greenlane.record.model import Outcome, Record, StageResult


@dataclass(frozen=True, slots=True)
class LaneEnd:
    """How a lane of this call ended: with a record, unless nothing began or nothing could be written."""

    lane: str
    record: Record | None = None
    record_id: str | None = None
    prevented: str | None = None  # what the machine lacked
    skipped: bool = False  # never begun, because an earlier lane was red
    tail: tuple[str, ...] = ()  # of the red stage's log

    @property
    def exit_code(self) -> int:
        if self.record is None or self.prevented is not None:
            return 0 if self.skipped else 3
        if self.record.outcome.is_red or any(stage.outcome.is_red for stage in self.record.stages):
            return 1
        return 4 if missing(self.record.require, self.record.evidence) else 0


def exit_code(ends: Sequence[LaneEnd]) -> int:
    """Red before what could not be run, and that before what was not reached."""
    codes = {end.exit_code for end in ends}
    return next((code for code in (1, 3, 4) if code in codes), 0)


def show(ends: Sequence[LaneEnd], console: Console) -> None:
    for end in ends:
        console.print()
        if end.record is None or end.prevented is not None:
            why = "not begun: an earlier lane is red (--keep-going runs them all)" if end.skipped else end.prevented
            console.print(Text(f"– {end.lane}: {why}", style="yellow"))
        if end.record is not None:
            _show_record(end, end.record, console)


def _show_record(end: LaneEnd, record: Record, console: Console) -> None:
    console.print(_headline(record))
    console.print(_stages(record))
    if record.outcome is Outcome.VOID and not any(stage.outcome is Outcome.VOID for stage in record.stages):
        console.print(Text("  the tree changed while the lane ran, so this certifies nothing", style="red"))
    for stage in record.stages:
        if stage.outcome.is_red:
            _show_red(stage, end, console)
    for line in _figures(record):
        console.print(Text(f"  {line}"))
    reused = f" (reused from {record.reused_from[:12]})" if record.reused_from else ""
    console.print(Text(f"  record {end.record_id[:12] if end.record_id else '-'}{reused}", style="dim"))


def _headline(record: Record) -> Text:
    proven = ", ".join(record.evidence) or "nothing"
    text = Text(f"{SIGN[record.outcome]} {record.lane} {record.outcome}", style=f"bold {COLOUR[record.outcome]}")
    text.append(f"  {record.head[:12]}{'+dirty' if record.dirty else ''}  evidence: {proven}", style="default not bold")
    if lacking := missing(record.require, record.evidence):
        text.append(f"  missing: {', '.join(lacking)}", style="yellow not bold")
    return text


def _stages(record: Record) -> Table:
    table = Table.grid(padding=(0, 2))
    for stage in record.stages:
        sign = Text(f"  {SIGN[stage.outcome]}", style=COLOUR[stage.outcome])
        took = f"{stage.duration_s:.1f} s" if stage.duration_s else ""
        table.add_row(sign, stage.stage, Text(stage.outcome), took, Text(stage.reason or ""))
    return table


def _show_red(stage: StageResult, end: LaneEnd, console: Console) -> None:
    error = stage.first_error
    if error is not None:
        place = f"{error.file}:{error.line}: " if error.file and error.line else f"{error.file}: " if error.file else ""
        console.print(Text(f"  first error: {place}{error.message}", style="red"))
    for line in end.tail:
        console.print(Text(f"  │ {line}", style="dim"))
    if stage.log:
        console.print(Text(f"  log: greenlane logs {end.lane} --stage {stage.stage}", style="dim"))


def _figures(record: Record) -> list[str]:
    """The measured figures that a reader looks for first."""
    lines = []
    tools = record.toolchain
    if tools.compiler:
        archs = f", architectures {' '.join(tools.archs)}" if tools.archs else ""
        lines.append(f"compiler {tools.compiler} {tools.version or ''}{archs}")
    if record.device is not None:
        lines.append(f"device   {record.device.name} ({record.device.executor})")
    for stage in record.stages:
        if stage.stage is Stage.BENCH and stage.outcome not in (Outcome.NOT_RUN, Outcome.BLOCKED):
            lines += _bench(stage.measurements)
        if stage.stage is Stage.BUILD and "ccache" in stage.measurements:
            cache = stage.measurements["ccache"]
            lines.append(f"ccache   {cache['hits']} hits, {cache['misses']} misses ({cache['hit_rate']:.0%})")
    return lines


def _bench(measurements: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, metric in (measurements.get("metrics") or {}).items():
        if isinstance(metric, Mapping):
            value = next((metric[key] for key in ("median", "head", "value") if key in metric), None)
            if isinstance(value, int | float):
                lines.append(f"bench    {name}: {value:,.4g} {metric.get('unit') or ''}".rstrip())
    return lines
