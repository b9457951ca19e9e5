"""What the page is made from: the records of a ledger, and a review where one was asked for."""

from __future__ import annotations

from pathlib import Path

from greenlane.errors import MatrixError
from greenlane.ledger import Ledger
from greenlane.ledger.store import InvalidRecord
from greenlane.matrix import load
from greenlane.matrix.model import Lane, Matrix, Stage
from greenlane.record.model import Record
from greenlane.report.newest import newest
from greenlane.report.page import Page, history
from greenlane.report.page.history import Past, Run
from greenlane.report.page.lane import LaneView, view
from greenlane.review.model import LaneReview, Review


def of_records(ledger: Ledger, matrix: Matrix, project: str) -> Page:
    records = newest(ledger, matrix)
    past = Pasts(ledger)
    lanes = []
    for lane in matrix.lanes:
        record_id, record = records.get(lane.id, (None, None))
        lanes.append(view(lane, record, record_id, None, past.of(lane.id, record)))
    return Page(project, lanes)


def of_review(ledger: Ledger, review: Review, matrix: Path, project: str) -> Page:
    known = {lane.id: lane for lane in _lanes_here(matrix)}
    past = Pasts(ledger)
    return Page(project, [_judged(ledger, lane, known.get(lane.id), past) for lane in review.lanes], review)


def _lanes_here(matrix: Path) -> tuple[Lane, ...]:
    """The lanes of the work tree say what a review does not: their toolkits. A broken matrix has none."""
    try:
        return load(matrix).lanes
    except MatrixError:
        return ()


def _judged(ledger: Ledger, judged: LaneReview, lane: Lane | None, past: Pasts) -> LaneView:
    record = _record(ledger, judged.record)
    lane = lane or Lane(
        id=judged.id, backend=judged.backend or "?", arch=judged.arch, variant=judged.variant, row=judged.row
    )
    return view(lane, record, judged.record, judged, past.of(judged.id, record))


def _record(ledger: Ledger, record_id: str | None) -> Record | None:
    """A record that was damaged since the review is left out: the verdict stays."""
    try:
        return ledger.get(record_id) if record_id else None
    except InvalidRecord:
        return None


class Pasts:
    """The past of every lane, asked of the ledger once; figures only of the first lanes that have any."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._runs: dict[str, tuple[Run, ...]] = history.runs(ledger)
        self._series = history.SERIES_LANES

    def of(self, lane: str, record: Record | None) -> Past:
        runs = self._runs.get(lane, ())
        metrics = _metrics(record) if len(runs) > 1 and self._series else []
        if metrics:
            self._series -= 1
        return Past(runs, history.lines(self._ledger, lane, metrics) if metrics else ())


def _metrics(record: Record | None) -> list[str]:
    bench = next((stage for stage in record.stages if stage.stage is Stage.BENCH), None) if record else None
    found = bench.measurements.get("metrics") if bench else None
    return [str(name) for name in found][:6] if isinstance(found, dict) else []


def project_of(matrix: Path) -> str:
    return matrix.resolve().parent.name
