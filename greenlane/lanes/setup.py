"""Set-up of the host executor: a virtual environment and the matrix's commands, kept while its inputs are unchanged."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import sys
from pathlib import Path

from greenlane.lanes.commands import run_commands
from greenlane.lanes.context import Context, Ended
from greenlane.ledger.store import write_durably
from greenlane.matrix.globs import first_match
from greenlane.matrix.model import Stage
from greenlane.record.model import Outcome

STAMP = "greenlane-setup.json"


def run(context: Context) -> Ended:
    stamp = context.host.env / STAMP
    wanted = inputs_digest(context)
    if stamped(stamp) == wanted:
        context.executor.start()
        return Ended(Outcome.PASS, "unchanged")
    shutil.rmtree(context.host.env, ignore_errors=True)
    context.executor.start()
    ended = run_commands(context, Stage.IMAGE, setup=True)
    if ended.outcome is Outcome.PASS:
        write_durably(stamp, json.dumps({"inputs": wanted}).encode())
    return ended


def inputs_digest(context: Context) -> str:
    """Hex SHA-256 over the commands, the files that they read, and the interpreter."""
    files = [entry for entry in context.tree.files if first_match(context.lane.setup_inputs, entry[0])]
    interpreter = (sys.version, platform.machine(), sys.base_prefix)
    document = json.dumps([context.lane.stages.get(Stage.IMAGE, ()), files, interpreter, dict(context.lane.env)])
    return hashlib.sha256(document.encode()).hexdigest()


def stamped(stamp: Path) -> str | None:
    try:
        return str(json.loads(stamp.read_text())["inputs"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
