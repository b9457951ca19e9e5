"""What git says about the tree that a lane builds: commit, cleanliness, and a digest of its content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from greenlane.errors import EnvironmentMissing, MatrixError
from greenlane.lanes.folders import OWN
from greenlane.record.git import commit_of, git

NO_COMMIT = "0" * 40  # a folder that is no git repository
HEADERS = (".h", ".hh", ".hpp", ".hxx", ".cuh", ".hip.h", ".inc", ".inl", ".ipp", ".tpp")


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A checked-out tree. `files` maps each path that counts to the hash of its content."""

    path: Path
    head: str
    dirty: bool
    files: tuple[tuple[str, str], ...]
    base: str | None = None
    merge_tree: str | None = None

    def digest(self) -> str:
        """Hex SHA-256 over all files."""
        return digest_of(self.files)

    def headers_digest(self) -> str:
        return digest_of([entry for entry in self.files if entry[0].endswith(HEADERS)])


def read(path: Path) -> SourceTree:
    """The tree under `path`, untracked files included and ignored ones left out."""
    if _git(path, "rev-parse", "--git-dir") is None:
        return SourceTree(path, NO_COMMIT, True, tuple(_every_file(path)))
    head = (_git(path, "rev-parse", "--verify", "HEAD") or NO_COMMIT).strip()
    tracked = _index(path)
    changed = _changed(path)
    files = {name: blob for name, blob in tracked.items() if name not in changed}
    files |= {name: digest for name in changed if (digest := _content(path / name)) is not None}
    return SourceTree(path, head, bool(changed), tuple(sorted(files.items())))


def resolve(path: Path, revision: str) -> str:
    """The commit that `revision` names."""
    commit = commit_of(path, revision)
    if commit is None:
        raise MatrixError(f"--base {revision}: no such commit in {path}; fetch it, or name another")
    return commit


def _index(path: Path) -> dict[str, str]:
    entries = (_git(path, "ls-files", "-s", "-z") or "").split("\0")
    rows = (entry.split("\t", 1) for entry in entries if entry)
    return {name: f"{meta.split()[0]} {meta.split()[1]}" for meta, name in rows}


def _changed(path: Path) -> set[str]:
    """Tracked files that differ from HEAD, and untracked ones that are not ignored; relative to `path`."""
    against_head = _git(path, "diff", "--name-only", "-z", "--no-renames", "--relative", "HEAD") or ""
    untracked = _git(path, "ls-files", "--others", "--exclude-standard", "-z") or ""
    names = {name for name in (against_head + untracked).split("\0") if name}
    return {name for name in names if name.split("/")[0] not in OWN}


def _content(path: Path) -> str | None:
    """Mode and blob id as git would write them, so that committing a tested tree doesn't change its digest."""
    try:
        if path.is_symlink():
            return f"120000 {_blob(str(path.readlink()).encode('utf-8', 'surrogateescape'))}"
        mode = "100755" if os.access(path, os.X_OK) else "100644"
        return f"{mode} {_blob(path.read_bytes())}"
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None
    except OSError as error:
        raise EnvironmentMissing(f"cannot read {path}: {error.strerror}") from error


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _every_file(path: Path) -> list[tuple[str, str]]:
    found = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in OWN)
        for name in names:
            file = Path(folder) / name
            if (digest := _content(file)) is not None:
                found.append((file.relative_to(path).as_posix(), digest))
    return sorted(found)


def _git(path: Path, *arguments: str) -> str | None:
    """What git prints, or None where it refuses or there is none."""
    try:
        done = git(path, *arguments, env={"GIT_OPTIONAL_LOCKS": "0"}, check=False)
    except EnvironmentMissing:
        return None
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None


def digest_of(entries: Sequence[tuple[str, str]]) -> str:
    text = "\0".join(f"{name}\0{content}" for name, content in entries)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
