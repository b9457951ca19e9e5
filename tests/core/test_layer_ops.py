"""Norms, rope, SiLU, cache writes and attention against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine._core as core

PRECISIONS = ["reference", "fast"]
CLOSE: dict[str, Any] = {"rtol": 3e-5, "atol": 3e-5}


def normed(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("tokens", "size"), [(0, 8), (1, 1), (1, 576), (5, 33), (40, 64)])
def test_rms_norm_adds_to_the_residual_first(
    rng: np.random.Generator, as_unaligned: Callable[..., np.ndarray], precision: str, tokens: int, size: int
) -> None:
    x, residual = rng.standard_normal((2, tokens, size)).astype(np.float32)
    weight = rng.standard_normal(size).astype(np.float32)
    new, out = core.run_op(
        "cpu", "rms_norm", x=as_unaligned(x), residual=as_unaligned(residual), weight=weight, eps=1e-5,
        precision=precision, threads=2,
    )  # fmt: skip
    np.testing.assert_allclose(new, x + residual, rtol=1e-6)
    np.testing.assert_allclose(out, normed((x + residual).astype(np.float64), weight, 1e-5), **CLOSE)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_rms_norm_without_residual_and_of_the_residual_alone(rng: np.random.Generator, precision: str) -> None:
    x, weight = rng.standard_normal((3, 50)).astype(np.float32), rng.standard_normal(50).astype(np.float32)
    alone = core.run_op("cpu", "rms_norm", x=x, weight=weight, eps=1e-6, precision=precision)
    np.testing.assert_allclose(alone, normed(x, weight, 1e-6), **CLOSE)
    same, out = core.run_op("cpu", "rms_norm", residual=x, weight=weight, eps=1e-6, precision=precision)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(out, alone)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_rms_norm_of_heads_normalises_each_head(
    rng: np.random.Generator, as_unaligned: Callable[..., np.ndarray], precision: str
) -> None:
    x, weight = rng.standard_normal((4, 3, 32)).astype(np.float32), rng.standard_normal(32).astype(np.float32)
    out = core.run_op("cpu", "rms_norm", x=as_unaligned(x), weight=weight, eps=1e-6, precision=precision)
    np.testing.assert_allclose(out, normed(x, weight, 1e-6), **CLOSE)


def rotated(x: np.ndarray, angles: np.ndarray, interleaved: bool) -> np.ndarray:
    half = x.shape[-1] // 2
    first = slice(0, None, 2) if interleaved else slice(0, half)
    second = slice(1, None, 2) if interleaved else slice(half, None)
    z = (x[..., first] + 1j * x[..., second]) * np.exp(1j * angles)[:, None, :]
    out = np.empty_like(x)
    out[..., first], out[..., second] = z.real, z.imag
    return out


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize(("tokens", "dim"), [(0, 8), (1, 2), (5, 64), (33, 10)])
def test_rope_turns_pairs(
    rng: np.random.Generator, as_unaligned: Callable[..., np.ndarray], precision: str, interleaved: bool, tokens: int,
    dim: int,
) -> None:  # fmt: skip
    q = rng.standard_normal((tokens, 3, dim)).astype(np.float32)
    k = rng.standard_normal((tokens, 1, dim)).astype(np.float32)
    angles = rng.uniform(-3, 3, (50, dim // 2))
    positions = rng.integers(0, 50, tokens).astype(np.int32)
    table = np.concatenate([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    actual = core.run_op(
        "cpu", "rope", q=as_unaligned(q), k=as_unaligned(k), positions=positions, cos_sin=table,
        interleaved=interleaved, precision=precision, threads=2,
    )  # fmt: skip
    for part, before in zip(actual, (q, k), strict=True):
        np.testing.assert_allclose(part, rotated(before, angles[positions], interleaved), **CLOSE)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("tokens", "size"), [(0, 4), (1, 1), (3, 37), (5, 1536)])
def test_silu_mul_equals_its_definition(rng: np.random.Generator, precision: str, tokens: int, size: int) -> None:
    x = (rng.standard_normal((tokens, 2 * size)) * 5).astype(np.float32)
    gate, up = x[:, :size].astype(np.float64), x[:, size:]
    actual = core.run_op("cpu", "silu_mul", gate_up=x, precision=precision, threads=2)
    np.testing.assert_allclose(actual, gate / (1 + np.exp(-gate)) * up, rtol=2e-5, atol=1e-5)


def test_silu_mul_of_extreme_values_stays_finite() -> None:
    x = np.array([[-1e4, 1e4, -88.8, 0.0, 1.0, 1.0, 1.0, 1.0]], np.float32)
    for precision in PRECISIONS:
        actual = core.run_op("cpu", "silu_mul", gate_up=x, precision=precision)
        np.testing.assert_allclose(actual, [[0.0, 1e4, 0.0, 0.0]], atol=1e-6)


KV_TYPES = {"F32": 0.0, "F16": 2**-11, "BF16": 2**-8}


@pytest.mark.parametrize("kv_dtype", KV_TYPES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_kv_write_fills_slots_and_skips_negative_ones(rng: np.random.Generator, kv_dtype: str, precision: str) -> None:
    k, v = rng.standard_normal((2, 4, 2, 16)).astype(np.float32)
    cache = np.zeros((3, 2, 4, 16), np.float32)
    keys, values = core.run_op(
        "cpu", "kv_write", k=k, v=v, slot_mapping=np.array([5, -1, 0, 11]), keys=cache, values=cache,
        kv_dtype=kv_dtype, precision=precision,
    )  # fmt: skip
    for cached, given in ((keys, k), (values, v)):
        expected = cache.copy()
        for token, slot in ((0, 5), (2, 0), (3, 11)):
            expected[slot // 4, :, slot % 4] = given[token]
        np.testing.assert_allclose(cached, expected, rtol=KV_TYPES[kv_dtype] * 1.01, atol=1e-7)


class Paged:
    """Requests of given (query, sequence) lengths whose keys and values lie in shuffled blocks."""

    def __init__(self, rng: np.random.Generator, lengths: list[tuple[int, int]], heads: int, kv_heads: int, dim: int,
                 block_size: int = 16):  # fmt: skip
        self.block_size, self.lengths = block_size, lengths
        counts = [-(-length // self.block_size) for _, length in lengths]
        order = np.random.default_rng(9).permutation(sum(counts) + 2)
        self.table = np.zeros((len(lengths), max(counts)), np.int32)
        self.keys, self.values = np.full((2, len(order), kv_heads, self.block_size, dim), np.nan, np.float32)
        self.k, self.v = [], []
        self.q = rng.standard_normal((sum(q for q, _ in lengths), heads, dim)).astype(np.float32)
        for i, (_, length) in enumerate(lengths):
            blocks, order = order[: counts[i]], order[counts[i] :]
            self.table[i, : counts[i]] = blocks
            k, v = rng.standard_normal((2, length, kv_heads, dim)).astype(np.float32)
            for position in range(length):
                block, offset = blocks[position // self.block_size], position % self.block_size
                self.keys[block, :, offset], self.values[block, :, offset] = k[position], v[position]
            self.k.append(k)
            self.v.append(v)

    def run(self, **options: Any) -> np.ndarray:
        starts = np.cumsum([0, *(q for q, _ in self.lengths)])
        return core.run_op(
            "cpu", "attention", q=options.pop("q", self.q), keys=np.nan_to_num(self.keys),
            values=np.nan_to_num(self.values), block_table=self.table, query_start_loc=starts.astype(np.int32),
            seq_lens=np.array([length for _, length in self.lengths], np.int32), scale=0.3, **options,
        )  # fmt: skip

    def expected(self) -> np.ndarray:
        out, first = np.empty_like(self.q), 0
        group = self.q.shape[1] // self.keys.shape[1]
        for (count, length), k, v in zip(self.lengths, self.k, self.v, strict=True):
            for i in range(count):
                seen = length - count + i + 1
                for head in range(self.q.shape[1]):
                    scores = k[:seen, head // group].astype(np.float64) @ self.q[first + i, head] * 0.3
                    shares = np.exp(scores - scores.max())
                    out[first + i, head] = shares @ v[:seen, head // group] / shares.sum()
            first += count
        return out


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kv_dtype", KV_TYPES)
@pytest.mark.parametrize(("heads", "kv_heads", "dim"), [(1, 1, 2), (4, 2, 16), (9, 3, 64), (3, 3, 20)])
def test_attention_equals_numpy(
    rng: np.random.Generator, as_unaligned: Callable[..., np.ndarray], precision: str, kv_dtype: str, heads: int,
    kv_heads: int, dim: int,
) -> None:  # fmt: skip
    paged = Paged(rng, [(1, 1), (7, 7), (1, 45), (5, 30), (16, 64)], heads, kv_heads, dim)
    actual = paged.run(precision=precision, kv_dtype=kv_dtype, threads=2, q=as_unaligned(paged.q))
    # A rounded key shifts a score by up to its length times the rounding.
    tolerance = 3e-5 + KV_TYPES[kv_dtype] * 3 * np.sqrt(dim)
    np.testing.assert_allclose(actual, paged.expected(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kv_dtype", KV_TYPES)
@pytest.mark.parametrize("block_size", [8, 32])
def test_a_query_has_the_same_bits_alone_and_in_a_crowd(
    rng: np.random.Generator, precision: str, kv_dtype: str, block_size: int
) -> None:
    paged = Paged(rng, [(60, 60), (20, 41), (1, 33)], 6, 2, 32, block_size)
    crowd = paged.run(precision=precision, kv_dtype=kv_dtype, threads=2)
    table, lengths, q = paged.table, paged.lengths, paged.q
    for request, token in ((0, 0), (0, 17), (0, 59), (1, 3), (2, 0)):
        first = sum(count for count, _ in lengths[:request]) + token
        seen = lengths[request][1] - lengths[request][0] + token + 1
        paged.table, paged.lengths, paged.q = table[request : request + 1], [(1, seen)], q[first : first + 1]
        np.testing.assert_array_equal(paged.run(precision=precision, kv_dtype=kv_dtype)[0], crowd[first])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kv_dtype", KV_TYPES)
def test_the_block_size_changes_no_bit(precision: str, kv_dtype: str) -> None:
    results = []
    for block_size in (1, 2, 5, 16, 48):
        paged = Paged(np.random.default_rng(4), [(1, 1), (30, 77), (1, 50)], 6, 2, 48, block_size)
        results.append(paged.run(precision=precision, kv_dtype=kv_dtype, threads=2))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_copy_blocks_copies_keys_and_values(rng: np.random.Generator) -> None:
    keys, values = rng.standard_normal((2, 5, 2, 4, 8)).astype(np.float32)
    new = core.run_op(
        "cpu", "copy_blocks", keys=keys, values=values, source=np.array([0, 3]), target=np.array([4, 1])
    )  # fmt: skip
    for after, before in zip(new, (keys, values), strict=True):
        np.testing.assert_array_equal(after, before[[0, 3, 2, 3, 0]])


@pytest.mark.parametrize("count", [0, 1, 6])
def test_gather_rows_picks_rows(rng: np.random.Generator, as_unaligned: Callable[..., np.ndarray], count: int) -> None:
    x = rng.standard_normal((5, 33)).astype(np.float32)
    indices = rng.integers(0, 5, count).astype(np.int32)
    np.testing.assert_array_equal(core.run_op("cpu", "gather_rows", x=as_unaligned(x), indices=indices), x[indices])
