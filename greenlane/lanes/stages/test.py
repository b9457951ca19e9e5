"""Runs the project's own tests on what was built."""

from __future__ import annotations

from greenlane.lanes.commands import run_commands
from greenlane.lanes.context import Context, Ended
from greenlane.matrix.model import Stage


def run(context: Context) -> Ended:
    return run_commands(context, Stage.TEST, on_card=True)
