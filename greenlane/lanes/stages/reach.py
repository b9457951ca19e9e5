"""Gate: the kernels that must run do, and those that must not don't."""

from __future__ import annotations

from greenlane.lanes.context import Context, Ended
from greenlane.lanes.gate import run_gate
from greenlane.matrix.model import Stage


def run(context: Context) -> Ended:
    from greenlane.gates.reach import run as gate

    return run_gate(context, Stage.REACH, gate)
