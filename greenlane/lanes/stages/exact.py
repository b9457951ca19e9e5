"""Gate: the same token ids on every arm."""

from __future__ import annotations

from greenlane.lanes.context import Context, Ended
from greenlane.lanes.gate import run_gate
from greenlane.matrix.model import Stage


def run(context: Context) -> Ended:
    from greenlane.gates.exact import run as gate

    return run_gate(context, Stage.EXACT, gate)
