"""Records as immutable files named by the SHA-256 of their bytes, beside an index that is only ever a copy of them."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from greenlane.errors import EnvironmentMissing, MatrixError
from greenlane.ledger.index import Index, Row
from greenlane.record.model import Record
from greenlane.record.upgrade import upgraded

MAX_RECORD_BYTES = 8 * 1024 * 1024


class InvalidRecord(MatrixError):
    """Bytes that are no record: too large, not JSON, of another schema, or not what their name says."""


class Ledger:
    """The records under one folder. Any number of processes may read and write it at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.index = Index(root / "index.sqlite", rebuild=self._every_record)

    def put(self, record: Record) -> str:
        """Store the record, all or nothing, and return its id; a record that is there already stays as it is."""
        return self.put_bytes(canonical(record))

    def put_bytes(self, content: bytes, *, expected_id: str | None = None) -> str:
        record = parse(content, expected_id=expected_id)
        record_id = hashlib.sha256(content).hexdigest()
        path = self._path(record_id)
        if not path.exists():
            write_durably(path, content)
        self.index.add(record_id, record)
        return record_id

    def get(self, record_id: str) -> Record:
        """The record with this id or unique prefix of six or more digits. Raises InvalidRecord, saying why not."""
        full = self._complete(record_id)
        return parse(self.raw(full), source=f"record {full[:12]}", expected_id=full)

    def raw(self, record_id: str) -> bytes:
        try:
            return self._path(record_id).read_bytes()
        except OSError as error:
            raise InvalidRecord(f"record {record_id[:12]}: cannot be read: {error.strerror or error}") from error

    def rows(self, **where: str) -> list[Row]:
        """Index rows, newest first, filtered by equality: lane, head, outcome, trust, tree, lane_digest."""
        return self.index.rows(**where)

    def records(self, **where: str) -> Iterator[tuple[str, Record]]:
        """(id, record) for `rows(**where)`; a file that has been damaged since is left out, `damaged()` names it."""
        for row in self.rows(**where):
            try:
                yield row.id, self.get(row.id)
            except InvalidRecord:
                continue

    def ids(self) -> list[str]:
        return sorted(path.stem for path in (self.root / "records").glob("??/*.json"))

    def reindex(self) -> tuple[int, list[str]]:
        """Rebuild the index from the files. Returns how many records it holds and a line for each damaged file."""
        damaged: list[str] = []
        count = self.index.replace(self._every_record(damaged))
        return count, damaged

    def remove(self, record_ids: list[str]) -> None:
        self.index.remove(record_ids)
        for record_id in record_ids:
            self._path(record_id).unlink(missing_ok=True)

    def _every_record(self, damaged: list[str] | None = None) -> Iterator[tuple[str, Record]]:
        for record_id in self.ids():
            try:
                yield record_id, self.get(record_id)
            except InvalidRecord as error:
                if damaged is not None:
                    damaged.append(str(error))

    def _path(self, record_id: str) -> Path:
        return self.root / "records" / record_id[:2] / f"{record_id}.json"

    def _complete(self, record_id: str) -> str:
        digits = record_id.lower()
        if not 6 <= len(digits) <= 64 or set(digits) - set("0123456789abcdef"):
            raise InvalidRecord(f"{record_id!r} is no record id (6 to 64 hex digits); `greenlane ledger ls` shows them")
        if len(digits) == 64:
            return digits
        found = [path.stem for path in (self.root / "records" / digits[:2]).glob(f"{digits}*.json")]
        if len(found) != 1:
            what = "no record" if not found else f"{len(found)} records"
            raise InvalidRecord(f"{what} with the id {record_id!r}; `greenlane ledger ls` shows them")
        return found[0]


def canonical(record: Record) -> bytes:
    """The one byte string that stands for this record: its id is computed over it."""
    document = record.model_dump(mode="json", by_alias=True)
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def parse(content: bytes, *, source: str = "record", expected_id: str | None = None) -> Record:
    """The record in these bytes, which may come from a stranger. Raises InvalidRecord with one line."""
    if len(content) > MAX_RECORD_BYTES:
        raise InvalidRecord(f"{source}: {len(content)} bytes, more than the {MAX_RECORD_BYTES} that a record may have")
    if expected_id is not None and hashlib.sha256(content).hexdigest() != expected_id:
        raise InvalidRecord(f"{source}: its content does not match its name; it was changed after it was written")
    try:
        return Record.model_validate(upgraded(json.loads(content)))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidRecord(f"{source}: {where or 'document'}: {first['msg']}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidRecord(f"{source}: not a record: {error}") from error


def write_durably(path: Path, content: bytes) -> None:
    """Write, fsync, rename: after a crash the file is whole or absent."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".part", delete=False) as part:
            try:
                part.write(content)
                part.flush()
                os.fsync(part.fileno())
                Path(part.name).rename(path)
            except BaseException:
                Path(part.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise EnvironmentMissing(f"{path}: cannot be written: {error.strerror}; free space or mend rights") from error
