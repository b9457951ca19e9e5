"""The GPU tier: ops of the GPU backend in the build, against the CPU reference. Skips, with a reason, without."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest


def gpu_backend() -> str:
    """The GPU backend under test. Skips where there is none."""
    core = pytest.importorskip("engine._core", reason="the compiled engine is not installed")
    backends = [name for name in core.backends() if name != "cpu"]
    if not backends:
        pytest.skip(f"no GPU backend in this build, only {', '.join(core.backends())}")
    wanted = os.environ.get("ENGINE_GPU_BACKEND", backends[0])
    try:
        found = core.devices(wanted)
    except core.CoreError as error:
        pytest.skip(f"no {wanted} device: {error}")
    if not found:
        pytest.skip(f"no {wanted} device on this machine")
    return wanted


@pytest.fixture(scope="session")
def gpu() -> str:
    return gpu_backend()


@pytest.fixture
def core(gpu: str) -> Any:
    import engine._core

    return engine._core


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(sum(request.node.name.encode()))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/gpu" in str(item.path):
            item.add_marker(pytest.mark.gpu)
