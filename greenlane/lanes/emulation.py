"""The words before a command that needs a card the machine lacks."""

from __future__ import annotations

from greenlane.lanes.context import Context


def prefix(context: Context) -> str:
    if not context.emulated:
        return ""
    return f"{context.executor.python} -m greenlane emulate --arch {context.lane.arch} -- "
