"""The words before a command that needs a card, in a lane that is emulated."""

from __future__ import annotations

import json
import shlex
from typing import Any

from greenlane.executors.docker import TOOL
from greenlane.lanes.context import Context

CACHE, COVERAGE = "GREENLANE_EMULATOR_CACHE_DIR", "GREENLANE_EMULATOR_COVERAGE"
LEFT = "emulated.json"  # in the artifacts: kernels and opcodes that ran


def wrapped(context: Context, script: str) -> str:
    """`greenlane emulate` from greenlane's own sources, its compiled kernels kept beside the compiler's cache."""
    if not context.emulated:
        return script
    inside = context.executor.inside
    python = context.executor.python
    tool = f'PYTHONPATH="{TOOL}${{PYTHONPATH:+:$PYTHONPATH}}" ' if context.executor.name == "docker" else ""
    files = f"{CACHE}={inside.ccache}/emulator {COVERAGE}={inside.artifacts}/{LEFT}"
    emulate = f"{python} -m greenlane emulate --arch {context.lane.arch}"
    return f"{tool}{files} {emulate} -- sh -ec {shlex.quote(script)}"


def forget(context: Context) -> None:
    """What an earlier stage ran under the emulator is no part of the next one's record."""
    (context.host.artifacts / LEFT).unlink(missing_ok=True)


def coverage(context: Context) -> dict[str, Any]:
    """For the record: architecture, translator, kernels, and every opcode of the kernels that ran in this stage."""
    if not context.emulated:
        return {}
    try:
        found = json.loads((context.host.artifacts / LEFT).read_text())
    except (OSError, ValueError):
        return {}
    return {"emulator": found} if isinstance(found, dict) else {}
