"""Would this change merge now? Asked of git without touching a work tree."""

from __future__ import annotations

import re
from pathlib import Path

from greenlane.errors import EnvironmentMissing
from greenlane.record.git import commit_of, git, git_text
from greenlane.review.model import Conflict, MergeProbe

START, END = re.compile(rb"<<<<<<< "), re.compile(rb">>>>>>> ")
MAX_HUNKS = 50


def probe(repository: Path, base: str, head: str, others: tuple[str, ...] = ()) -> MergeProbe:
    """Merge two commits in memory; also the head with each of `others`, refs of other open changes."""
    merge_base = _merge_base(repository, base, head)
    if merge_base is None:
        return MergeProbe(state="unknown", reason=_why_no_merge_base(repository))
    tree, conflicts = _merged(repository, base, head, merge_base)
    return MergeProbe(
        state="conflict" if conflicts else "clean",
        tree=None if conflicts else tree,
        conflicts=conflicts,
        merge_base=merge_base,
        behind=int(git_text(repository, "rev-list", "--count", f"{head}..{base}")),
        others=_against_others(repository, head, others),
    )


def _merge_base(repository: Path, base: str, head: str) -> str | None:
    found = git(repository, "merge-base", base, head, check=False)
    return found.stdout.decode().strip() or None


def _why_no_merge_base(repository: Path) -> str:
    if git_text(repository, "rev-parse", "--is-shallow-repository") == "true":
        return "this clone is shallow and has no merge base; fetch the history: git fetch --unshallow"
    return "head and base share no commit; is --base right, and is the base fetched?"


def _merged(repository: Path, ours: str, theirs: str, merge_base: str) -> tuple[str, tuple[Conflict, ...]]:
    """(tree, conflicts). Exit status 1 means a conflict only when a tree was written: a bad ref gives 1 too."""
    ran = git(repository, "merge-tree", "--write-tree", "--name-only", "-z", ours, theirs, check=False)
    fields = ran.stdout.split(b"\0")
    tree = fields[0].decode().strip()
    if ran.returncode not in {0, 1} or not tree:
        reason = (ran.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"])[0]
        raise EnvironmentMissing(f"git merge-tree: {reason}; greenlane needs git 2.38 or later")
    if ran.returncode == 0:
        return tree, ()
    names = fields[1 : fields.index(b"", 1)]
    changed = set(git_text(repository, "diff", "--name-only", "--no-renames", merge_base, theirs).splitlines())
    conflicts = [_conflict(repository, tree, name.decode("utf-8", "surrogateescape"), changed) for name in names]
    return tree, tuple(conflicts)


def _conflict(repository: Path, tree: str, name: str, changed: set[str]) -> Conflict:
    shown = git(repository, "cat-file", "-p", f"{tree}:{name}", check=False)
    return Conflict(file=name, hunks=_hunks(shown.stdout), own=name in changed)


def _hunks(content: bytes) -> tuple[tuple[int, int], ...]:
    """Line ranges between conflict markers."""
    hunks, start = [], 0
    for number, line in enumerate(content.split(b"\n"), 1):
        if START.match(line):
            start = number
        elif END.match(line) and start:
            hunks.append((start, number))
            start = 0
    return tuple(hunks[:MAX_HUNKS])


def _against_others(repository: Path, head: str, others: tuple[str, ...]) -> dict[str, tuple[Conflict, ...]]:
    found = {}
    for other in others:
        commit = commit_of(repository, other)
        merge_base = _merge_base(repository, commit, head) if commit else None
        if commit and merge_base:
            _, conflicts = _merged(repository, commit, head, merge_base)
            if conflicts:
                found[other] = conflicts
    return found
