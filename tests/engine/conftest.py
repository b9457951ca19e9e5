"""What the engine's tests share: the real model's path, and a loop over a fake runner."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.models.locate import locate
from tests.engine.models.tiny import Shape, write_gguf


@pytest.fixture(scope="session")
def smollm2() -> Path:
    return locate("smollm2")


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer model that computes thousands of tokens per second."""
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_gguf(path, Shape(context=4096))
    return path
