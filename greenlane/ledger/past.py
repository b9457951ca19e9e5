"""A lane's past in lines: where it last ran, since when it is red, how often it gave two answers, how figures moved."""

from __future__ import annotations

from collections.abc import Iterator

from greenlane.ledger import history
from greenlane.ledger.store import Ledger
from greenlane.matrix.model import Evidence, Stage
from greenlane.record.model import Record


def told(ledger: Ledger, lane: str) -> Iterator[str]:
    newest = next((record for _, record in ledger.records(lane=lane)), None)
    if newest is None:
        yield "no record"
        return
    yield from _last_runs(ledger, lane)
    yield from _reds(ledger, newest)
    yield from _flakes(ledger, lane)
    yield from _figures(ledger, newest)


def _last_runs(ledger: Ledger, lane: str) -> Iterator[str]:
    for evidence in Evidence:
        row = history.last_with(ledger, lane, evidence)
        if row is not None:
            yield f"{evidence:14} last at {row.head[:10]}, {row.started[:10]}"


def _reds(ledger: Ledger, newest: Record) -> Iterator[str]:
    errors = {stage.stage: stage.first_error for stage in newest.stages if stage.outcome.is_red and stage.first_error}
    seen = history.first_seen_of(ledger, [error.fingerprint for error in errors.values() if error.fingerprint])
    for stage, error in errors.items():
        since = seen.get((newest.lane, stage, error.fingerprint))
        yield f"{stage:14} red" + (f" since {since[:10]}" if since else "")


def _flakes(ledger: Ledger, lane: str) -> Iterator[str]:
    for stage in Stage:
        found = history.flake_rate(ledger, lane, stage)
        if found.inputs:
            yield f"{stage:14} {found.flaky} of {found.inputs} repeated inputs gave two answers ({found.rate:.0%})"


def _figures(ledger: Ledger, newest: Record) -> Iterator[str]:
    bench = next((stage.measurements.get("metrics") for stage in newest.stages if stage.stage is Stage.BENCH), None)
    for metric in bench if isinstance(bench, dict) else ():
        values = [point.value for point in history.benchmark_series(ledger, newest.lane, metric)]
        if values:
            yield f"{metric:14} {' '.join(f'{value:.4g}' for value in values[-10:])}"
