"""A small random Qwen3 on the GPU against the ids of the float32 oracle: decoding alone and in batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpu import qwen3

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "qwen3-random-bf16.json").read_text())
NEAR_TIE = 0.3  # nats between the best two tokens that BF16 activations may turn round

MODES: dict[str, dict[str, Any]] = {
    "mirror on": {"async_device_mirror": "on"},
    "mirror off": {"async_device_mirror": "off"},
    "batch-invariant": {"batch_invariant": True},
}


def test_the_weights_are_those_that_the_oracle_had() -> None:
    assert qwen3.digest(qwen3.weights()) == GOLDEN["weights_sha256"]


@pytest.fixture(scope="module")
def models(gpu: str) -> dict[str, Any]:
    import engine._core

    return {precision: qwen3.build(engine._core, gpu, precision) for precision in ("reference", "fast")}


@pytest.mark.parametrize("mode", MODES)
def test_reference_precision_gives_the_golden_ids(core: Any, models: dict[str, Any], mode: str) -> None:
    prompts = [request["prompt_token_ids"] for request in GOLDEN["requests"]]
    expected = [request["token_ids"] for request in GOLDEN["requests"]]
    assert qwen3.decode(core, models["reference"], prompts, len(expected[0]), **MODES[mode]) == expected
    assert qwen3.decode(core, models["reference"], prompts[:1], len(expected[0]), **MODES[mode]) == expected[:1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [1, 3, 12])
def test_bfloat16_parts_from_the_golden_ids_at_near_ties_alone(
    core: Any, models: dict[str, Any], mode: str, size: int
) -> None:
    compared = 0
    # Every request, from its prompt and, after each near tie, from the golden ids on.
    waiting = [(request, 0) for request in GOLDEN["requests"]]
    while waiting:
        batch, waiting = (waiting * size)[:size], waiting[size:]
        prefixes = [request["prompt_token_ids"] + request["token_ids"][:done] for request, done in batch]
        count = len(batch[0][0]["token_ids"])
        found = qwen3.decode(core, models["fast"], prefixes, count, **MODES[mode])
        for (request, done), ids in list(zip(batch, found, strict=True))[: len(GOLDEN["requests"])]:
            expected = request["token_ids"][done:]
            at = next((i for i, pair in enumerate(zip(ids, expected, strict=False)) if pair[0] != pair[1]), None)
            compared += len(expected) if at is None else at
            if at is None:
                continue
            runner_up = request["runner_up"][done + at]
            gap = request["logprobs"][done + at] - runner_up["logprob"]
            print(f"{request['name']}: {ids[at]} for {expected[at]} at {done + at}, {gap:.4f} nats")
            assert ids[at] == runner_up["token_id"] and gap < NEAR_TIE
            if done + at + 1 < len(request["token_ids"]):
                waiting.append((request, done + at + 1))
    assert compared > 2 * len(GOLDEN["requests"][0]["token_ids"])


def test_the_mirror_changes_no_id(core: Any, models: dict[str, Any]) -> None:
    prompts = [request["prompt_token_ids"] for request in GOLDEN["requests"]]
    for size in (1, 3):
        on, off = (
            qwen3.decode(core, models["fast"], prompts[:size], 200, async_device_mirror=mirror)
            for mirror in ("on", "off")
        )
        assert on == off
