"""Would this change merge now? Asked of git without touching a work tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from greenlane.errors import EnvironmentMissing
from greenlane.record.git import commit_of, git, git_text
from greenlane.review import change as changes
from greenlane.review.change import Change
from greenlane.review.model import Conflict, MergeProbe

START, MIDDLE, END = re.compile(rb"<<<<<<< "), re.compile(rb"=======$"), re.compile(rb">>>>>>> ")
MAX_HUNKS = 50
MAX_OTHERS = 200
MAX_PLACES = 1_000  # of a conflicting block in its file
MAX_BYTES = 4 * 1024 * 1024  # of a file whose conflicts are looked for line by line


def probe(repository: Path, base: str, head: str, others: tuple[str, ...] = ()) -> MergeProbe:
    """Merge two commits in memory; also the head with each of `others`, refs of other open changes."""
    merge_base = _merge_base(repository, base, head)
    if merge_base is None:
        return MergeProbe(state="unknown", reason=_why_no_merge_base(repository))
    tree, conflicts = _merged(repository, base, head, merge_base)
    found, unknown = _against_others(repository, base, head, others)
    return MergeProbe(
        state="conflict" if conflicts else "clean",
        tree=None if conflicts else tree,
        conflicts=conflicts,
        merge_base=merge_base,
        behind=int(git_text(repository, "rev-list", "--count", f"{head}..{base}")),
        others=found,
        unknown_others=unknown,
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
    names = [name.decode("utf-8", "surrogateescape") for name in fields[1 : fields.index(b"", 1)]]
    change = changes.read(repository, merge_base, theirs)
    return tree, tuple(_conflict(repository, tree, theirs, name, change) for name in names)


def _conflict(repository: Path, tree: str, head: str, name: str, change: Change) -> Conflict:
    """The file, and where its conflicting lines stand in the head."""
    merged, mine = _content(repository, f"{tree}:{name}"), _content(repository, f"{head}:{name}")
    hunks = tuple(islice(_hunks(merged.split(b"\n"), mine.split(b"\n")), MAX_HUNKS))
    own = any(change.holds(name, first, last) for first, last in hunks) if hunks else name in change.files
    readable = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return Conflict(file=readable, hunks=hunks, own=own, gone=not mine)


def _content(repository: Path, what: str) -> bytes:
    size = git(repository, "cat-file", "-s", what, check=False).stdout.strip()
    if not size or int(size) > MAX_BYTES:
        return b""
    return git(repository, "cat-file", "blob", what, check=False).stdout


def _hunks(merged: list[bytes], mine: list[bytes]) -> Iterator[tuple[int, int]]:
    """Ranges of the head's lines, from one, that stand between ======= and >>>>>>> of the merged file."""
    kept = 0  # lines of the merge that would be there if the head's side of each conflict were taken
    side, drift = "both", 0
    block: list[bytes] = []
    for line in merged:
        if side == "both" and START.match(line):
            side = "base"
        elif side == "base" and MIDDLE.match(line):
            side, block = "head", []
        elif side == "head" and END.match(line):
            found = _nearest(block, mine, kept - len(block) + drift)
            if found is not None:
                drift = found - (kept - len(block))
                yield found + 1, found + max(1, len(block))
            side = "both"
        elif side != "base":
            kept += 1
            if side == "head":
                block.append(line)


def _nearest(block: list[bytes], lines: list[bytes], expected: int) -> int | None:
    """Where the block stands in the file; of several places the one nearest to where it is expected."""
    if not block:
        return None
    ends = range(len(lines) - len(block) + 1)
    places = (at for at in ends if lines[at] == block[0] and lines[at : at + len(block)] == block)
    return min(islice(places, MAX_PLACES), key=lambda at: abs(at - expected), default=None)


def _against_others(
    repository: Path, base: str, head: str, others: tuple[str, ...]
) -> tuple[dict[str, tuple[Conflict, ...]], tuple[str, ...]]:
    """(conflicts by ref, refs that cannot be asked). The head and what is merged already are no others."""
    found: dict[str, tuple[Conflict, ...]] = {}
    unknown: list[str] = []
    for other in _refs(repository, others):
        commit = commit_of(repository, other)
        merge_base = _merge_base(repository, commit, head) if commit else None
        if commit is None or merge_base is None:
            unknown.append(other)
        elif commit != head and not _is_ancestor(repository, commit, base):
            _, conflicts = _merged(repository, commit, head, merge_base)
            if conflicts:
                found[other] = conflicts
    return found, tuple(unknown)


def _refs(repository: Path, patterns: tuple[str, ...]) -> list[str]:
    """The refs that the patterns name, each once; what holds no wildcard stays as it is."""
    names: dict[str, None] = {}
    for pattern in patterns:
        if set(pattern) & set("*?["):
            names |= dict.fromkeys(git_text(repository, "for-each-ref", "--format=%(refname)", pattern).split())
        else:
            names[pattern] = None
    return list(names)[:MAX_OTHERS]


def _is_ancestor(repository: Path, commit: str, of: str) -> bool:
    return git(repository, "merge-base", "--is-ancestor", commit, of, check=False).returncode == 0
