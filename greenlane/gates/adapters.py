"""Puts an oracle's adapter where the lane can run it."""

from __future__ import annotations

from importlib import resources

from greenlane.gates.commands import quoted
from greenlane.gates.contract import GateContext
from greenlane.matrix.gates import Oracle


def adapter(oracle: Oracle, context: GateContext) -> str:
    """The command without its prompts. An adapter is one script, so that it runs wherever its package is."""
    assert oracle.adapter is not None and oracle.model is not None  # the matrix was refused otherwise
    script = f"oracle_{oracle.adapter}.py"
    text = resources.files("greenlane.gates.oracles").joinpath(f"{oracle.adapter}.py").read_text(encoding="utf-8")
    (context.artifacts / script).write_text(text, encoding="utf-8")
    return f"{oracle.python} {script} --model {oracle.model} --mode {quoted(oracle.mode)}"
