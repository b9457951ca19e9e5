"""What a person sees while lanes run: a live table on a terminal, plain lines elsewhere, log groups on GitHub."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from greenlane.lanes.colours import COLOUR, SIGN
from greenlane.matrix.model import Stage
from greenlane.record.model import StageResult


class Progress(Protocol):
    def stage_started(self, lane: str, stage: Stage) -> None: ...

    def line(self, lane: str, text: str) -> None: ...

    def stage_ended(self, lane: str, result: StageResult) -> None: ...

    def said(self, text: str) -> None:
        """A line that belongs to no stage."""


@contextlib.contextmanager
def watching(lanes: list[str], console: Console) -> Iterator[Progress]:
    if os.environ.get("GITHUB_ACTIONS") == "true":
        yield Groups(follow=len(lanes) == 1)
    elif console.is_terminal:
        with LiveTable(lanes, console, follow=len(lanes) == 1) as table:
            yield table
    else:
        yield Plain(follow=len(lanes) == 1)


class Plain:
    """One line per stage's end; a single lane's log lines in between."""

    def __init__(self, *, follow: bool) -> None:
        self._follow = follow

    def stage_started(self, lane: str, stage: Stage) -> None:
        self.said(f"{lane} {stage} ...")

    def line(self, lane: str, text: str) -> None:
        if self._follow:
            self.said(f"  {text}")

    def stage_ended(self, lane: str, result: StageResult) -> None:
        self.said(f"{lane} {ended(result)}")

    def said(self, text: str) -> None:
        print(text, flush=True)


class Groups(Plain):
    """Plain lines, a stage's log folded; a red stage's first error becomes an annotation."""

    def stage_started(self, lane: str, stage: Stage) -> None:
        self.said(f"::group::{lane} {stage}" if self._follow else f"{lane} {stage} ...")

    def line(self, lane: str, text: str) -> None:
        if self._follow:
            self.said(f" {text}")  # the blank keeps a hostile log from issuing workflow commands

    def stage_ended(self, lane: str, result: StageResult) -> None:
        if self._follow:
            self.said("::endgroup::")
        self.said(f"{lane} {ended(result)}")
        if result.outcome.is_red:
            self.said(annotation(lane, result))


def annotation(lane: str, result: StageResult) -> str:
    error = result.first_error
    place = f" file={_property(error.file)},line={error.line or 1}," if error and error.file else " "
    message = error.message if error else result.reason or result.outcome
    return f"::error{place}title={_property(f'{lane} {result.stage}')}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def ended(result: StageResult) -> str:
    reason = f": {result.reason}" if result.reason else ""
    return f"{result.stage} {result.outcome} {result.duration_s:.1f} s{reason}"


@dataclass
class _Row:
    stage: str = "waiting"
    since: float = 0.0
    running: bool = False
    done: Text = field(default_factory=Text)  # a sign per ended stage
    last_line: str = ""


class LiveTable:
    """One row per lane: its stage, for how long, the stages behind it and the newest line of its log."""

    def __init__(self, lanes: list[str], console: Console, *, follow: bool) -> None:
        self._rows = {lane: _Row() for lane in lanes}
        self._follow = follow
        self._console = console
        self._lock = threading.Lock()
        self._live = Live(console=console, get_renderable=self._table, refresh_per_second=6, transient=True)

    def __enter__(self) -> LiveTable:
        self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(None, None, None)

    def stage_started(self, lane: str, stage: Stage) -> None:
        with self._lock:
            self._rows[lane].stage, self._rows[lane].since, self._rows[lane].running = stage, time.monotonic(), True
        if self._follow:
            self._console.rule(f"[bold]{lane}[/bold] {stage}", align="left", style="dim")

    def line(self, lane: str, text: str) -> None:
        with self._lock:
            self._rows[lane].last_line = text
        if self._follow:
            self._console.print(Text(text, style="dim"))

    def stage_ended(self, lane: str, result: StageResult) -> None:
        with self._lock:
            row = self._rows[lane]
            row.stage, row.running, row.last_line = f"{result.stage} {result.outcome}", False, ""
            row.done.append(SIGN[result.outcome], style=COLOUR[result.outcome])
        text = Text(f"{SIGN[result.outcome]} {lane} {ended(result)}", style=COLOUR[result.outcome])
        self._console.print(text)

    def said(self, text: str) -> None:
        self._console.print(Text(text))

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        with self._lock:
            for lane, row in self._rows.items():
                seconds = f"{time.monotonic() - row.since:.0f} s" if row.running else ""
                newest = Text(row.last_line, style="dim", no_wrap=True, overflow="ellipsis")
                table.add_row(Text(lane, style="bold"), row.done.copy(), Text(row.stage), seconds, newest)
        return table


def console() -> Console:
    """Into a file or a pipe, lines are as long as they are."""
    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 200)
