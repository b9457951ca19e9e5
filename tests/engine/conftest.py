"""What the engine's tests share: the real model's path, and a loop over a fake runner."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.models.locate import locate


@pytest.fixture(scope="session")
def smollm2() -> Path:
    return locate("smollm2")
