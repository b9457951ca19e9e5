"""Sampling, log-probabilities, processors and the mirror's ops against the CPU reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.mark.parametrize("vocab", [1, 33, 1024, 49152, 151936])
def test_greedy_takes_the_lowest_id_of_a_tie(core: Any, gpu: str, rng: Any, vocab: int) -> None:
    logits = rng.integers(-50, 50, (4, vocab)).astype(np.float32)
    assert np.array_equal(core.run_op(gpu, "sample", logits=logits), logits.argmax(axis=1))


def test_greedy_of_masked_logits(core: Any, gpu: str) -> None:
    logits = np.full((2, 5000), -np.inf, np.float32)
    logits[1, 4321] = -7.0
    assert core.run_op(gpu, "sample", logits=logits).tolist() == [0, 4321]


SETTINGS = {
    "plain": {},
    "cold": {"temperature": 0.3},
    "greedy_row": {"temperature": 0.0},
    "top_k": {"top_k": 5},
    "top_p": {"top_p": 0.7},
    "min_p": {"min_p": 0.2},
    "all": {"temperature": 1.4, "top_k": 40, "top_p": 0.9, "min_p": 0.02},
    "tiny_top_p": {"top_p": 1e-6},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_sampled_ids_equal_the_reference(core: Any, gpu: str, rng: Any, name: str) -> None:
    lines, vocab = 24, 3000
    setting = {"temperature": 0.9, "top_k": 0, "top_p": 1.0, "min_p": 0.0} | SETTINGS[name]
    arguments = {
        "logits": rng.standard_normal((lines, vocab), np.float32) * 2,
        "temperature": np.full(lines, setting["temperature"], np.float32),
        "top_k": np.full(lines, setting["top_k"], np.int32),
        "top_p": np.full(lines, setting["top_p"], np.float32),
        "min_p": np.full(lines, setting["min_p"], np.float32),
        "seed": rng.integers(0, 2**63, lines).astype(np.uint64),
        "index": rng.integers(0, 1000, lines).astype(np.int64),
    }
    arguments["logits"][3:6] = np.round(arguments["logits"][3:6])  # ties
    assert np.array_equal(core.run_op(gpu, "sample", **arguments), core.run_op("cpu", "sample", **arguments))


@pytest.mark.parametrize(("vocab", "num_top"), [(3, 5), (700, 2), (49152, 22)])
def test_logprobs(core: Any, gpu: str, rng: Any, vocab: int, num_top: int) -> None:
    logits = rng.standard_normal((5, vocab), np.float32) * 3
    logits[1] = np.round(logits[1])
    arguments = {"logits": logits, "token_ids": rng.integers(0, vocab, 5).astype(np.int64), "num_top": num_top}
    chosen, ids, top = core.run_op(gpu, "logprobs", **arguments)
    expected_chosen, expected_ids, expected_top = core.run_op("cpu", "logprobs", **arguments)
    assert np.array_equal(ids, expected_ids)
    np.testing.assert_allclose(chosen, expected_chosen, atol=2e-5)
    np.testing.assert_allclose(top, expected_top, atol=2e-5)


def test_logits_processors(core: Any, gpu: str, rng: Any) -> None:
    lines, vocab, rows = 3, 1000, 5
    words = -(-vocab // 32)
    arguments = {
        "logits": rng.standard_normal((lines, vocab), np.float32),
        "idx_mapping": np.array([4, 0, 2], np.int32),
        "bias_start": np.array([0, 2, 2, 3], np.int32),
        "bias_ids": np.array([7, 999, 0], np.int32),
        "bias_values": np.array([5.0, -3.0, 100.0], np.float32),
        "allowed": rng.integers(0, 2**32, (lines, words)).astype(np.uint32),
        "repetition": np.array([1.3, 1.0, 1.0], np.float32),
        "presence": np.array([0.0, 0.5, 0.0], np.float32),
        "frequency": np.array([0.25, 0.1, 0.0], np.float32),
        "prompt_mask": rng.integers(0, 2**32, (rows, words)).astype(np.uint32),
        "output_counts": rng.integers(0, 3, (rows, vocab)).astype(np.int32),
    }
    actual = core.run_op(gpu, "logits_processors", **arguments)
    expected = core.run_op("cpu", "logits_processors", **arguments)
    assert np.array_equal(np.isinf(actual), np.isinf(expected))
    live = ~np.isinf(expected)
    np.testing.assert_allclose(actual[live], expected[live], rtol=1e-6, atol=1e-6)


def test_count_tokens(core: Any, gpu: str, rng: Any) -> None:
    counts = rng.integers(0, 9, (4, 50)).astype(np.int32)
    actual = core.run_op(
        gpu,
        "count_tokens",
        token_ids=np.array([7, 7, 49], np.int64),
        idx_mapping=np.array([3, -1, 0], np.int32),
        output_counts=counts.copy(),
    )
    counts[3, 7] += 1
    counts[0, 49] += 1
    assert np.array_equal(actual, counts)


MIRROR = {
    "input_ids": np.array([11, 12, 13, -1, 21, 22], np.int32),
    "idx_mapping": np.array([2, 0, 1], np.int32),
    "last_sampled_tokens": np.array([100, 101, 102], np.int32),
    "query_start_loc": np.array([0, 3, 4, 6], np.int32),
    "seq_lens": np.array([3, 9, 8], np.int32),
    "prefill_len": np.array([8, 8, 5], np.int32),
}


def test_combine_keeps_prompt_tokens_and_splices_sampled_ones(core: Any, gpu: str) -> None:
    assert core.run_op(gpu, "combine", **MIRROR).tolist() == [11, 12, 13, 100, 21, 22]


def test_combine_adds_draft_tokens(core: Any, gpu: str) -> None:
    arguments = MIRROR | {
        "seq_lens": np.array([3, 9, 12], np.int32),
        "draft_tokens": np.array([[200, 201], [202, 203], [204, 205]], np.int32),
        "draft_tokens_stride": 2,
        "cu_num_logits": np.array([0, 1, 2, 4], np.int32),
    }
    assert core.run_op(gpu, "combine", **arguments).tolist() == [11, 12, 13, 100, 101, 202]


def test_scatter_last_sampled_skips_padding(core: Any, gpu: str) -> None:
    actual = core.run_op(
        gpu,
        "scatter_last_sampled",
        token_ids=np.array([5, 6, 7], np.int64),
        idx_mapping=np.array([2, -1, 0], np.int32),
        last_sampled_tokens=np.array([1, 2, 3], np.int32),
    )
    assert actual.tolist() == [7, 2, 5]


def test_apply_last_sampled_ops_replays_in_order(core: Any, gpu: str) -> None:
    ops = np.array([[0, -1, 50], [3, 0, 0], [0, 2, 0], [2, 3, 0]], np.int32)
    actual = core.run_op(gpu, "apply_last_sampled_ops", last_sampled_tokens=np.array([1, 2, 3, 4], np.int32), ops=ops)
    assert actual.tolist() == [3, 2, 50, 50]
