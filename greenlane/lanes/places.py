"""Chooses where a lane runs, and lays out its folders there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from greenlane.executors import Executor, Folders
from greenlane.executors.host import HostExecutor
from greenlane.executors.watchdog import Watchdog
from greenlane.lanes.folders import LaneFolder
from greenlane.lanes.lease import Card
from greenlane.lanes.session import Session
from greenlane.matrix.model import Lane

HOST, DOCKER, AUTO = "host", "docker", "auto"


def host_folders(session: Session, lane: Lane, folder: LaneFolder) -> Folders:
    """A cache per backend, toolkit and arch set; the compiler's own digest is part of what ccache hashes."""
    cache = "-".join([lane.backend, lane.toolkit or "any", *lane.archs])
    return folder.seen_from_host(session.tree.path, session.state.root / "ccache" / cache)


def executor_name(session: Session, lane: Lane) -> str:
    return HOST


def known_image(session: Session, lane: Lane) -> str | None:
    """Hex id of the image that the lane would run in, where it stands already."""
    return None


@contextmanager
def executor_for(session: Session, lane: Lane, host: Folders, card: Card | None) -> Iterator[Executor]:
    watchdog = session.watchdog or Watchdog()
    executor: Executor = HostExecutor(host, watchdog, session.cancel)
    try:
        yield executor
    finally:
        executor.close()


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
