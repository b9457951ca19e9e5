"""The words before a command that needs a card, in a lane that is emulated."""

from __future__ import annotations

import shlex

from greenlane.executors.docker import TOOL
from greenlane.lanes.context import Context

CACHE = "GREENLANE_EMULATOR_CACHE_DIR"


def wrapped(context: Context, script: str) -> str:
    """`greenlane emulate` from greenlane's own sources, its compiled kernels kept beside the compiler's cache."""
    if not context.emulated:
        return script
    inside = context.executor.inside
    python = context.executor.python
    tool = f'PYTHONPATH="{TOOL}${{PYTHONPATH:+:$PYTHONPATH}}" ' if context.executor.name == "docker" else ""
    emulate = f"{CACHE}={inside.ccache}/emulator {python} -m greenlane emulate --arch {context.lane.arch}"
    return f"{tool}{emulate} -- sh -ec {shlex.quote(script)}"
