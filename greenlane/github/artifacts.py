"""Records out of a run's artifacts: archives from strangers, read as bytes, never unpacked to disk."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from greenlane.errors import EnvironmentMissing
from greenlane.github.account import Account
from greenlane.github.forge import Artifact, Forge
from greenlane.ledger.artifacts import Trust
from greenlane.ledger.store import MAX_RECORD_BYTES, InvalidRecord, Ledger, canonical, parse

PREFIX = "records-"  # of the artifacts that hold records; others are not looked at
MAX_ARTIFACTS = 1_000
MAX_ARCHIVE_BYTES = 64 * 1024 * 1024
MAX_MEMBERS = 1_000  # of one archive
MAX_TOTAL_BYTES = 256 * 1024 * 1024  # of all archives together, packed and unpacked
MAX_RECORDS = 5_000
CHUNK = 64 * 1024
SpeaksFor = Callable[[str], bool]


@dataclass
class Taken:
    """What came of a run's artifacts."""

    records: int = 0
    bytes: int = 0  # unpacked
    downloaded: int = 0
    refused: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return self.records >= MAX_RECORDS or self.bytes > MAX_TOTAL_BYTES or self.downloaded > MAX_TOTAL_BYTES


def take(forge: Forge, ledger: Ledger, run_id: int, speaks_for: SpeaksFor, trust: Trust) -> Taken:
    """Store the run's records of commits that it speaks for, marked with `trust`; their own word counts nothing."""
    taken = Taken()
    for artifact in forge.artifacts(run_id, MAX_ARTIFACTS):
        if not artifact.name.startswith(PREFIX):
            continue
        if taken.full:
            taken.refused.append("the run has more records than are read; the rest is left alone")
            break
        name = ascii(artifact.name)[1:-1][:100]
        if artifact.expired or artifact.size > MAX_ARCHIVE_BYTES:
            why = "has expired" if artifact.expired else f"is larger than {MAX_ARCHIVE_BYTES} bytes"
            taken.refused.append(f"artifact {name}: {why}")
            continue
        content = download(forge.account, forge.repository, artifact)
        taken.downloaded += len(content)
        take_archive(ledger, content, name, speaks_for, trust, taken)
    return taken


def take_archive(ledger: Ledger, archive: bytes, name: str, speaks_for: SpeaksFor, trust: Trust, taken: Taken) -> None:
    """The records of one archive. Whatever is not a record of such a commit is refused with a line."""
    for member, content in _members(archive, name, taken):
        try:
            taken.bytes += len(content)
            if taken.full:
                raise InvalidRecord(f"{member}: the run has more records than are read")
            record = parse(content, source=member)
            if not speaks_for(record.head):
                raise InvalidRecord(f"{member}: it is of commit {record.head[:12]}, for which this run can't speak")
            taken.ids.append(ledger.put_bytes(canonical(record.model_copy(update={"trust": trust}))))
            taken.records += 1
        except InvalidRecord as error:
            taken.refused.append(str(error))


def _members(archive: bytes, name: str, taken: Taken) -> Iterator[tuple[str, bytes]]:
    """(shown name, content) of each .json file. No name is ever used as a path, no size in the archive believed."""
    try:
        opened = zipfile.ZipFile(io.BytesIO(archive))
        entries = opened.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        taken.refused.append(f"artifact {name}: no archive: {error}")
        return
    if len(entries) > MAX_MEMBERS:
        taken.refused.append(f"artifact {name}: {len(entries)} files; only the first {MAX_MEMBERS} are read")
    for entry in entries[:MAX_MEMBERS]:
        if entry.is_dir() or not entry.filename.endswith(".json"):
            continue
        shown = f"{name}/{ascii(entry.filename)[1:-1][-100:]}"
        if taken.full:
            return
        try:
            with opened.open(entry) as file:
                yield shown, file.read(MAX_RECORD_BYTES + 1)
        except Exception as error:  # zlib.error, lzma.LZMAError and whatever a later module raises on hostile bytes
            taken.refused.append(f"{shown}: can't be unpacked: {type(error).__name__}")


def download(account: Account, repository: str, artifact: Artifact) -> bytes:
    """The archive's bytes. GitHub answers with an address at another host, which must not get the token."""
    import requests

    url = f"{account.api}/repos/{repository}/actions/artifacts/{artifact.id}/zip"
    headers = {"Authorization": f"Bearer {account.token}", "Accept": "application/vnd.github+json"}
    what = f"artifact {artifact.id}"
    try:
        answer = requests.get(url, headers=headers, allow_redirects=False, timeout=30)
        place = answer.headers.get("location", "")
        if answer.status_code not in {302, 307} or not place.startswith(("https://", f"{account.api}/")):
            raise EnvironmentMissing(
                f"{what}: {account.host} answers {answer.status_code}, and no place to get it from"
            )
        with requests.get(place, timeout=60, stream=True) as content:
            if content.status_code != 200:
                raise EnvironmentMissing(f"{what}: its store answers {content.status_code}; try again")
            return _limited(content.iter_content(CHUNK), what)
    except requests.RequestException as error:
        raise EnvironmentMissing(f"{what}: {account.masked(type(error).__name__)}; check the network") from None


def _limited(chunks: Iterator[bytes], what: str) -> bytes:
    kept = bytearray()
    for chunk in chunks:
        kept += chunk
        if len(kept) > MAX_ARCHIVE_BYTES:
            raise EnvironmentMissing(f"{what}: larger than {MAX_ARCHIVE_BYTES} bytes, whatever its size was said to be")
    return bytes(kept)
