"""What git knows of the matrix's folder: its files, and what changed since a revision."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from greenlane.errors import EnvironmentMissing, MatrixError

# A stranger's repository may not make git run its programs.
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false")


@dataclass(slots=True)
class Tree:
    """A folder inside a work tree; paths are relative to the folder, `../` leads out of it."""

    folder: Path
    prefix: str  # of the folder inside the work tree: "" or "sub/folder/"
    files: tuple[str, ...]  # tracked and untracked, without the ignored

    @classmethod
    def at(cls, folder: Path) -> Tree:
        prefix = _run(folder, "rev-parse", "--show-prefix").strip()
        listed = _run(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
        return cls(folder, prefix, tuple(sorted(path for path in listed.split("\0") if path)))

    def base(self, rev: str) -> str:
        """The commit that the change began at: the merge base of the revision and HEAD."""
        if rev.startswith("-"):
            raise MatrixError(f"--changed-since: {rev!r} is no revision")
        try:
            commit = _run(self.folder, "rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}").strip()
        except MatrixError:
            raise MatrixError(f"--changed-since: git knows no commit {rev!r} here; fetch it, or name another") from None
        try:
            return _run(self.folder, "merge-base", commit, "HEAD").strip()
        except MatrixError:
            return commit  # unrelated or shallow: comparing with the commit itself selects too much, never too little

    def changes(self, base: str) -> list[str]:
        """Files that differ between the base and the work tree, both names of a renamed one."""
        diff = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", base)
        changed = set(_run(self.folder, *diff).split("\0"))
        untracked = _run(self.folder, "ls-files", "-z", "--others", "--exclude-standard", "--full-name", ":/")
        changed.update(untracked.split("\0"))
        return sorted(os.path.relpath(path, self.prefix or ".") for path in changed if path)

    def file_at(self, commit: str, name: str) -> bytes:
        """A file of the folder as it was."""
        return _run_bytes(self.folder, "show", f"{commit}:{self.prefix}{name}")


def _run(folder: Path, *arguments: str) -> str:
    return os.fsdecode(_run_bytes(folder, *arguments))


def _run_bytes(folder: Path, *arguments: str) -> bytes:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run([*_GIT, *arguments], cwd=folder, env=environment, capture_output=True, check=False)
    except FileNotFoundError:
        raise EnvironmentMissing("--changed-since needs git; install it") from None
    if done.returncode:
        first = os.fsdecode(done.stderr).strip().splitlines()[:1]
        raise MatrixError(f"--changed-since: git {arguments[0]} failed{f': {first[0]}' if first else ''}")
    return done.stdout
