"""Greedy ids depend on the prompt alone: not on company, chunks, threads, cache hits or preemption."""

from __future__ import annotations

import pytest

from engine import LLM, SamplingParams
from engine.llm import Arrival

PROMPTS = [
    "The capital of France is",
    "Once upon a time",
    "def add(a, b):\n    return",
    "Les trois couleurs primaires sont",
    "1, 2, 3, 4,",
    "The quick brown fox jumps over the lazy dog. " * 4,
    "½ cup of",
    "日本の首都は",
]
GREEDY = SamplingParams(max_tokens=8, ignore_eos=True)


@pytest.fixture(scope="module", params=["fast", "reference"])
def llm(request: pytest.FixtureRequest) -> LLM:
    return LLM("smollm2", precision=request.param, kv_cache_tokens=4096)


@pytest.fixture(scope="module")
def alone(llm: LLM) -> list[list[int]]:
    return [llm.generate([prompt], GREEDY)[0].token_ids for prompt in PROMPTS]


def fresh(llm: LLM, **settings: object) -> LLM:
    return LLM("smollm2", precision=llm.config.precision, **{"kv_cache_tokens": 4096, **settings})


def ids(llm: LLM, prompts: list[str] = PROMPTS, **extra: object) -> list[list[int]]:
    return [output.token_ids for output in llm.generate(prompts, GREEDY, **extra)]  # type: ignore[arg-type]


def test_a_batch_of_eight_gives_the_ids_of_each_alone(llm: LLM, alone: list[list[int]]) -> None:
    assert ids(fresh(llm, prefix_cache=False)) == alone


def test_chunks_of_seven_give_the_same_ids(llm: LLM, alone: list[list[int]]) -> None:
    assert ids(fresh(llm, max_num_batched_tokens=7)) == alone


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_changes_no_id(llm: LLM, alone: list[list[int]], threads: int) -> None:
    assert ids(fresh(llm, threads=threads), PROMPTS[:6]) == alone[:6]


def test_a_prefix_hit_gives_the_same_ids(llm: LLM, alone: list[list[int]]) -> None:
    again = llm.generate([PROMPTS[5]], GREEDY)[0]
    assert again.num_cached_tokens >= 32
    assert again.token_ids == alone[5]


def test_late_arrivals_and_aborts_change_no_id(llm: LLM, alone: list[list[int]]) -> None:
    arrivals = [Arrival(step=3 * index, abort_after=5 if index == 2 else None) for index in range(8)]
    expected = [tokens[:5] if index == 2 else tokens for index, tokens in enumerate(alone)]
    assert ids(llm, arrivals=arrivals) == expected


def test_preemption_changes_no_id(llm: LLM, alone: list[list[int]]) -> None:
    tight = fresh(llm, kv_cache_tokens=64, block_size=2)
    outputs = tight.generate(PROMPTS, GREEDY)
    assert [output.token_ids for output in outputs] == alone
    assert tight.loop.scheduler.preemptions > 0
