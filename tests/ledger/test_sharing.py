"""Baselines travel through a git ref, and through folders that strangers fill."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from greenlane.errors import EnvironmentMissing, MatrixError
from greenlane.ledger import Ledger, ref
from greenlane.ledger.artifacts import take
from greenlane.ledger.store import MAX_RECORD_BYTES, canonical
from greenlane.record.git import git
from greenlane.record.model import Record

Make = Callable[..., Record]


def test_a_ref_carries_the_records_to_another_ledger(
    record: Make, ledger: Ledger, repository: Path, tmp_path: Path
) -> None:
    ids = [ledger.put(record(f"lane-{number}")) for number in range(5)]
    assert ref.export(ledger, repository) == 5
    assert ref.export(ledger, repository) == 0
    other = Ledger(tmp_path / "other")
    assert ref.import_(other, repository) == (5, [])
    assert sorted(other.ids()) == sorted(ids)
    assert {row.id for row in other.rows()} == set(ids)


def test_exports_add_up(record: Make, repository: Path, tmp_path: Path) -> None:
    for number in range(3):
        ledger = Ledger(tmp_path / str(number))
        ledger.put(record(f"lane-{number}"))
        assert ref.export(ledger, repository) == 1
    everything = Ledger(tmp_path / "everything")
    assert ref.import_(everything, repository) == (3, [])


def test_an_export_that_loses_the_race_starts_again(
    record: Make, ledger: Ledger, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival = Ledger(tmp_path / "rival")
    rival.put(record("rival"))
    ledger.put(record("mine"))
    honest, raced = ref._commit, []

    def raced_commit(repository: Path, tip: str | None, blobs: dict[str, str]) -> str:
        if not raced:
            raced.append(True)
            ref.export(rival, repository)
        return honest(repository, tip, blobs)

    monkeypatch.setattr(ref, "_commit", raced_commit)
    assert ref.export(ledger, repository) == 1
    everything = Ledger(tmp_path / "everything")
    assert ref.import_(everything, repository) == (2, [])


def test_a_forged_record_in_the_ref_is_refused(
    record: Make, ledger: Ledger, repository: Path, tmp_path: Path, run_git: Callable[..., str]
) -> None:
    record_id = ledger.put(record())
    forged = ledger.raw(record_id).replace(b'"outcome":"fail"', b'"outcome":"pass"')
    git(repository, "update-ref", ref.REF, ref._commit(repository, None, {record_id: ref._blob(repository, forged)}))
    taken, refused = ref.import_(Ledger(tmp_path / "other"), repository)
    assert taken == 0
    assert "does not match its name" in refused[0]


def test_a_missing_ref_says_how_to_fetch_it(ledger: Ledger, repository: Path) -> None:
    with pytest.raises(EnvironmentMissing, match="git fetch REMOTE refs/greenlane/ledger"):
        ref.import_(ledger, repository)


def test_records_from_a_stranger_carry_no_trust_of_their_own(record: Make, ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "artifact").mkdir()
    (tmp_path / "artifact" / "a.json").write_bytes(canonical(record(trust="runner")))
    assert take(ledger, tmp_path / "artifact", None) == (1, [])
    assert [row.trust for row in ledger.rows()] == ["fork"]


def test_a_hostile_folder_is_read_without_harm(record: Make, ledger: Ledger, tmp_path: Path) -> None:
    folder = tmp_path / "artifact"
    (folder / "deep").mkdir(parents=True)
    secret = tmp_path / "secret.json"
    secret.write_bytes(canonical(record("secret")))
    (folder / "link.json").symlink_to(secret)
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.json")
    (folder / "big.json").write_bytes(b" " * (MAX_RECORD_BYTES + 1))
    (folder / "odd.json").write_bytes(b'{"schema": 1, "lane": 3}')
    (folder / "@everyone\n.json").write_bytes(b"\0")
    (folder / "deep" / "good.json").write_bytes(canonical(record("good")))
    taken, refused = take(ledger, folder, None)
    assert taken == 1
    assert [row.lane for row in ledger.rows()] == ["good"]
    assert len(refused) == 5
    assert all("\n" not in line for line in refused)


def test_a_folder_that_is_not_there_is_a_mistake(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match="no such folder"):
        take(ledger, tmp_path / "nowhere", None)


def test_a_record_of_a_newer_greenlane_is_refused_by_name(record: Make, ledger: Ledger, tmp_path: Path) -> None:
    document = json.loads(canonical(record())) | {"schema": 2}
    (tmp_path / "new.json").write_text(json.dumps(document))
    assert take(ledger, tmp_path, None) == (
        0,
        ["new.json: not a record: schema 2 is not one that this greenlane reads (1 to 1); update greenlane"],
    )
