"""The same lanes for a person at a terminal: a table, then the first error of each red lane."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from greenlane.report import signs
from greenlane.report.markdown import plain
from greenlane.report.page import Page
from greenlane.report.page.headline import headline
from greenlane.report.page.lane import LaneView
from greenlane.report.signs import Family
from greenlane.review.model import Review

STYLE = {Family.GOOD: "green", Family.BAD: "red", Family.UNSURE: "yellow", Family.KNOWN: "dim red", Family.NONE: "dim"}
PIPE_WIDTH = 160  # columns where there is no terminal


def render(page: Page, *, styled: bool) -> str:
    """What the page shows, as lines; coloured where a terminal reads them."""
    lanes, review = page.lanes, page.review
    console = _console(styled)
    family, said = headline(lanes, review)
    console.print(Text(plain(said, 400), style=f"bold {STYLE[family]}"))
    for line in _about(review) if review else ():
        console.print(line)
    console.print(_table(lanes))
    for lane in lanes:
        if lane.error and lane.family not in (Family.GOOD, Family.NONE):
            _error(console, lane)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def _console(styled: bool) -> Console:
    colour = styled and sys.stdout.isatty()
    width = None if colour else PIPE_WIDTH
    return Console(file=io.StringIO(), force_terminal=colour, width=width, highlight=False, soft_wrap=False)


def _about(review: Review) -> Iterable[Text]:
    onto = f"{review.head[:12]} {plain(review.head_subject, 80)} onto {review.base_commit} {review.base[:12]}"
    yield Text(onto, style="dim")
    if review.broken:
        yield from (Text(f"  {plain(line)}", style="red") for line in review.broken.splitlines()[:20])
    for problem in review.text_problems:
        yield Text(f"  text, line {problem.line}: {plain(problem.message)}", style="yellow")
    for found in review.findings[:20]:
        place = f"{plain(found.file)}:{found.line}"
        yield Text(f"  {place}: {plain(found.rule, 40)}: {plain(found.message)} ({len(found.lanes)} lanes)")
    for conflict in review.merge.conflicts:
        yield Text(f"  conflict in {plain(conflict.file)}", style="red")
    for claim in review.claims:
        style = STYLE[signs.of_claim(claim.state)]
        yield Text(f"  “{plain(claim.text, 80)}” {claim.state}: {plain(claim.reason, 160)}", style=style)
    for change in review.policy_changes:
        yield Text(f"  policy: {plain(change.what, 80)} {plain(change.before, 60)} → {plain(change.after, 60)}")


def _table(lanes: Sequence[LaneView]) -> Table:
    table = Table.grid(padding=(0, 2))
    for lane in lanes:
        word = Text(f"{signs.SIGN[lane.family]} {lane.word}", style=STYLE[lane.family])
        lacks = Text(f"  needs {', '.join(lane.missing)}" if lane.missing else "", style="yellow")
        commit = f"{(lane.head or '')[:10]}{'+dirty' if lane.dirty else ''}{' stale' if lane.stale else ''}"
        table.add_row(word, Text(lane.id), Text(" ".join(lane.evidence)).append_text(lacks), Text(commit, style="dim"))
    return table


def _error(console: Console, lane: LaneView) -> None:
    assert lane.error is not None
    place = f"{plain(lane.error.place)}: " if lane.error.place else ""
    console.print()
    console.print(Text(f"{lane.id} {lane.error.stage}", style=f"bold {STYLE[lane.family]}"))
    console.print(Text(f"  {place}{plain(lane.error.message)}"))
    if lane.record:
        console.print(Text(f"  nox -s {lane.id}, or greenlane reproduce {lane.record[:12]}", style="dim"))
