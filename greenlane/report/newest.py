"""The record set that a report is about: the newest record of each lane of the matrix."""

from __future__ import annotations

from pathlib import Path

from greenlane.ledger import Ledger
from greenlane.ledger.store import InvalidRecord
from greenlane.matrix.model import Matrix
from greenlane.record.model import Record


def ledger_of(matrix: Path) -> Ledger:
    return Ledger(matrix.resolve().parent / ".greenlane" / "ledger")


def newest(ledger: Ledger, matrix: Matrix) -> dict[str, tuple[str, Record]]:
    """(id, record) by lane, in the matrix's order; lanes without a sound record are left out."""
    ids: dict[str, list[str]] = {lane.id: [] for lane in matrix.lanes}
    for row in ledger.rows():
        if row.lane in ids:
            ids[row.lane].append(row.id)
    found = {lane: _first_sound(ledger, candidates) for lane, candidates in ids.items()}
    return {lane: entry for lane, entry in found.items() if entry is not None}


def _first_sound(ledger: Ledger, ids: list[str]) -> tuple[str, Record] | None:
    for record_id in ids:
        try:
            return record_id, ledger.get(record_id)
        except InvalidRecord:
            continue
    return None
