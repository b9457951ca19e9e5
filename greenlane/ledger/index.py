"""SQLite over the records: what baselines and history ask for, without opening thousands of files."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from greenlane.errors import EnvironmentMissing
from greenlane.ledger.admission import sortable
from greenlane.ledger.planted import refuse_tracked
from greenlane.record.lock import locked
from greenlane.record.model import Record, StageResult

VERSION = 2
COLUMNS = (
    "id",
    "lane",
    "head",
    "base",
    "outcome",
    "trust",
    "dirty",
    "started",
    "tree",
    "lane_digest",
    "image",
    "evidence",
    "arch",
)
FILTERS = frozenset({"lane", "head", "outcome", "trust", "tree", "lane_digest"})

SCHEMA = """
create table records (
  id text primary key, lane text not null, head text not null, base text, outcome text not null, trust text not null,
  dirty integer not null, started text not null, tree text not null, lane_digest text not null, image text,
  evidence text not null, arch text
);
create index records_by_lane on records (lane, started desc);
create index records_by_head on records (head);
create table stages (
  record text not null, lane text not null, head text not null, stage text not null, outcome text not null,
  fingerprint text, file text, rule text, target text, reason text, primary key (record, stage)
);
create index stages_by_head on stages (head, lane, stage);
create index stages_by_fingerprint on stages (fingerprint);
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One record, as far as the index knows it."""

    id: str
    lane: str
    head: str
    base: str | None
    outcome: str
    trust: str
    dirty: bool
    started: str
    tree: str
    lane_digest: str
    image: str | None
    evidence: tuple[str, ...]
    arch: str | None


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage of one record."""

    record: str
    lane: str
    head: str
    stage: str
    outcome: str
    fingerprint: str | None
    file: str | None
    rule: str | None
    target: str | None
    reason: str | None


class Index:
    """A copy of what the record files say. A missing, damaged or older index is rebuilt from them when first used."""

    def __init__(self, path: Path, *, rebuild: Callable[[], Iterable[tuple[str, Record]]]) -> None:
        self.path = path
        self._rebuild = rebuild
        self._sound = False

    def add(self, record_id: str, record: Record) -> None:
        with self._connect() as connection, connection:
            _insert(connection, record_id, record)

    def remove(self, record_ids: list[str]) -> None:
        with self._connect() as connection, connection:
            for table, column in (("records", "id"), ("stages", "record")):
                connection.executemany(f"delete from {table} where {column} = ?", [(name,) for name in record_ids])

    def rows(self, **where: str) -> list[Row]:
        unknown = set(where) - FILTERS
        if unknown:
            raise ValueError(f"the index has no filter {', '.join(sorted(unknown))}")
        condition = " and ".join(f"{name} = ?" for name in where) or "1"
        query = f"select {', '.join(COLUMNS)} from records where {condition} order by started desc, id"
        return [_row(values) for values in self.select(query, tuple(where.values()))]

    def stages(self, heads: Iterable[str], lanes: Iterable[str]) -> list[StageRow]:
        """Every stage of every clean record that no fork made, of these commits and lanes, newest first. What the
        machine cut is not among them."""
        wanted, here = json.dumps(list(heads)), json.dumps(list(lanes))
        query = (
            "select s.record, s.lane, s.head, s.stage, s.outcome, s.fingerprint, s.file, s.rule, s.target, s.reason "
            "from stages s join records r on r.id = s.record "
            "where r.dirty = 0 and r.trust != 'fork' and s.rule is not 'infra' "
            "and s.head in (select value from json_each(?)) and s.lane in (select value from json_each(?)) "
            "order by r.started desc"
        )
        return [StageRow(*values) for values in self.select(query, (wanted, here))]  # type: ignore[arg-type]

    def select(self, query: str, arguments: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        """Rows of a query. An index that turns out to be damaged is rebuilt once."""
        try:
            with self._connect() as connection:
                return list(connection.execute(query, arguments))
        except sqlite3.DatabaseError as error:
            if "locked" in str(error):
                raise EnvironmentMissing(f"{self.path}: another process holds the index; try again") from error
        self._rebuild_damaged()
        with self._connect() as connection:
            return list(connection.execute(query, arguments))

    def replace(self, records: Iterable[tuple[str, Record]]) -> int:
        """Fill the index from these records alone. Returns their number. Readers see the old or the new one."""
        with self._ready(), self._open() as connection, connection:
            connection.execute("begin immediate")
            connection.execute("delete from records")
            connection.execute("delete from stages")
            for record_id, record in records:
                _insert(connection, record_id, record)
            (count,) = connection.execute("select count(*) from records").fetchone()
        return int(count)

    @contextlib.contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        with self._ready(), self._open() as connection:
            yield connection

    @contextlib.contextmanager
    def _ready(self) -> Iterator[None]:
        """Make sure, once per process, that there is a sound index; one process at a time builds it."""
        if not self._sound:
            refuse_tracked(self.path.parent.absolute())
            with locked(self.path.with_suffix(".lock")):
                if not self._usable():
                    self._build()
            self._sound = True
        yield

    def _rebuild_damaged(self) -> None:
        with locked(self.path.with_suffix(".lock")):
            self._build()

    def _usable(self) -> bool:
        if not self.path.exists():
            return False
        try:
            with self._open() as connection:
                (version,) = connection.execute("pragma user_version").fetchone()
                connection.execute("select id from records limit 1").fetchone()
            return bool(version == VERSION)
        except sqlite3.DatabaseError:
            return False

    def _build(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        with self._open() as connection, connection:
            connection.executescript(f"pragma journal_mode = wal; {SCHEMA}")
            for record_id, record in self._rebuild():
                _insert(connection, record_id, record)
            connection.execute(f"pragma user_version = {VERSION}")

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=30.0)
            connection.execute("pragma synchronous = normal")  # the files are the truth; the index may lag a power cut
        except (OSError, sqlite3.OperationalError) as error:
            raise EnvironmentMissing(f"{self.path}: the ledger's index cannot be opened: {error}") from error
        try:
            yield connection
        finally:
            connection.close()


def _insert(connection: sqlite3.Connection, record_id: str, record: Record) -> None:
    device_arch = record.device.arch if record.device else None
    values = (
        record_id, record.lane, record.head, record.base, record.outcome, record.trust, record.dirty,
        sortable(record.started), record.digests.tree,
        record.digests.lane, record.digests.image, " ".join(record.evidence), device_arch,
    )  # fmt: skip
    connection.execute(f"insert or replace into records values ({', '.join('?' * len(values))})", values)
    connection.executemany(
        "insert or replace into stages values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_stage_values(record_id, record, stage) for stage in record.stages],
    )


def _stage_values(record_id: str, record: Record, stage: StageResult) -> tuple[object, ...]:
    error = stage.first_error
    named = (error.fingerprint, error.file, error.rule, error.target) if error else (None, None, None, None)
    return (record_id, record.lane, record.head, stage.stage, stage.outcome, *named, stage.reason)


def _row(values: tuple[Any, ...]) -> Row:
    name, lane, head, base, outcome, trust, dirty, started, tree, lane_digest, image, evidence, arch = values
    flags = tuple(str(evidence or "").split())
    return Row(name, lane, head, base, outcome, trust, bool(dirty), started, tree, lane_digest, image, flags, arch)
