"""A lane's place on this machine, with the engine double as its program."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenlane.gates.contract import GateContext
from greenlane.matrix.model import Lane, Stage
from tests.gates.engine_double import EngineDouble


@pytest.fixture
def context(tmp_path: Path) -> GateContext:
    for folder in ("source", "artifacts"):
        (tmp_path / folder).mkdir()
    return GateContext(Lane("cpu", "cpu"), Stage.EXACT, tmp_path / "source", tmp_path / "artifacts")


@pytest.fixture
def engine(context: GateContext) -> EngineDouble:
    return EngineDouble(context.artifacts)
