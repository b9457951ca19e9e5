"""Gate: speed, judged against a base where there is one; never where tokens are not known to be right."""

from __future__ import annotations

from greenlane.lanes.context import Context, Ended
from greenlane.lanes.gate import run_gate
from greenlane.matrix.model import Stage
from greenlane.record.model import Outcome


def run(context: Context) -> Ended:
    from greenlane.gates.bench import run as gate

    if not context.ended_green(Stage.EXACT):
        return Ended(Outcome.NOT_RUN, "the exact gate is not green in this lane")
    if context.emulated:
        return Ended(Outcome.NOT_RUN, "emulated: an emulator's speed says nothing about the card's")
    return run_gate(context, Stage.BENCH, gate)
