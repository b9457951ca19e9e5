"""Records in a git ref, so that a team without a server shares its baselines by push and fetch."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from greenlane.errors import EnvironmentMissing
from greenlane.ledger.store import MAX_RECORD_BYTES, InvalidRecord, Ledger
from greenlane.record.git import commit_of, git

REF = "refs/greenlane/ledger"
ATTEMPTS = 5
AT_ONCE = 64  # blobs read by one call of git
RECORD_PATH = re.compile(r"records/([0-9a-f]{2})/(\1[0-9a-f]{62})\.json")
IDENTITY = {
    f"GIT_{role}_{what}": text
    for role in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "greenlane"), ("EMAIL", "greenlane@localhost"))
}


def export(ledger: Ledger, repository: Path, ref: str = REF) -> int:
    """Add every record that the ref lacks, as one commit on it. Returns how many were added.

    What a fork's own run said is nobody's baseline, so it is not shared. Another process may move the ref meanwhile:
    the update compares and swaps, and starts again.
    """
    for _ in range(ATTEMPTS):
        tip = commit_of(repository, ref)
        strangers = {row.id for row in ledger.rows(trust="fork")}
        missing = sorted(set(ledger.ids()) - strangers - set(_listed(repository, tip)))
        if not missing:
            return 0
        commit = _commit(repository, tip, {name: _blob(repository, ledger.raw(name)) for name in missing})
        swap = git(repository, "update-ref", ref, commit, tip or "0" * 40, check=False)
        if swap.returncode == 0:
            return len(missing)
    raise EnvironmentMissing(f"{ref}: it moved {ATTEMPTS} times while records were added; try again")


def import_(ledger: Ledger, repository: Path, ref: str = REF) -> tuple[int, list[str]]:
    """Take every record of the ref that the ledger lacks. Returns their number and a line for each one refused."""
    tip = commit_of(repository, ref)
    if tip is None:
        raise EnvironmentMissing(f"{ref} does not exist here; fetch it: git fetch REMOTE {ref}:{ref}")
    here = set(ledger.ids())
    wanted = {name: blob for name, blob in _listed(repository, tip).items() if name not in here}
    taken, refused = 0, []
    for name, content in _contents(repository, wanted):
        try:
            if ledger.put_bytes(content, expected_id=name):
                taken += 1
        except InvalidRecord as error:
            refused.append(f"{ref} record {name[:12]}: {error}")
    return taken, refused


def _listed(repository: Path, tip: str | None) -> dict[str, str]:
    """Record id -> blob, for what has a record's name and size; anything else in the tree is not looked at."""
    if tip is None:
        return {}
    found = {}
    for entry in git(repository, "ls-tree", "-r", "-z", "--long", tip).stdout.split(b"\0"):
        meta, _, path = entry.partition(b"\t")
        match = RECORD_PATH.fullmatch(path.decode(errors="replace"))
        if match and meta.split()[1] == b"blob" and int(meta.split()[3]) <= MAX_RECORD_BYTES:
            found[match[2]] = meta.split()[2].decode()
    return found


def _contents(repository: Path, blobs: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    """(record id, bytes) of each blob, a few at a time so that memory stays small."""
    names = list(blobs)
    for start in range(0, len(names), AT_ONCE):
        yield from _batch(repository, {name: blobs[name] for name in names[start : start + AT_ONCE]})


def _batch(repository: Path, blobs: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    answer = git(repository, "cat-file", "--batch", stdin="\n".join(blobs.values()).encode()).stdout
    position = 0
    for name in blobs:
        end = answer.index(b"\n", position)
        size = int(answer[position:end].split()[2])
        yield name, answer[end + 1 : end + 1 + size]
        position = end + 2 + size


def _blob(repository: Path, content: bytes) -> str:
    return git(repository, "hash-object", "-w", "--stdin", stdin=content).stdout.decode().strip()


def _commit(repository: Path, tip: str | None, blobs: dict[str, str]) -> str:
    lines = "".join(f"100644 {blob}\trecords/{name[:2]}/{name}.json\n" for name, blob in blobs.items())
    with tempfile.TemporaryDirectory() as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        if tip:
            git(repository, "read-tree", tip, env=index)
        git(repository, "update-index", "--add", "--index-info", stdin=lines.encode(), env=index)
        tree = git(repository, "write-tree", env=index).stdout.decode().strip()
    parents = ["-p", tip] if tip else []
    made = git(repository, "commit-tree", tree, *parents, "-m", f"Add {len(blobs)} records", env=IDENTITY)
    return made.stdout.decode().strip()
