"""What the ledger knows of a lane's past: how its last runs ended, and how its figures moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from greenlane.ledger import Ledger, history
from greenlane.report import signs
from greenlane.report.page.loose import figure
from greenlane.report.signs import Family

RUNS = 30  # shown per lane
SERIES_LANES = 40  # lanes whose records are opened for their figures
WIDTH, HEIGHT = 300.0, 36.0


@dataclass(frozen=True, slots=True)
class Run:
    commit: str
    started: str
    outcome: str
    family: Family


@dataclass(frozen=True, slots=True)
class Line:
    """One metric over the records of a lane."""

    metric: str
    points: tuple[tuple[float, float], ...]
    low: str
    high: str
    last: str


@dataclass(frozen=True, slots=True)
class Past:
    runs: tuple[Run, ...] = ()  # oldest first
    lines: tuple[Line, ...] = ()


def runs(ledger: Ledger) -> dict[str, tuple[Run, ...]]:
    """The last runs of every lane, asked at once."""
    query = """select lane, head, started, outcome from
        (select *, row_number() over (partition by lane order by started desc, id) as place from records)
        where place <= ? order by lane, started"""
    found: dict[str, list[Run]] = defaultdict(list)
    for lane, head, started, outcome in ledger.index.select(query, (RUNS,)):
        run = Run(str(head)[:10], str(started)[:16].replace("T", " "), str(outcome), signs.of_outcome(str(outcome)))
        found[str(lane)].append(run)
    return {lane: tuple(entries) for lane, entries in found.items()}


def lines(ledger: Ledger, lane: str, metrics: Iterable[str]) -> tuple[Line, ...]:
    found = []
    for metric in metrics:
        values = [point.value for point in history.benchmark_series(ledger, lane, metric)][-RUNS:]
        if len(values) > 1:
            found.append(_line(metric, values))
    return tuple(found)


def _line(metric: str, values: list[float]) -> Line:
    low, high = min(values), max(values)
    step = WIDTH / (len(values) - 1)
    points = tuple(
        (round(step * at, 1), round(HEIGHT * (high - value) / (high - low), 1) if high > low else HEIGHT / 2)
        for at, value in enumerate(values)
    )
    return Line(metric, points, figure(low), figure(high), figure(values[-1]))


def shown(past: Past) -> Past | None:
    """A single run is no history."""
    return past if len(past.runs) > 1 else None
