"""Archives of strangers: bombs, escapes, lies about sizes. What is no record of the run's head is refused."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from greenlane.errors import EnvironmentMissing
from greenlane.github import artifacts
from greenlane.github.artifacts import Taken
from greenlane.github.forge import Forge
from greenlane.ledger import Ledger
from tests.github.fake import GitHub

HEAD, OTHER = "a" * 40, "b" * 40
RUN = 5


def record(**changes: object) -> bytes:
    document = {
        "schema": 1, "lane": "cpu", "head": HEAD, "dirty": False, "outcome": "pass", "trust": "runner",
        "digests": {"matrix": "m", "lane": "l", "tree": "t"},
    } | changes  # fmt: skip
    return json.dumps(document).encode()


def archive(files: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def take(tmp_path: Path) -> Callable[[bytes], Taken]:
    ledger = Ledger(tmp_path / "ledger")

    def from_archive(content: bytes) -> Taken:
        taken = Taken()
        artifacts.take_archive(ledger, content, "records-cpu", lambda commit: commit == HEAD, "fork", taken)
        return taken

    from_archive.ledger = ledger  # type: ignore[attr-defined]
    return from_archive


def test_a_record_is_taken_with_the_callers_trust(take: Callable[[bytes], Taken]) -> None:
    assert take(archive({"ab/x.json": record()})).records == 1
    (row,) = take.ledger.rows()  # type: ignore[attr-defined]
    assert row.trust == "fork"


@pytest.mark.parametrize(
    "name",
    ["../../etc/cron.d/x.json", "/etc/x.json", "C:\\x.json", "a/../../x.json", "\x1b[2Jx.json", f"{'x' * 60_000}.json"],
)
def test_a_name_is_never_a_path(name: str, take: Callable[[bytes], Taken], tmp_path: Path) -> None:
    taken = take(archive({name: record()}))
    assert taken.records == 1
    files = [path for path in tmp_path.rglob("*") if path.suffix == ".json"]
    assert [path.parent.parent for path in files] == [tmp_path / "ledger" / "records"]
    refused = take(archive({name: b"no record"})).refused[0]
    assert refused.isprintable()
    assert len(refused) < 400


def test_a_bomb_is_read_no_further_than_a_record_may_be_long(take: Callable[[bytes], Taken]) -> None:
    bomb = archive({"bomb.json": b" " * (200 * 1024 * 1024)})
    assert len(bomb) < 1_000_000
    taken = take(bomb)
    assert (taken.records, len(taken.refused)) == (0, 1)
    assert taken.bytes <= artifacts.MAX_RECORD_BYTES + 1


def test_many_bombs_together_are_read_up_to_one_limit(
    take: Callable[[bytes], Taken], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "MAX_TOTAL_BYTES", 3_000_000)
    taken = take(archive({f"{number}.json": b" " * 1_000_000 for number in range(50)}))
    assert 3_000_000 < taken.bytes <= 4_000_000
    assert "more records than are read" in taken.refused[-1]


def test_a_size_that_the_archive_lies_about_is_not_believed(take: Callable[[bytes], Taken]) -> None:
    honest = archive({"x.json": b" " * 5_000_000})
    place = honest.rindex(b"PK\x01\x02") + 24  # the uncompressed size in the directory
    lying = honest[:place] + struct.pack("<I", 10) + honest[place + 4 :]
    taken = take(lying)
    assert (taken.records, len(taken.refused)) == (0, 1)


@pytest.mark.parametrize("content", [b"", b"PK", b"no archive", b"PK\x05\x06" + b"\xff" * 18, b"\x00" * 1000])
def test_what_is_no_archive_is_refused(content: bytes, take: Callable[[bytes], Taken]) -> None:
    assert len(take(content).refused) == 1


def test_a_damaged_member_does_not_hide_the_others(take: Callable[[bytes], Taken]) -> None:
    whole = bytearray(archive({"a.json": record() + b" " * 5000, "b.json": record(lane="other")}))
    whole[60:80] = b"\xff" * 20  # inside the first member's compressed bytes
    taken = take(bytes(whole))
    assert (taken.records, len(taken.refused)) == (1, 1)


def test_an_encrypted_member_is_refused(take: Callable[[bytes], Taken]) -> None:
    content = bytearray(archive({"x.json": record()}))
    for start in (content.index(b"PK\x03\x04") + 6, content.index(b"PK\x01\x02") + 8):
        content[start] |= 1
    assert len(take(bytes(content)).refused) == 1


def test_more_files_than_a_run_has_are_not_read(take: Callable[[bytes], Taken]) -> None:
    taken = take(archive({f"{number}.json": b"" for number in range(artifacts.MAX_MEMBERS + 50)}))
    assert len(taken.refused) == artifacts.MAX_MEMBERS + 1


@pytest.mark.parametrize(
    "content", [record(head=OTHER), record(head="HEAD"), record(lane="../x"), record(extra=1), b"[" * 100_000, b"\xff"]
)  # fmt: skip
def test_what_is_not_a_record_of_the_head_is_refused(content: bytes, take: Callable[[bytes], Taken]) -> None:
    taken = take(archive({"x.json": content}))
    assert (taken.records, len(taken.refused)) == (0, 1)


def test_every_page_of_artifacts_is_read_and_only_those_of_records(
    github: GitHub, forge: Forge, tmp_path: Path
) -> None:
    for number in range(130):
        github.artifact(RUN, "records-cpu" if number == 125 else f"logs-{number}", archive({"x.json": record()}))
    taken = artifacts.take(forge, Ledger(tmp_path), RUN, lambda commit: True, "runner")
    assert taken.records == 1
    assert sum("/zip" in request for request in github.asked) == 1


def test_many_archives_together_are_downloaded_up_to_one_limit(
    github: GitHub, forge: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "MAX_TOTAL_BYTES", 250_000)
    for _ in range(20):
        github.artifact(RUN, "records-x", b"x" * 100_000)
    taken = artifacts.take(forge, Ledger(tmp_path), RUN, lambda commit: True, "runner")
    assert taken.downloaded == 300_000
    assert taken.refused[-1] == "the run has more records than are read; the rest is left alone"


@pytest.mark.parametrize("changes", [{"expired": True}, {"size_in_bytes": artifacts.MAX_ARCHIVE_BYTES + 1}])
def test_an_expired_or_huge_artifact_is_not_downloaded(
    changes: dict[str, object], github: GitHub, forge: Forge, tmp_path: Path
) -> None:
    github.artifact(RUN, "records-cpu", archive({"x.json": record()}), **changes)
    taken = artifacts.take(forge, Ledger(tmp_path), RUN, lambda commit: True, "runner")
    assert (taken.records, len(taken.refused)) == (0, 1)
    assert not any("/zip" in request for request in github.asked)


def test_an_artifact_that_is_longer_than_it_was_said_to_be_is_cut_off(
    github: GitHub, forge: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "MAX_ARCHIVE_BYTES", 100_000)
    github.artifact(RUN, "records-cpu", b"x" * 1_000_000, size_in_bytes=10)
    with pytest.raises(EnvironmentMissing, match="whatever its size was said to be"):
        artifacts.take(forge, Ledger(tmp_path), RUN, lambda commit: True, "runner")


@pytest.mark.parametrize("place", ["http://elsewhere.example.com/x", "file:///etc/passwd", ""])
def test_an_artifact_is_fetched_by_https_only(place: str, github: GitHub, forge: Forge, tmp_path: Path) -> None:
    github.artifact(RUN, "records-cpu", b"")
    github.faults.append(("GET /repos/o/r/actions/artifacts/", (302, {"Location": place}, {})))
    with pytest.raises(EnvironmentMissing, match="no place to get it from"):
        artifacts.take(forge, Ledger(tmp_path), RUN, lambda commit: True, "runner")
