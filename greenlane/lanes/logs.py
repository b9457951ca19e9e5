"""`greenlane logs LANE`: what the lane's stages said when they ran last."""

from __future__ import annotations

import argparse
import shutil
import sys

from greenlane.errors import MatrixError
from greenlane.lanes import plan
from greenlane.lanes.folders import StateFolder
from greenlane.matrix.model import Stage


def command(arguments: argparse.Namespace) -> int:
    from greenlane.matrix import load

    lane = plan.lanes_named(load(arguments.matrix).lanes, [arguments.lane])[0]
    wanted = None if arguments.stage is None else plan.stage_named(arguments.stage, option="--stage")
    folder = StateFolder(arguments.matrix.resolve().parent / ".greenlane").lane(lane.id).logs
    written = [stage for stage in Stage if (folder / f"{stage}.log").is_file() and wanted in (None, stage)]
    if not written:
        what = "no log" if wanted is None else f"no log of {wanted}"
        raise MatrixError(f"lane {lane.id} has left {what} here; `greenlane run {lane.id}` writes it")
    for stage in written:
        if wanted is None:
            print(f"== {stage} ==", flush=True)
        with (folder / f"{stage}.log").open(encoding="utf-8", errors="replace") as file:
            shutil.copyfileobj(file, sys.stdout)
    return 0
