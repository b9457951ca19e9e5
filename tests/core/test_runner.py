"""The runner: the right tokens, whatever the batch, the chunks, the threads and the prefix in the cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine._core as core

PRECISIONS = ["reference", "fast"]
PROMPTS = [list(range(3, 3 + n)) for n in (1, 2, 9, 16, 17, 30, 5, 23)]


def generated(
    loop: Any, model: core.Model, prompt: list[int], count: int, chunk: int = 512, **options: Any
) -> list[int]:
    alone = loop(model, **options)
    alone.add(0, prompt)
    return alone.generate(0, count, chunk)


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("interleaved", [True, False])
def test_greedy_tokens_equal_numpy(transformer: Any, loop: Any, architecture: str, interleaved: bool) -> None:
    small = transformer(architecture, seed=3, interleaved=interleaved)
    prompt = [5, 99, 17, 3, 3, 42]
    assert generated(loop, small.model(), prompt, 12) == small.greedy(prompt, 12)


@pytest.mark.parametrize("dtype", ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"])
def test_every_format_gives_the_tokens_of_its_values(transformer: Any, loop: Any, dtype: str) -> None:
    small = transformer("llama", seed=4, dtype=dtype)
    assert generated(loop, small.model(), [7, 8, 9], 8) == small.greedy([7, 8, 9], 8)


@pytest.mark.parametrize("dtype", ["Q4_K", "Q5_K", "Q6_K"])
def test_the_k_formats_too(transformer: Any, loop: Any, dtype: str) -> None:
    sizes = {"hidden_size": 256, "intermediate_size": 512, "num_heads": 8, "head_dim": 32, "num_kv_heads": 4}
    small = transformer("qwen3", seed=5, dtype=dtype, **sizes)
    assert generated(loop, small.model(), [7, 8, 9], 6) == small.greedy([7, 8, 9], 6)


def test_an_untied_output_head_is_used(transformer: Any, loop: Any) -> None:
    small = transformer("llama", seed=6)
    head = np.roll(small.values["token_embd.weight"].astype(np.float32), 1, axis=0)
    weight = core.Weight(dtype="F32", shape=head.shape, data=head.tobytes())
    tied = small.greedy([4, 5], 1)[0]
    assert generated(loop, small.model(weights={"output.weight": weight}), [4, 5], 1) == [(tied + 1) % 101]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("dtype", ["F32", "Q4_1", "Q8_0"])
def test_batches_chunks_and_threads_do_not_change_tokens(
    transformer: Any, loop: Any, precision: str, dtype: str
) -> None:
    small = transformer("llama", seed=7, dtype=dtype)
    model = small.model(precision)
    alone = [generated(loop, model, prompt, 10) for prompt in PROMPTS]
    assert [generated(loop, model, prompt, 10, chunk=7) for prompt in PROMPTS] == alone
    assert [generated(loop, small.model(precision, threads=2), prompt, 10) for prompt in PROMPTS] == alone
    crowd = loop(model)
    for row, prompt in enumerate(PROMPTS):
        crowd.add(row, prompt)
    for _ in range(10):
        crowd.step()
    assert [crowd.tokens[row][len(prompt) :] for row, prompt in enumerate(PROMPTS)] == alone


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_prefix_in_the_cache_does_not_change_tokens(transformer: Any, loop: Any, precision: str) -> None:
    model = transformer("qwen2", seed=8).model(precision)
    prompt = [int(x) for x in np.random.default_rng(1).integers(0, 101, 37)]
    first = loop(model)
    first.add(0, prompt)
    fresh = first.generate(0, 8)
    first.add(1, prompt)
    shared = np.arange(4, dtype=np.int32)  # 32 of the 37 tokens
    first.runner.set_blocks(1, 0, shared)
    first.computed[1] = 32
    assert first.generate(1, 8) == fresh
    first.runner.copy_blocks(shared, np.arange(40, 44, dtype=np.int32))
    first.add(2, prompt)
    first.runner.set_blocks(2, 0, np.arange(40, 44, dtype=np.int32))
    first.computed[2] = 32
    assert first.generate(2, 8) == fresh


def test_a_preempted_request_continues_where_it_was(transformer: Any, loop: Any) -> None:
    model = transformer("llama", seed=9).model()
    whole = generated(loop, model, PROMPTS[2], 12)
    interrupted = loop(model)
    interrupted.add(0, PROMPTS[2])
    first = interrupted.generate(0, 5)
    interrupted.remove(0)
    interrupted.add(3, PROMPTS[2] + first)
    assert first + interrupted.generate(3, 7) == whole


def test_prompt_logprobs_are_those_of_numpy_in_any_chunks(transformer: Any, loop: Any) -> None:
    small = transformer("llama", seed=10)
    prompt = [int(x) for x in np.random.default_rng(2).integers(0, 101, 90)]
    logits = small.logits(prompt)
    exact = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    for chunk in (512, 11):
        scoring = loop(small.model())
        scoring.add(0, prompt, core.Sampling(prompt_logprobs=True))
        parts = []
        while scoring.computed[0] < len(prompt):
            parts += scoring.step(chunk).prompt_logprobs
        assert [part.start for part in parts] == [1 + chunk * i for i in range(len(parts))]
        positions = np.arange(1, len(prompt))
        got = np.concatenate([part.logprobs for part in parts])
        np.testing.assert_allclose(got, exact[positions - 1, np.array(prompt)[1:]], atol=2e-4)
        order = np.argsort(-exact[:-1], axis=1)
        np.testing.assert_array_equal(np.concatenate([part.best_ids for part in parts]), order[:, 0])
        np.testing.assert_array_equal(np.concatenate([part.runner_up_ids for part in parts]), order[:, 1])


def test_logprobs_and_the_runner_up_come_from_raw_logits(transformer: Any, loop: Any) -> None:
    small = transformer("llama", seed=11)
    logits = small.logits([1, 2, 3])[-1]
    exact = logits - np.log(np.exp(logits).sum())
    order = np.argsort(-exact)
    forced = int(order[5])
    biased = loop(small.model())
    biased.add(0, [1, 2, 3], core.Sampling(logit_bias={forced: 1000.0}, top_logprobs=4))
    biased.add(1, [1, 2, 3], core.Sampling(top_logprobs=1))
    output = biased.step()
    np.testing.assert_array_equal(output.token_ids, [forced, order[0]])
    np.testing.assert_allclose(output.logprobs, exact[[forced, order[0]]], atol=1e-4)
    np.testing.assert_array_equal(output.runner_up_ids, [order[0], order[1]])
    np.testing.assert_array_equal(output.top_ids[0], order[:4])
    np.testing.assert_array_equal(output.top_ids[1], order[:1])


def test_a_mask_leaves_only_what_it_allows(transformer: Any, loop: Any) -> None:
    masked = loop(transformer("llama", seed=12).model())
    masked.add(0, [1, 2, 3])
    masked.add(1, [1, 2, 3])
    mask = np.zeros(4, np.uint32)
    mask[2] = 1 << 6  # token 70
    output = masked.step(allowed={1: mask})
    assert output.token_ids[1] == 70
    assert output.token_ids[0] != 70
    with pytest.raises(ValueError, match="leaves no token"):
        masked.step(allowed={0: np.array([0, 0, 0, 1 << 7], np.uint32)})  # only bits beyond the vocabulary of 101
    with pytest.raises(ValueError, match="has 4 words, not 3"):
        masked.step(allowed={0: np.ones(3, np.uint32)})


def test_a_seed_decides_the_tokens_whatever_the_batch(transformer: Any, loop: Any) -> None:
    model = transformer("llama", seed=13).model()
    sampling = {seed: core.Sampling(temperature=1.5, top_k=30, top_p=0.95, seed=seed) for seed in (1, 2)}

    def run(seed: int, crowded: bool) -> list[int]:
        sampler = loop(model)
        if crowded:
            sampler.add(5, PROMPTS[3], core.Sampling(temperature=1.0, seed=9))
        sampler.add(0, PROMPTS[2], sampling[seed])
        return sampler.generate(0, 12)

    assert run(1, False) == run(1, True)
    assert run(1, False) != run(2, False)


def test_penalties_count_prompt_and_output(transformer: Any, loop: Any) -> None:
    small = transformer("llama", seed=14)
    model = small.model()
    strong = core.Sampling(repetition_penalty=1.0, presence_penalty=100.0)
    spread = loop(model)
    spread.add(0, [1, 2], strong)
    tokens = spread.generate(0, 20)
    assert len(set(tokens)) == 20
    spread.remove(0)
    spread.add(0, [1, 2, *tokens[:10]], strong)  # as after a preemption, but all of it a prompt
    again = spread.generate(0, 5)
    assert len(set(again)) == 5
    logits = small.logits([1, 2])[-1]
    best = int(logits.argmax())
    repeated = loop(model)
    repeated.add(0, [best, 1, 2], core.Sampling(repetition_penalty=1e6))
    expected = small.logits([best, 1, 2])[-1]
    for token in (best, 1, 2):
        expected[token] = expected[token] / 1e6 if expected[token] > 0 else expected[token] * 1e6
    assert repeated.generate(0, 1) == [int(expected.argmax())]


def test_keys_and_values_can_be_read_back(transformer: Any, loop: Any) -> None:
    model = transformer("llama", seed=15).model()
    cached = {}
    for kv_dtype in ("F32", "F16", "BF16"):
        reading = loop(model, kv_dtype=kv_dtype)
        reading.add(1, PROMPTS[3])
        reading.step()
        cached[kv_dtype] = reading.runner.read_kv(1, 16)
        assert reading.runner.kv_bytes_per_token == 2 * 2 * 2 * 16 * (4 if kv_dtype == "F32" else 2)
    assert cached["F32"][0].shape == (8, 2, 16)
    np.testing.assert_allclose(cached["F16"][0], cached["F32"][0], rtol=2e-2, atol=1e-2)
    np.testing.assert_allclose(cached["BF16"][1], cached["F32"][1], rtol=1e-1, atol=5e-2)


def test_a_finished_rows_late_token_does_not_reach_its_successor(transformer: Any, loop: Any) -> None:
    late = loop(transformer("llama", seed=16).model())
    late.add(0, [1, 2, 3])
    pending = late.runner.launch(*(np.array([x], np.int32) for x in (0, 0, 3)))
    late.remove(0)
    late.add(0, [4, 5])
    assert len(pending.wait().token_ids) == 1
    assert pending.done()
    fresh = loop(transformer("llama", seed=16).model())
    fresh.add(0, [4, 5])
    assert late.generate(0, 4) == fresh.generate(0, 4)


@pytest.mark.parametrize(
    ("rows", "computed", "tokens", "message"),
    [
        ([], [], [], "at least one row"),
        ([0, 0], [0, 0], [1, 1], "scheduled twice"),
        ([9], [0], [1], r"row must lie in 0\.\.7"),
        ([1], [0], [1], "row 1 holds no request"),
        ([0], [-1], [1], "num_computed"),
        ([0], [0], [0], "num_tokens 1 or more"),
        ([0], [0], [4], "has 3 tokens, not 4"),
        ([0], [0, 1], [1], "same length"),
        ([2], [0], [60], "may have 32 tokens"),
        ([3], [0], [3], "needs 1 blocks and has 0"),
    ],
)
def test_an_impossible_step_is_a_value_error(
    transformer: Any, loop: Any, rows: list[int], computed: list[int], tokens: list[int], message: str
) -> None:
    small = loop(transformer("llama").model(), max_num_batched_tokens=32)
    small.add(0, [1, 2, 3])
    small.add(2, [1] * 60)
    small.runner.add(3, np.array([1, 2, 3], np.int32), core.Sampling(), 3)
    with pytest.raises(ValueError, match=message):
        small.runner.launch(*(np.array(x, np.int32) for x in (rows, computed, tokens)))


def test_impossible_rows_and_blocks_are_value_errors(transformer: Any, loop: Any) -> None:
    runner = loop(transformer("llama").model()).runner
    one, sampling = np.array([1], np.int32), core.Sampling()
    runner.add(0, one, sampling, 1)
    for call, message in [
        (lambda: runner.add(0, one, sampling, 1), "already holds"),
        (lambda: runner.add(1, one[:0], sampling, 1), r"1\.\.128 tokens, not 0"),
        (lambda: runner.add(1, np.ones(129, np.int32), sampling, 1), "not 129"),
        (lambda: runner.add(1, one, sampling, 2), "num_prompt_tokens"),
        (lambda: runner.add(1, np.array([101], np.int32), sampling, 1), "outside the vocabulary"),
        (lambda: runner.add(1, np.array([-1], np.int32), sampling, 1), "outside the vocabulary"),
        (lambda: runner.add(1, one, core.Sampling(logit_bias={500: 1.0}), 1), "outside the vocabulary"),
        (lambda: runner.remove(5), "holds no request"),
        (lambda: runner.set_blocks(0, 1, one), "must follow"),
        (lambda: runner.set_blocks(0, 0, np.array([128], np.int32)), "block must lie in"),
        (lambda: runner.copy_blocks(one, one), "both source and target"),
        (lambda: runner.copy_blocks(one, one[:0]), "same length"),
        (lambda: runner.read_kv(2, 0), "layer must lie in"),
        (lambda: runner.read_kv(0, -1), "block must lie in"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_launches_are_counted(transformer: Any, loop: Any) -> None:
    counted = loop(transformer("llama").model())
    counted.add(0, [1, 2, 3])
    core.reset_kernel_launches()
    counted.step()
    launches = core.kernel_launches()
    assert launches["attention"] == 2
    assert launches["sample"] == launches["embedding"] == 1
    core.reset_kernel_launches()
    assert core.kernel_launches() == {}
