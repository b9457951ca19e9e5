"""Records as immutable files named by the SHA-256 of their bytes, beside an index that is only ever a copy of them."""

from __future__ import annotations

import hashlib
import json
import math
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from greenlane.errors import EnvironmentMissing, MatrixError
from greenlane.ledger import admission
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
        return sorted(_record_names(self.root / "records"))

    def mend(self) -> int:
        """Make the index agree with the files that are there: after a crash, or an edit by hand. Returns differences.

        Compares names only; what a row says is compared with its file by whoever relies on it.
        """
        there, known = set(self.ids()), {str(row[0]) for row in self.index.select("select id from records")}
        lost = there - known
        for record_id in lost:
            try:
                self.index.add(record_id, self.get(record_id))
            except InvalidRecord:
                continue  # a damaged file speaks for nothing; `reindex` names it
        if known - there:
            self.index.remove(sorted(known - there))
        return len(lost) + len(known - there)

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


def _record_names(folder: Path) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        if parent != str(folder):
            yield from (name[:-5] for name in names if name.endswith(".json"))


def canonical(record: Record) -> bytes:
    """The one byte string that stands for this record: its id is computed over it. What JSON cannot say, an infinite
    measurement or half a character, becomes null or a question mark."""
    document = record.model_dump(mode="json", by_alias=True)
    try:
        text = _dumped(document)
    except ValueError:
        text = _dumped(_finite(document))
    return text.encode("utf-8", "replace") + b"\n"


def _dumped(document: object) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parse(content: bytes, *, source: str = "record", expected_id: str | None = None) -> Record:
    """The record in these bytes, which may come from a stranger. Raises InvalidRecord with one line."""
    if len(content) > MAX_RECORD_BYTES:
        raise InvalidRecord(f"{source}: {len(content)} bytes, more than the {MAX_RECORD_BYTES} that a record may have")
    if expected_id is not None and hashlib.sha256(content).hexdigest() != expected_id:
        raise InvalidRecord(f"{source}: its content does not match its name; it was changed after it was written")
    try:
        document = json.loads(content)
        record = Record.model_validate(upgraded(document))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidRecord(f"{source}: {_one_line(where) or 'document'}: {first['msg']}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidRecord(f"{source}: not a record: {_one_line(str(error))}") from error
    why_not = admission.unfit(content, document) or admission.objection(record)
    if why_not is not None:
        raise InvalidRecord(f"{source}: {why_not}")
    return record


def _one_line(text: str) -> str:
    """Words of a stranger's file, fit for a terminal."""
    return ascii(text)[1:-1][:200]


def write_durably(path: Path, content: bytes) -> None:
    """Write, fsync, rename: after a crash the file is whole or absent. Its mode is that of any new file."""
    part = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise EnvironmentMissing(f"{path}: cannot be written: {error.strerror}; free space or mend rights") from error
