"""What the lanes of one call share: matrix, tree, state folder, options, and who watches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from greenlane.executors.watchdog import Watchdog
from greenlane.lanes import policy, worktree
from greenlane.lanes.folders import StateFolder
from greenlane.lanes.progress import Plain, Progress
from greenlane.lanes.tree import SourceTree, read, resolve
from greenlane.ledger.planted import refuse_tracked
from greenlane.ledger.store import Ledger
from greenlane.matrix.model import Lane, Matrix, Stage


@dataclass(frozen=True, slots=True)
class Options:
    executor: str | None = None  # instead of what the matrix says
    until: Stage | None = None
    jobs: int = 1
    keep_going: bool = False
    fresh: bool = False


@dataclass(frozen=True)
class Session:
    matrix: Matrix
    tree: SourceTree
    state: StateFolder
    options: Options
    base: str | None = None  # commit that reds and benchmarks are compared with
    suffix: str = ""  # tells the state of another tree's lanes from that of the checkout's
    image: str | None = None  # hex id of the image that must be used, whatever the Dockerfile says
    progress: Progress = field(default_factory=lambda: Plain(follow=True))
    watchdog: Watchdog | None = None
    cancel: threading.Event = field(default_factory=threading.Event)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.state.ledger)

    def name_of(self, lane: Lane) -> str:
        """The lane's folder name."""
        return lane.id + self.suffix

    def locked(self, lane: Lane) -> AbstractContextManager[None]:
        """The lane's folder, for one greenlane at a time."""
        return self.state.lane(self.name_of(lane)).locked(f"lane {lane.id}")


@contextmanager
def open_session(matrix_file: Path, options: Options, *, base: str | None, merge: bool) -> Iterator[Session]:
    """The session for the tree that holds the matrix, or for its merge with the base in a scratch work tree."""
    from greenlane.matrix import load

    matrix = load(matrix_file)
    root = matrix_file.resolve().parent
    refuse_tracked(root / ".greenlane")
    state = StateFolder(root / ".greenlane")
    state.prepare()
    commit = None if base is None else resolve(root, base)
    if not merge:
        yield Session(policy.judged_by_base(matrix, root, commit), read(root), state, options, commit)
        return
    with worktree.of_merge(root, state.root, commit) as tree:
        merged = policy.judged_by_base(load(tree.path / matrix_file.name), root, commit)
        yield Session(merged, tree, state, options, commit, suffix="@merge")
