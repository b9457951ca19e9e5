"""A build tree serves later runs only while the lane is configured in the same way."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

from greenlane.lanes.context import Context
from greenlane.ledger.store import write_durably
from greenlane.matrix.model import Stage

STAMP = "configured"  # in the lane's folder, where its commands can't write


def renew_if_configured_otherwise(context: Context) -> None:
    """Empties the build tree and what was installed from it when commands, environment or image have changed.

    CMake keeps old settings in a tree: given another compiler it drops its cache, and every other define with it.
    """
    wanted = _settings(context)
    stamp = context.folder.root / STAMP
    if _read(stamp) != wanted:
        for folder in (context.host.build, context.host.prefix):
            _empty(folder)
        write_durably(stamp, wanted.encode())


def _settings(context: Context) -> str:
    fill = replace(context.placeholders(), jobs=1).fill  # how many at once decides nothing
    stages = context.lane.stages
    commands = [fill(one) for stage in (Stage.CONFIGURE, Stage.BUILD) for one in stages.get(stage, ())]
    environment = {name: fill(value) for name, value in context.lane.env.items()}
    document = json.dumps([commands, environment, context.executor.name, context.image_files], sort_keys=True)
    return hashlib.sha256(document.encode()).hexdigest()


def _read(stamp: Path) -> str | None:
    try:
        return stamp.read_text()
    except OSError:
        return None


def _empty(folder: Path) -> None:
    """What is in it: a container may have the folder itself mounted."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
