"""llama.cpp's HIP backend, built for gfx1100 and run under the emulator, gives what its CPU backend gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.emulator import llama_cpp

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llama_cpp")
    llama_cpp.sources(folder)
    llama_cpp.build(folder, "gfx1100")
    return folder


@pytest.mark.parametrize("op", llama_cpp.FAST)
def test_operation_computes_what_the_cpu_backend_does(work: Path, op: str) -> None:
    found = llama_cpp.run(work, "gfx1100", op, limit_s=1800, cases=None)
    assert (found.failed, found.end) == (0, "")
    assert found.passed > 0
