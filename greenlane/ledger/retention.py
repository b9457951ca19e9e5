"""Which records may go: those of commits far from every branch, unless something still rests on them."""

from __future__ import annotations

from pathlib import Path

from greenlane.ledger.index import Row
from greenlane.ledger.store import InvalidRecord, Ledger
from greenlane.matrix.model import Evidence
from greenlane.record.git import git_text

KEEP_COMMITS = 500


def collect(ledger: Ledger, repository: Path, keep: int = KEEP_COMMITS) -> list[str]:
    """Remove and return the ids of records whose commit is none of the `keep` nearest to any branch or HEAD.

    Kept all the same: what a kept record was reused from, and each lane's newest run on its target.
    """
    near = _near_commits(repository, keep)
    rows = ledger.rows()
    kept = {row.id for row in rows if row.head in near} | _newest_runs(rows)
    kept |= {origin for row in rows if row.id in kept if (origin := _origin(ledger, row.id))}
    gone = [row.id for row in rows if row.id not in kept]
    ledger.remove(gone)
    return gone


def _origin(ledger: Ledger, record_id: str) -> str | None:
    try:
        return ledger.get(record_id).reused_from
    except InvalidRecord:
        return None


def _newest_runs(rows: list[Row]) -> set[str]:
    newest: dict[str, str] = {}
    for row in rows:  # newest first
        if Evidence.RAN_ON_TARGET in row.evidence:
            newest.setdefault(row.lane, row.id)
    return set(newest.values())


def _near_commits(repository: Path, keep: int) -> set[str]:
    tips = git_text(repository, "for-each-ref", "--format=%(objectname)", "refs/heads", "refs/remotes").split()
    near: set[str] = set()
    for tip in {"HEAD", *tips}:
        near |= set(git_text(repository, "rev-list", f"--max-count={keep}", tip).split())
    return near
