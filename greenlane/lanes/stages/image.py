"""Makes the place that the lane runs in: the container image, or the host's virtual environment and set-up commands."""

from __future__ import annotations

from greenlane.lanes import container, setup
from greenlane.lanes.context import Context, Ended


def run(context: Context) -> Ended:
    if context.executor.name == "host":
        return setup.run(context)
    return container.run(context)
