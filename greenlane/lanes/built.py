"""What a build left: device code per architecture, and what each kernel needs of a card."""

from __future__ import annotations

from typing import Any

from greenlane.lanes import objects
from greenlane.lanes.context import Context


def measure(context: Context) -> dict[str, Any]:
    """Architectures and kernels, read out of the objects; figures that only nvcc's assembler tells from the log."""
    return objects.survey((context.host.build, context.host.prefix), context.log.lines())
