"""What the records of many commits say together: flakes, ages, last runs, benchmark series."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from greenlane.ledger.admission import sortable
from greenlane.ledger.index import Row
from greenlane.ledger.store import Ledger
from greenlane.matrix.model import Evidence, Stage

PASSED = ("pass", "win", "wash", "undecided", "inert")
FAILED = ("fail", "loss")


@dataclass(frozen=True, slots=True)
class FlakeRate:
    """How often a stage gave two answers for one input."""

    inputs: int  # inputs that ran at least twice: same commit, tree, lane and image
    flaky: int  # of these, with a pass and a failure

    @property
    def rate(self) -> float:
        return self.flaky / self.inputs if self.inputs else 0.0


@dataclass(frozen=True, slots=True)
class Point:
    """One benchmark figure of one record."""

    started: str
    head: str
    value: float


def flake_rate(ledger: Ledger, lane: str, stage: Stage) -> FlakeRate:
    query = f"""
        select sum(s.outcome in {PASSED}), sum(s.outcome in {FAILED})
        from stages s join records r on r.id = s.record
        where s.lane = ? and s.stage = ? and r.dirty = 0 and s.rule is not 'infra' and s.outcome in {PASSED + FAILED}
        group by r.head, r.tree, r.lane_digest, r.image having count(*) > 1"""
    counts = ledger.index.select(query, (lane, stage))
    return FlakeRate(inputs=len(counts), flaky=sum(1 for passed, failed in counts if passed and failed))


def first_seen_of(ledger: Ledger, fingerprints: Collection[str]) -> dict[tuple[str, str, str], str]:
    """(lane, stage, fingerprint) -> start time of the oldest record that shows it, for many reds at once."""
    query = """
        select s.lane, s.stage, s.fingerprint, min(r.started) from stages s join records r on r.id = s.record
        where s.fingerprint in (select value from json_each(?)) and r.trust != 'fork' and r.started != ''
        group by s.lane, s.stage, s.fingerprint"""
    found = ledger.index.select(query, (json.dumps(sorted(fingerprints)),))
    return {(str(lane), str(stage), str(mark)): str(started) for lane, stage, mark, started in found}


def last_with(ledger: Ledger, lane: str, evidence: Evidence) -> Row | None:
    """The newest clean record of the lane that carries this evidence: the last commit that did run. A fork's own word
    does not count."""
    rows = (row for row in ledger.rows(lane=lane) if not row.dirty and row.trust != "fork")
    return next((row for row in rows if evidence in row.evidence), None)


def benchmark_series(ledger: Ledger, lane: str, metric: str) -> list[Point]:
    """The medians of one metric over the lane's records, oldest first."""
    points = []
    for _, record in ledger.records(lane=lane):
        for stage in record.stages:
            median = _median(stage.measurements.get("metrics"), metric)
            if stage.stage is Stage.BENCH and median is not None:
                points.append(Point(record.started, record.head, median))
    return sorted(points, key=lambda point: sortable(point.started))


def _median(metrics: object, metric: str) -> float | None:
    """The head's median: of a run that was compared with its base, or of one that stood alone."""
    found = metrics.get(metric) if isinstance(metrics, dict) else None
    if not isinstance(found, dict):
        return None
    medians = found.get("medians")
    value = medians.get("head") if isinstance(medians, dict) else found.get("median")
    return float(value) if isinstance(value, int | float) else None
