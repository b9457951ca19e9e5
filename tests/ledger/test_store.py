"""Records are kept whole, found again, and never believed when they were changed."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from greenlane.errors import EnvironmentMissing
from greenlane.ledger import InvalidRecord, Ledger, parse
from greenlane.ledger.store import MAX_RECORD_BYTES
from greenlane.record.model import Record

Make = Callable[..., Record]


def test_a_record_comes_back_as_it_went_in(record: Make, ledger: Ledger) -> None:
    record_id = ledger.put(record())
    assert ledger.get(record_id) == record()
    assert ledger.get(record_id[:8]) == record()


def test_the_same_record_twice_is_one_file(record: Make, ledger: Ledger) -> None:
    assert ledger.put(record()) == ledger.put(record())
    assert len(ledger.ids()) == len(ledger.rows()) == 1


def test_rows_come_newest_first_and_can_be_filtered(record: Make, ledger: Ledger) -> None:
    for day, lane in ((1, "cpu"), (3, "cpu"), (2, "rocm-gfx1100")):
        ledger.put(record(lane, started=f"2026-01-0{day}T00:00:00Z"))
    assert [row.started[9] for row in ledger.rows()] == ["3", "2", "1"]
    assert [row.started[9] for row in ledger.rows(lane="cpu")] == ["3", "1"]
    assert ledger.rows(lane="nowhere") == []


def test_a_changed_file_is_refused(record: Make, ledger: Ledger) -> None:
    record_id = ledger.put(record())
    path = ledger.root / "records" / record_id[:2] / f"{record_id}.json"
    path.write_bytes(path.read_bytes().replace(b'"fail"', b'"pass"'))
    with pytest.raises(InvalidRecord, match="does not match its name"):
        ledger.get(record_id)
    assert list(ledger.records()) == []
    count, damaged = ledger.reindex()
    assert (count, len(damaged)) == (0, 1)
    assert record_id[:12] in damaged[0]


def test_a_lost_or_damaged_index_is_rebuilt_from_the_files(record: Make, ledger: Ledger) -> None:
    record_id = ledger.put(record())
    for damage in (lambda path: path.unlink(), lambda path: path.write_bytes(b"no database" * 1000)):
        for suffix in ("-wal", "-shm"):
            ledger.index.path.with_name(ledger.index.path.name + suffix).unlink(missing_ok=True)
        damage(ledger.index.path)
        assert [row.id for row in Ledger(ledger.root).rows()] == [record_id]


def test_an_index_of_another_version_is_rebuilt(record: Make, ledger: Ledger) -> None:
    record_id = ledger.put(record())
    connection = sqlite3.connect(ledger.index.path)
    connection.execute("pragma user_version = 99")
    connection.close()
    assert [row.id for row in Ledger(ledger.root).rows()] == [record_id]


def _put_many(record: Make, root: Path, writer: int) -> None:
    ledger = Ledger(root)
    for number in range(20):
        ledger.put(record(lane=f"lane-{writer}-{number}"))


def test_writers_side_by_side_lose_nothing(record: Make, tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_put_many, args=(record, tmp_path / "ledger", writer)) for writer in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
    ledger = Ledger(tmp_path / "ledger")
    assert len(ledger.rows()) == len(ledger.ids()) == 80


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\xff\xfe", "not a record"),
        (b"[]", "JSON object"),
        (b"[" * 100_000, "not a record"),
        (b"{}", "schema None"),
        (b'{"schema": 99}', "update greenlane"),
        (b'{"schema": 1}', "lane: Field required"),
        (b" " * (MAX_RECORD_BYTES + 1), "more than"),
        (b'{"schema": 1, "lanes": "cpu"}', "lane"),
    ],
)
def test_what_is_no_record_is_refused_in_one_line(content: bytes, says: str) -> None:
    with pytest.raises(InvalidRecord, match=says) as refused:
        parse(content)
    assert "\n" not in str(refused.value)


def test_ids_cannot_leave_the_store(record: Make, ledger: Ledger) -> None:
    for name in ("../../../etc/passwd", "abc", "", "g" * 64):
        with pytest.raises(InvalidRecord, match="no record id"):
            ledger.get(name)


def test_a_store_that_cannot_be_written_says_so(record: Make, tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("in the way")
    with pytest.raises(EnvironmentMissing, match="cannot be written|cannot be opened"):
        Ledger(tmp_path / "ledger").put(record())


def test_an_interrupted_write_leaves_nothing_half_written(
    record: Make, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        ledger.put(record())
    assert [path for path in ledger.root.rglob("*") if path.suffix in {".json", ".part"}] == []


def test_the_file_is_canonical_json(record: Make, ledger: Ledger) -> None:
    content = ledger.raw(ledger.put(record()))
    document = json.loads(content)
    assert list(document) == sorted(document)
    assert document["schema"] == 1
