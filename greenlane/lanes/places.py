"""Chooses where a lane runs, and lays out its folders there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import greenlane
from greenlane.errors import MatrixError
from greenlane.executors import Executor, Folders
from greenlane.executors import daemon as daemons
from greenlane.executors.docker import TOOL, DockerExecutor, Fence
from greenlane.executors.host import HostExecutor
from greenlane.executors.watchdog import Watchdog
from greenlane.images.build import find
from greenlane.images.inputs import inputs
from greenlane.lanes.folders import LaneFolder
from greenlane.lanes.lease import Card
from greenlane.lanes.session import Session
from greenlane.matrix.model import Lane

HOST, DOCKER, AUTO = "host", "docker", "auto"
AMD_DEVICES = (Path("/dev/kfd"), Path("/dev/dri"))
DEFAULT_PIDS = 8192


def host_folders(session: Session, lane: Lane, folder: LaneFolder) -> Folders:
    """A cache per backend, toolkit and arch set; the compiler's own digest is part of what ccache hashes.

    What a fork's code may have written is never read by another run.
    """
    cache = "-".join([lane.backend, lane.toolkit or "any", *lane.archs, *(["fork"] if trust() == "fork" else [])])
    return folder.seen_from_host(session.tree.path, session.state.root / "ccache" / cache)


def executor_name(session: Session, lane: Lane) -> str:
    """`auto` is docker where a daemon answers and the lane has an image, else host."""
    wanted = session.options.executor or lane.executor
    if wanted == AUTO:
        return DOCKER if lane.image is not None and daemons.find() is not None else HOST
    if wanted == DOCKER and lane.image is None:
        raise MatrixError(f"lane {lane.id}: --executor docker, but the matrix gives it no dockerfile")
    return wanted


def known_image(session: Session, lane: Lane) -> str | None:
    """Hex id of the image that the lane would run in, where it stands already."""
    if session.image is not None or lane.image is None:
        return session.image
    daemon = daemons.find()
    return None if daemon is None else find(daemon.client, inputs(lane.image, session.tree.path))


def say_where(session: Session, lane: Lane) -> None:
    """`auto` says what it chose."""
    if (session.options.executor or lane.executor) == AUTO and executor_name(session, lane) == HOST:
        why = "no container daemon answers" if lane.image is not None else "the lane has no image"
        session.progress.said(f"{lane.id} runs on the host: {why}")


@contextmanager
def executor_for(session: Session, lane: Lane, host: Folders, card: Card | None) -> Iterator[Executor]:
    watchdog = session.watchdog or Watchdog()
    executor: Executor
    if executor_name(session, lane) == DOCKER:
        executor = DockerExecutor(
            daemons.required(), session.name_of(lane), host, fence(lane, card), watchdog, session.cancel
        )
    else:
        executor = HostExecutor(host, watchdog, session.cancel)
    try:
        yield executor
    finally:
        executor.close()


def fence(lane: Lane, card: Card | None) -> Fence:
    """What the matrix and the leased card allow; an emulated lane gets greenlane's own sources to read."""
    devices = tuple(str(path) for path in AMD_DEVICES if path.exists()) if card and card.vendor == "amd" else ()
    return Fence(
        memory_bytes=lane.limits.memory_bytes,
        pids=lane.limits.pids or DEFAULT_PIDS,
        devices=devices,
        nvidia=(str(card.index),) if card and card.vendor == "nvidia" else (),
        read_only={str(Path(greenlane.__file__).parent): str(TOOL / "greenlane")} if lane.emulate else {},
    )


def jobs_per_lane(lanes_at_once: int) -> int:
    return max(1, len(os.sched_getaffinity(0)) // lanes_at_once)


def trust() -> Literal["fork", "runner", "local"]:
    """A pull request from another repository is a fork's; what can't be read is not trusted."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return "local"
    try:
        event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text())
        pull = event.get("pull_request")
        if pull is None:
            return "runner"
        same = pull["head"]["repo"]["full_name"] == pull["base"]["repo"]["full_name"]
        return "runner" if same else "fork"
    except (KeyError, OSError, ValueError, TypeError, AttributeError):
        return "fork"
