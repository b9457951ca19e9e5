"""Scratch work trees of other commits: a base, a merge, a record's head."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from greenlane.errors import LaneRed, MatrixError
from greenlane.lanes.tree import SourceTree, read
from greenlane.record.git import git, git_text

IDENTITY = ("-c", "user.name=greenlane", "-c", "user.email=greenlane@localhost")


@contextmanager
def of_commit(root: Path, state: Path, commit: str, purpose: str) -> Iterator[SourceTree]:
    """The tree of `commit`. It stands at the same path each time, so that incremental builds and caches hold."""
    top, inside = _repository(root)
    place = state / "trees" / purpose
    _remove(top, place)
    git(top, "worktree", "add", "--detach", "--force", str(place), commit)
    try:
        yield read(place / inside)
    finally:
        _remove(top, place)


@contextmanager
def of_merge(root: Path, state: Path, base: str | None) -> Iterator[SourceTree]:
    """The merge of HEAD and the base. A conflict is red: no lane can speak for a tree that doesn't exist."""
    if base is None:
        raise MatrixError("--merge needs --base REV: what should HEAD be merged with?")
    top, _ = _repository(root)
    here = read(root)
    if here.dirty:
        raise MatrixError("--merge runs on commits, and the tree has changes that are not committed")
    done = git(top, "merge-tree", "--write-tree", "--name-only", "-z", base, here.head, check=False)
    first, *conflicts = done.stdout.decode("utf-8", "surrogateescape").split("\0\0")[0].split("\0")
    if done.returncode != 0:
        files = [name for name in conflicts if name]
        raise LaneRed(f"HEAD conflicts with {base[:12]} in {', '.join(files) or 'files that git does not name'}")
    merge_tree = first.strip()
    commit = merge_commit(root, merge_tree, base, here.head)
    with of_commit(root, state, commit, "merge") as tree:
        yield replace(tree, head=here.head, base=base, merge_tree=merge_tree)


def merge_commit(root: Path, merge_tree: str, base: str, head: str) -> str:
    """A commit of the merge that no branch holds."""
    return git_text(root, *IDENTITY, "commit-tree", merge_tree, "-p", base, "-p", head, "-m", "merge probe")


def _repository(root: Path) -> tuple[Path, Path]:
    """The repository's top and where in it the matrix's folder lies."""
    top = Path(git_text(root, "rev-parse", "--show-toplevel"))
    return top, root.resolve().relative_to(top.resolve())


def _remove(top: Path, place: Path) -> None:
    git(top, "worktree", "remove", "--force", str(place), check=False)
    shutil.rmtree(place, ignore_errors=True)
    git(top, "worktree", "prune", check=False)
