"""Takes records out of a folder that a stranger's run uploaded: every byte of it is hostile."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from greenlane.errors import MatrixError
from greenlane.ledger.store import MAX_RECORD_BYTES, InvalidRecord, Ledger, canonical, parse

MAX_FILES = 20_000
MAX_TOTAL_BYTES = 512 * 1024 * 1024

Trust = Literal["fork", "runner", "local"]


def take(
    ledger: Ledger, folder: Path, trust: Trust | None, commits: frozenset[str] | None = None
) -> tuple[int, list[str]]:
    """Store each record below the folder, marked with `trust` (default: fork). Returns their number and refusals.

    A record says of itself how far it is to be trusted; here only the caller's word counts. With `commits`, records
    of other commits are refused: a run may speak for its own change alone.
    """
    if not folder.is_dir():
        raise MatrixError(f"{folder}: no such folder; give the one that holds the downloaded records")
    taken, total = 0, 0
    refused: list[str] = []
    for name, path in _files(folder, refused):
        try:
            content = _read(path, name)
            total += len(content)
            if total > MAX_TOTAL_BYTES:
                refused.append(f"{name}: more than {MAX_TOTAL_BYTES} bytes of records; not read from here on")
                break
            record = parse(content, source=name)
            if commits is not None and record.head not in commits:
                raise InvalidRecord(f"{name}: it is of commit {record.head[:12]}, which this run was not to speak for")
            ledger.put_bytes(canonical(record.model_copy(update={"trust": trust or "fork"})))
            taken += 1
        except InvalidRecord as error:
            refused.append(str(error))
    return taken, refused


def _files(folder: Path, refused: list[str]) -> Iterator[tuple[str, Path]]:
    """(shown name, path) of each .json file, links to folders not followed."""
    count = 0
    for parent, folders, names in os.walk(folder, followlinks=False):
        folders.sort()
        for file in sorted(names):
            if not file.endswith(".json"):
                continue
            count += 1
            if count > MAX_FILES:
                refused.append(f"{folder}: more than {MAX_FILES} files; not read from here on")
                return
            path = Path(parent) / file
            yield ascii(str(path.relative_to(folder)))[1:-1][:200], path


def _read(path: Path, name: str) -> bytes:
    """The bytes of a regular file, never through a link, never more than a record may have."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise InvalidRecord(f"{name}: not a plain readable file") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InvalidRecord(f"{name}: not a plain readable file")
        return file.read(MAX_RECORD_BYTES + 1)
