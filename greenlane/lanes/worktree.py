"""Scratch work trees of other commits: a base, a merge, a record's head."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from greenlane.errors import EnvironmentMissing, LaneRed, MatrixError
from greenlane.lanes.tree import SourceTree, read

MATRIX = "matrix.yaml"


@contextmanager
def of_commit(root: Path, state: Path, commit: str, purpose: str) -> Iterator[SourceTree]:
    """The tree of `commit`. It stands at the same path each time, so that incremental builds and caches hold."""
    top, inside = _repository(root)
    place = state / "trees" / purpose
    _remove(top, place)
    _git(top, "worktree", "add", "--detach", "--force", str(place), commit)
    try:
        yield read(place / inside)
    finally:
        _remove(top, place)


@contextmanager
def of_merge(root: Path, state: Path, base: str | None) -> Iterator[tuple[SourceTree, Path]]:
    """The merge of HEAD and the base. A conflict is red: no lane can speak for a tree that doesn't exist."""
    if base is None:
        raise MatrixError("--merge needs --base REV: what should HEAD be merged with?")
    top, _ = _repository(root)
    here = read(root)
    if here.dirty:
        raise MatrixError("--merge runs on commits, and the tree has changes that are not committed")
    done = _run(top, "merge-tree", "--write-tree", "--name-only", "-z", base, here.head)
    if done.returncode != 0:
        files = [name for name in done.stdout.split("\0\0")[0].split("\0")[1:] if name]
        raise LaneRed(f"HEAD conflicts with {base[:12]} in {', '.join(files) or 'files that git does not name'}")
    merge_tree = done.stdout.split("\0")[0].strip()
    commit = _git(top, "commit-tree", merge_tree, "-p", base, "-p", here.head, "-m", "merge probe").strip()
    with of_commit(root, state, commit, "merge") as tree:
        yield replace(tree, head=here.head, base=base, merge_tree=merge_tree), tree.path / MATRIX


def _repository(root: Path) -> tuple[Path, Path]:
    """The repository's top and where in it the matrix's folder lies."""
    top = Path(_git(root, "rev-parse", "--show-toplevel").strip())
    return top, root.resolve().relative_to(top.resolve())


def _remove(top: Path, place: Path) -> None:
    with contextlib.suppress(EnvironmentMissing):
        _git(top, "worktree", "remove", "--force", str(place))
    shutil.rmtree(place, ignore_errors=True)
    with contextlib.suppress(EnvironmentMissing):
        _git(top, "worktree", "prune")


def _git(top: Path, *arguments: str) -> str:
    done = _run(top, *arguments)
    if done.returncode != 0:
        raise EnvironmentMissing(f"git {arguments[0]}: {done.stderr.strip().splitlines()[-1:] or ['failed']}")
    return done.stdout


def _run(top: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    identity = ["-c", "user.name=greenlane", "-c", "user.email=greenlane@localhost"]
    try:
        return subprocess.run(["git", *identity, *arguments], cwd=top, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise EnvironmentMissing("git is not installed, and another commit's tree is needed") from error
