"""`greenlane reproduce RECORD`: the same commit in a scratch work tree, the same image, the same inputs, once more."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from greenlane.errors import EnvironmentMissing, MatrixError
from greenlane.executors import daemon as daemons
from greenlane.executors.watchdog import Watchdog
from greenlane.lanes import pipeline, progress, resume, summary, worktree
from greenlane.lanes.folders import StateFolder
from greenlane.lanes.interrupt import cancelled_by_signals
from greenlane.lanes.places import DOCKER, HOST
from greenlane.lanes.session import Options, Session
from greenlane.lanes.tree import SourceTree
from greenlane.ledger.store import Ledger
from greenlane.matrix.model import Lane
from greenlane.record.model import Outcome, Record

SUFFIX = "@reproduce"


def command(arguments: argparse.Namespace) -> int:
    root = arguments.matrix.resolve().parent
    state = StateFolder(root / ".greenlane")
    record = Ledger(state.ledger).get(arguments.record)
    if record.reused_from is not None:
        record = Ledger(state.ledger).get(record.reused_from)
    state.prepare()
    console = progress.console()
    if record.digests.greenlane != resume.greenlane_digest():
        console.print("note: another greenlane made that record; its rules may have differed")
    with _session(record, arguments.matrix, root, state) as (session, lane), session.locked(lane):
        again = pipeline.run(session, lane)
    summary.show([again], console)
    assert again.record is not None
    differences = list(compare(record, again.record))
    for line in differences:
        console.print(line, markup=False)
    console.print("reproduced" if not differences else "not reproduced", style="green" if not differences else "red")
    return 1 if differences else 0


@contextmanager
def _session(record: Record, matrix_file: Path, root: Path, state: StateFolder) -> Iterator[tuple[Session, Lane]]:
    from greenlane.matrix import load

    if record.dirty:
        raise MatrixError("that record was made of changes that are in no commit, so nothing can bring them back")
    with ExitStack() as stack:
        tree = stack.enter_context(_tree(record, root, state))
        matrix = load(tree.path / matrix_file.name)
        lane = matrix.lane(record.lane)
        if lane is None:
            raise MatrixError(f"the matrix of {record.head[:12]} has no lane {record.lane}")
        executor = record.device.executor if record.device else HOST
        watchdog = Watchdog()
        stack.callback(watchdog.close)
        cancel = stack.enter_context(cancelled_by_signals())
        ran = [stage.stage for stage in record.stages if stage.outcome not in (Outcome.BLOCKED, Outcome.NOT_RUN)]
        options = Options(executor=executor, until=ran[-1] if ran else None, fresh=True)
        yield (
            Session(
                matrix, tree, state, options, suffix=SUFFIX, watchdog=watchdog, cancel=cancel,
                image=_image(record) if executor == DOCKER else None,
            ),
            lane,
        )  # fmt: skip


@contextmanager
def _tree(record: Record, root: Path, state: StateFolder) -> Iterator[SourceTree]:
    if record.merge_tree is None:
        with worktree.of_commit(root, state.root, record.head, "reproduce") as tree:
            yield tree
        return
    commit = worktree.merge_commit(root, record.merge_tree, record.base or record.head, record.head)
    with worktree.of_commit(root, state.root, commit, "reproduce") as tree:
        yield replace(tree, head=record.head, base=record.base, merge_tree=record.merge_tree)


def _image(record: Record) -> str:
    import docker

    image = record.digests.image
    if image is None:
        raise EnvironmentMissing("the record names no image")
    try:
        daemons.required().client.inspect_image(f"sha256:{image}")
    except docker.errors.ImageNotFound:
        raise EnvironmentMissing(
            f"the record's image {image[:12]} is not on this daemon; load it, or run the lane"
        ) from None
    return image


def compare(before: Record, after: Record) -> Iterator[str]:
    """What differs between two runs of the same inputs."""
    if before.digests.tree != after.digests.tree or before.digests.lane != after.digests.lane:
        yield "what went in differs: the lane or its part of the tree"
    then = {stage.stage: stage for stage in before.stages}
    for stage in after.stages:
        was = then.get(stage.stage)
        if was is None or was.outcome is not stage.outcome:
            yield f"{stage.stage}: {stage.outcome}, was {was.outcome if was else 'absent'}"
        elif _error(was.first_error) != _error(stage.first_error):
            yield f"{stage.stage}: red for another reason than before"
    if before.toolchain != after.toolchain:
        yield f"toolchain: {after.toolchain}, was {before.toolchain}"


def _error(error: object) -> object:
    return getattr(error, "fingerprint", None)
