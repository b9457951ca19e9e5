"""Configures the build; the compile commands are asked for and kept, whatever the project says."""

from __future__ import annotations

from greenlane.lanes import untrusted
from greenlane.lanes.build_tree import renew_if_configured_otherwise
from greenlane.lanes.commands import run_commands
from greenlane.lanes.context import Context, Ended
from greenlane.ledger.store import write_durably
from greenlane.matrix.model import Stage

COMPILE_COMMANDS = "compile_commands.json"


def run(context: Context) -> Ended:
    renew_if_configured_otherwise(context)
    ended = run_commands(context, Stage.CONFIGURE, env={"CMAKE_EXPORT_COMPILE_COMMANDS": "ON"})
    written = untrusted.read_bytes(context.host.build, COMPILE_COMMANDS)
    if written is not None:
        write_durably(context.host.artifacts / COMPILE_COMMANDS, written)
    return ended
