"""Logits processors, sampling and log-probabilities against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine._core as core

PRECISIONS = ["reference", "fast"]


def philox_uniform(seed: int, index: int) -> float:
    """Philox4x32-10 written down once more, from its paper's constants."""
    mask = 2**32 - 1
    c = [index & mask, index >> 32, 0, 0]
    k = [seed & mask, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & mask, (a >> 32) ^ c[3] ^ k[1], a & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return (c[0] >> 8) / 2**24


def sampled(logits: np.ndarray, precision: str = "reference", **options: Any) -> np.ndarray:
    n = len(logits)
    values = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 0, "index": 0, **options}
    kinds = {"top_k": np.int32, "seed": np.uint64, "index": np.int64}
    arrays = {name: np.broadcast_to(np.asarray(v, kinds.get(name, np.float32)), n) for name, v in values.items()}
    return core.run_op("cpu", "sample", logits=logits, precision=precision, threads=2, **arrays)


def expected_sample(logits: np.ndarray, temperature: float, top_k: int, top_p: float, min_p: float, u: float) -> int:
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    if top_k:
        order = order[:top_k]
    weights = {i: np.exp((np.float64(logits[i]) - logits[order[0]]) / temperature) for i in order}
    if top_p < 1:
        total, kept, mass = sum(weights.values()), [], 0.0
        for i in order:
            if kept and mass >= top_p * total:
                break
            kept.append(i)
            mass += weights[i]
        order = kept
    ids = sorted(i for i in order if weights[i] >= min_p)
    edges = np.cumsum([weights[i] for i in ids])
    return ids[int(np.searchsorted(edges, u * edges[-1], side="right"))]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_greedy_takes_the_largest_and_the_lowest_id_on_a_tie(precision: str) -> None:
    logits = np.array([[0, 5, 1, 5], [-np.inf, -2, -2, -3], [7, 0, 0, 7]], np.float32)
    np.testing.assert_array_equal(core.run_op("cpu", "sample", logits=logits, precision=precision), [1, 1, 0])
    np.testing.assert_array_equal(sampled(logits, precision, temperature=0.0), [1, 1, 0])


@pytest.mark.parametrize("precision", PRECISIONS)
def test_greedy_over_a_long_vocabulary(rng: np.random.Generator, precision: str) -> None:
    logits = rng.standard_normal((9, 49157)).astype(np.float32)
    logits[3, [40, 49156]] = 50.0
    actual = core.run_op("cpu", "sample", logits=logits, precision=precision, threads=2)
    np.testing.assert_array_equal(actual, logits.argmax(1))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("top_k", "top_p", "min_p"), [(0, 1.0, 0.0), (5, 1.0, 0.0), (0, 0.7, 0.0), (0, 1.0, 0.2), (20, 0.9, 0.05)]
)
def test_a_draw_follows_the_rules(
    rng: np.random.Generator, precision: str, top_k: int, top_p: float, min_p: float
) -> None:
    logits = (rng.standard_normal((64, 301)) * 2).astype(np.float32)
    seeds, index = rng.integers(0, 2**63, 64).astype(np.uint64), rng.integers(0, 1000, 64)
    options: dict[str, Any] = {"temperature": 0.8, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    actual = sampled(logits, precision, seed=seeds, index=index, **options)
    expected = [
        expected_sample(line, u=philox_uniform(int(s), int(i)), **options)
        for line, s, i in zip(logits, seeds, index, strict=True)
    ]
    assert (actual == expected).mean() > 0.98  # a draw at an edge may fall to either side by rounding


def test_draws_have_the_distribution_of_the_logits() -> None:
    logits = np.tile(np.log(np.array([0.5, 0.3, 0.2], np.float32)), (20000, 1))
    ids = sampled(logits, seed=7, index=np.arange(20000))
    np.testing.assert_allclose(np.bincount(ids, minlength=3) / 20000, [0.5, 0.3, 0.2], atol=0.015)


def test_masked_tokens_are_never_drawn() -> None:
    logits = np.full((500, 40), -np.inf, np.float32)
    logits[:, [3, 17]] = 0.0
    assert set(sampled(logits, index=np.arange(500))) == {3, 17}


def test_a_tiny_temperature_is_greedy_and_finite(rng: np.random.Generator) -> None:
    logits = (rng.standard_normal((8, 50)) * 100).astype(np.float32)
    np.testing.assert_array_equal(sampled(logits, temperature=1e-30), logits.argmax(1))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("rows", "vocab", "top"), [(0, 9, 2), (1, 1, 3), (3, 50, 2), (2, 1000, 21)])
def test_logprobs_rank_and_normalise(rng: np.random.Generator, precision: str, rows: int, vocab: int, top: int) -> None:
    logits = (rng.standard_normal((rows, vocab)) * 3).astype(np.float32)
    ids = rng.integers(0, vocab, rows)
    chosen, top_ids, values = core.run_op(
        "cpu", "logprobs", logits=logits, token_ids=ids, num_top=top, precision=precision, threads=2
    )
    exact = logits - np.log(np.exp(logits.astype(np.float64)).sum(1, keepdims=True))
    np.testing.assert_allclose(chosen, exact[np.arange(rows), ids], rtol=1e-5, atol=1e-5)
    for line in range(rows):
        order = np.argsort(-logits[line], kind="stable")[:top]
        np.testing.assert_array_equal(top_ids[line, : len(order)], order)
        np.testing.assert_allclose(values[line, : len(order)], exact[line, order], rtol=1e-5, atol=1e-5)
        assert (top_ids[line, len(order) :] == -1).all()
        assert (values[line, len(order) :] == -np.inf).all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_tied_logprobs_rank_by_id(precision: str) -> None:
    logits = np.zeros((1, 100), np.float32)
    _, top_ids, _ = core.run_op(
        "cpu", "logprobs", logits=logits, token_ids=np.array([5]), num_top=4, precision=precision
    )
    np.testing.assert_array_equal(top_ids, [[0, 1, 2, 3]])


@pytest.mark.parametrize("precision", PRECISIONS)
def test_processors_apply_bias_mask_and_penalties_in_order(rng: np.random.Generator, precision: str) -> None:
    vocab, rows = 70, 3
    logits = rng.standard_normal((rows, vocab)).astype(np.float32)
    allowed = rng.integers(0, 2**32, (rows, 3), dtype=np.uint32)
    prompt = rng.integers(0, 2**32, (5, 3), dtype=np.uint32)
    counts = rng.integers(0, 3, (5, vocab)).astype(np.int32)
    mapping = np.array([4, 0, 2], np.int32)
    penalties = {
        "repetition": np.array([1.3, 1.0, 0.8], np.float32),
        "presence": np.array([0.5, 0.0, -0.2], np.float32),
        "frequency": np.array([0.1, 0.0, 0.3], np.float32),
    }
    bias_start, bias_ids = np.array([0, 2, 2, 3], np.int32), np.array([1, 69, 33], np.int32)
    values = np.array([2.0, -3.0, 100.0], np.float32)
    actual = core.run_op(
        "cpu", "logits_processors", logits=logits, idx_mapping=mapping, bias_start=bias_start, bias_ids=bias_ids,
        bias_values=values, allowed=allowed, prompt_mask=prompt, output_counts=counts, precision=precision,
        **penalties,
    )  # fmt: skip

    def bits(mask: np.ndarray) -> np.ndarray:
        return ((mask[:, np.arange(vocab) // 32] >> (np.arange(vocab) % 32).astype(np.uint32)) & 1).astype(bool)

    expected = logits.copy()
    for line in range(rows):
        for i in range(bias_start[line], bias_start[line + 1]):
            expected[line, bias_ids[i]] += values[i]
    expected[~bits(allowed)] = -np.inf
    seen, output = counts[mapping] > 0, counts[mapping]
    repetition = penalties["repetition"][:, None]
    scaled = np.where(expected > 0, expected / repetition, expected * repetition)
    expected = np.where(seen | bits(prompt)[mapping], scaled, expected)
    expected -= np.where(seen, penalties["presence"][:, None] + penalties["frequency"][:, None] * output, 0)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_count_tokens_counts_only_rows_that_ask_for_it() -> None:
    counts = np.zeros((3, 10), np.int32)
    actual = core.run_op(
        "cpu", "count_tokens", token_ids=np.array([4, 9, 4]), idx_mapping=np.array([2, -1, 2]), output_counts=counts
    )  # fmt: skip
    expected = counts.copy()
    expected[2, 4] = 2
    np.testing.assert_array_equal(actual, expected)
