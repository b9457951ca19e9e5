"""The record set that a report is about: the newest record of each lane of the matrix."""

from __future__ import annotations

from pathlib import Path

from greenlane.errors import EnvironmentMissing
from greenlane.ledger import Ledger
from greenlane.ledger.store import InvalidRecord
from greenlane.matrix.model import Matrix
from greenlane.record.git import commit_of
from greenlane.record.model import Record


def ledger_of(matrix: Path) -> Ledger:
    return Ledger(matrix.resolve().parent / ".greenlane" / "ledger")


def newest(ledger: Ledger, matrix: Matrix) -> dict[str, tuple[str, Record]]:
    """(id, record) by lane, in the matrix's order; lanes without a sound record are left out.

    Records of the commit that is checked out come first: a run with --base leaves newer ones of the base.
    """
    here = _checked_out(Path(matrix.file).resolve().parent)
    ids: dict[str, list[str]] = {lane.id: [] for lane in matrix.lanes}
    for row in sorted(ledger.rows(), key=lambda row: row.head != here):
        if row.lane in ids:
            ids[row.lane].append(row.id)
    found = {lane: _first_sound(ledger, candidates) for lane, candidates in ids.items()}
    return {lane: entry for lane, entry in found.items() if entry is not None}


def _checked_out(folder: Path) -> str | None:
    """The commit of the work tree, where there is one."""
    try:
        return commit_of(folder, "HEAD")
    except EnvironmentMissing:
        return None


def _first_sound(ledger: Ledger, ids: list[str]) -> tuple[str, Record] | None:
    for record_id in ids:
        try:
            return record_id, ledger.get(record_id)
        except InvalidRecord:
            continue
    return None
