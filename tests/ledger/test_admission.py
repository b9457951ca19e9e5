"""What enters the store can be stored, read, sorted and shown; everything else is refused in one line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from greenlane.ledger import InvalidRecord, Ledger, artifacts, parse, ref
from greenlane.ledger.artifacts import take
from greenlane.ledger.store import canonical
from greenlane.matrix.model import Stage
from greenlane.record.model import Outcome, Record, StageResult

Make = Callable[..., Record]


def measured(record: Record, value: str) -> bytes:
    """The record's bytes, with a measurement that is spelt so."""
    stage = StageResult(stage=Stage.BENCH, outcome=Outcome.PASS, measurements={"x": "HERE"})
    return canonical(record.model_copy(update={"stages": (stage,)})).replace(b'"HERE"', value.encode())


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("NaN", "not finite"),
        ("-Infinity", "not finite"),
        ("1e999", "not finite"),
        ("1" + "0" * 400 + ".5", "not finite"),
        ("9" * 30, "64 bits"),
        (r'"\ud800"', "surrogate"),
        (r'{"\udfff": 1}', "surrogate"),
        ("[" * 30 + "]" * 30, "deep"),
        ('{"a":' * 30 + "1" + "}" * 30, "deep"),
    ],
)
def test_values_that_no_reader_can_hold_are_refused(record: Make, value: str, says: str) -> None:
    with pytest.raises(InvalidRecord, match=says):
        parse(measured(record(), value))


@pytest.mark.parametrize("value", ["1e3", "-1.5E-7", r'"\ud83d\ude00"', '"NaN"', "9223372036854775807", "[[[[1]]]]"])
def test_unusual_values_that_are_sound_are_taken(record: Make, value: str) -> None:
    content = measured(record(), value)
    assert parse(content).stages[0].measurements["x"] == json.loads(value)


@pytest.mark.parametrize(
    "changes",
    [
        {"head": "main"},
        {"head": "A" * 40},
        {"base": "HEAD~1"},
        {"merge_tree": "../../tree"},
        {"lane": "../../../etc/passwd"},
        {"lane": "a lane"},
        {"lane": ""},
        {"lane": "x" * 201},
        {"started": "yesterday"},
        {"started": "2026-13-01"},
    ],
)
def test_names_and_times_of_another_shape_are_refused(record: Make, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidRecord) as refused:
        parse(canonical(record(**changes)))
    assert next(iter(changes)) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_a_lane_measured_as_infinite_is_stored_as_nothing(record: Make, ledger: Ledger) -> None:
    values = {"loss": math.inf, "gaps": [math.nan, 1.0], "text": "half \ud800"}
    stage = StageResult(stage=Stage.BENCH, outcome=Outcome.PASS, measurements=values)
    stored = ledger.get(ledger.put(record(stages=(stage,))))
    assert stored.stages[0].measurements == {"loss": None, "gaps": [None, 1.0], "text": "half ?"}


def test_starts_are_ordered_by_time_not_by_spelling(record: Make, ledger: Ledger) -> None:
    for lane, started in (
        ("second", "2026-01-01T10:00:00+09:00"),
        ("first", "2026-01-01T00:00:00Z"),
        ("third", "2026-01-01T02:00:00"),
    ):
        ledger.put(record(lane, started=started))
    assert [row.lane for row in ledger.rows()] == ["third", "second", "first"]


def test_an_artifact_beyond_its_limits_is_read_as_far_as_they_go(
    record: Make, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "artifact"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.json").write_bytes(canonical(record(f"lane-{number}")))
    monkeypatch.setattr(artifacts, "MAX_FILES", 3)
    taken, refused = take(ledger, folder, None)
    assert (taken, len(refused)) == (3, 1)
    monkeypatch.setattr(artifacts, "MAX_TOTAL_BYTES", 1)
    taken, refused = take(Ledger(tmp_path / "other"), folder, None)
    assert (taken, "not read from here on" in refused[0]) == (0, True)


def test_a_forks_records_are_not_shared(record: Make, ledger: Ledger, repository: Path, tmp_path: Path) -> None:
    ledger.put(record("theirs", trust="fork"))
    ours = ledger.put(record("ours", trust="runner"))
    assert ref.export(ledger, repository) == 1
    other = Ledger(tmp_path / "other")
    ref.import_(other, repository)
    assert other.ids() == [ours]


def test_more_records_than_one_call_of_git_reads_are_imported(
    record: Make, ledger: Ledger, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ref, "AT_ONCE", 2)
    for number in range(5):
        ledger.put(record(f"lane-{number}"))
    ref.export(ledger, repository)
    assert ref.import_(Ledger(tmp_path / "other"), repository) == (5, [])


def test_files_and_index_are_made_to_agree(record: Make, ledger: Ledger) -> None:
    kept, lost, gone = (ledger.put(record(name)) for name in ("kept", "lost", "gone"))
    ledger.index.remove([lost])
    (ledger.root / "records" / gone[:2] / f"{gone}.json").unlink()
    assert ledger.mend() == 2
    assert {row.id for row in ledger.rows()} == {kept, lost}
    assert ledger.mend() == 0
