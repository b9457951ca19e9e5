"""The stages of a lane: one module each, named as in the matrix."""

from __future__ import annotations

import importlib
from typing import Protocol, cast

from greenlane.lanes.context import Context, Ended
from greenlane.matrix.model import Stage


class StageModule(Protocol):
    """What a module in this folder must define. Modules satisfy it as they are."""

    def run(self, context: Context) -> Ended: ...


def load(stage: Stage) -> StageModule:
    return cast(StageModule, importlib.import_module(f"greenlane.lanes.stages.{stage}"))
