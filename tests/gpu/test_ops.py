"""Norms, rope, the cache, attention and element-wise ops against the CPU reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.gpu.weights import round_to_bfloat16


@pytest.mark.parametrize("dim", [1, 64, 576, 2560, 9000])
@pytest.mark.parametrize("with_residual", [False, True])
def test_rms_norm(core: Any, gpu: str, rng: Any, dim: int, with_residual: bool) -> None:
    arguments = {
        "x": rng.standard_normal((5, dim), np.float32),
        "weight": rng.standard_normal(dim, np.float32),
        "eps": 1e-5,
    }
    if with_residual:
        arguments["residual"] = rng.standard_normal((5, dim), np.float32)
    expected = core.run_op("cpu", "rms_norm", **arguments)
    actual = core.run_op(gpu, "rms_norm", **arguments)
    for left, right in zip(np.atleast_1d(actual), np.atleast_1d(expected), strict=True):
        np.testing.assert_allclose(left, right, rtol=3e-6, atol=1e-6)


def test_rms_norm_of_the_residual_alone(core: Any, gpu: str, rng: Any) -> None:
    residual, weight = rng.standard_normal((3, 320), np.float32), rng.standard_normal(320, np.float32)
    arguments = {"residual": residual, "weight": weight, "eps": 1e-6}
    kept, out = core.run_op(gpu, "rms_norm", **arguments)
    assert np.array_equal(kept, residual)
    np.testing.assert_allclose(out, core.run_op("cpu", "rms_norm", **arguments)[1], rtol=3e-6, atol=1e-6)


def test_rms_norm_of_each_head(core: Any, gpu: str, rng: Any) -> None:
    arguments = {
        "x": rng.standard_normal((4, 6, 128), np.float32),
        "weight": rng.standard_normal(128, np.float32),
        "eps": 1e-6,
    }
    np.testing.assert_allclose(
        core.run_op(gpu, "rms_norm", **arguments), core.run_op("cpu", "rms_norm", **arguments), rtol=3e-6, atol=1e-6
    )


def cos_sin(positions: int, dim: int) -> np.ndarray:
    angles = np.arange(positions)[:, None] / 10000 ** (np.arange(0, dim, 2) / dim)
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("dim", [8, 64, 96, 128, 256])
def test_rope(core: Any, gpu: str, rng: Any, dim: int, interleaved: bool) -> None:
    arguments = {
        "q": rng.standard_normal((7, 5, dim), np.float32),
        "k": rng.standard_normal((7, 2, dim), np.float32),
        "positions": rng.integers(0, 50, 7).astype(np.int32),
        "cos_sin": cos_sin(50, dim),
        "interleaved": interleaved,
    }
    for left, right in zip(core.run_op(gpu, "rope", **arguments), core.run_op("cpu", "rope", **arguments), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("kv_dtype", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("norms", [False, True])
def test_the_fused_rope_equals_its_parts(core: Any, gpu: str, rng: Any, kv_dtype: str, norms: bool) -> None:
    tokens, heads, kv_heads, dim = 6, 4, 2, 64
    q, k, v = (rng.standard_normal((tokens, n, dim), np.float32) for n in (heads, kv_heads, kv_heads))
    positions = np.arange(tokens, dtype=np.int32) + 3
    slots = np.array([5, 9, -1, 0, 31, 16], np.int64)
    cache = {name: np.zeros((2, kv_heads, 16, dim), np.float32) for name in ("keys", "values")}
    weights = {name: rng.standard_normal(dim, np.float32) for name in ("q_norm", "k_norm")} if norms else {}
    rope = {"positions": positions, "cos_sin": cos_sin(20, dim), "interleaved": False}
    actual = core.run_op(
        gpu, "rope_kv_write", q=q, k=k, v=v, slot_mapping=slots, kv_dtype=kv_dtype, eps=1e-6, **rope, **weights, **cache
    )
    if norms:
        q = core.run_op("cpu", "rms_norm", x=q, weight=weights["q_norm"], eps=1e-6)
        k = core.run_op("cpu", "rms_norm", x=k, weight=weights["k_norm"], eps=1e-6)
    q, k = core.run_op("cpu", "rope", q=q, k=k, **rope)
    keys, values = core.run_op("cpu", "kv_write", k=k, v=v, slot_mapping=slots, kv_dtype=kv_dtype, **cache)
    bound = {"F32": 1e-5, "F16": 2e-3, "BF16": 1.6e-2}[kv_dtype]
    for left, right in zip(actual, (q, keys, values), strict=True):
        np.testing.assert_allclose(left, right, rtol=bound, atol=bound / 4)


@pytest.mark.parametrize("kv_dtype", ["F32", "F16", "BF16"])
def test_kv_write(core: Any, gpu: str, rng: Any, kv_dtype: str) -> None:
    arguments = {
        "k": rng.standard_normal((5, 3, 40), np.float32),
        "v": rng.standard_normal((5, 3, 40), np.float32),
        "slot_mapping": np.array([40, -1, 7, 0, 63], np.int64),
        "keys": np.zeros((4, 3, 16, 40), np.float32),
        "values": np.zeros((4, 3, 16, 40), np.float32),
        "kv_dtype": kv_dtype,
    }
    for left, right in zip(
        core.run_op(gpu, "kv_write", **arguments), core.run_op("cpu", "kv_write", **arguments), strict=True
    ):
        assert np.array_equal(left, right)


def attention_case(
    rng: Any, lengths: list[tuple[int, int]], heads: int, kv_heads: int, dim: int, *, block_size: int = 16
) -> dict[str, Any]:
    """`lengths`: (query, sequence) of each request; blocks are shuffled."""
    tokens = sum(query for query, _ in lengths)
    per_request = max(-(-sequence // block_size) for _, sequence in lengths) + 1
    blocks = rng.permutation(per_request * len(lengths)).astype(np.int32)
    cache = (len(blocks), kv_heads, block_size, dim)
    return {
        "q": round_to_bfloat16(rng.standard_normal((tokens, heads, dim), np.float32)),
        "keys": round_to_bfloat16(rng.standard_normal(cache, np.float32)),
        "values": round_to_bfloat16(rng.standard_normal(cache, np.float32)),
        "block_table": blocks.reshape(len(lengths), per_request),
        "query_start_loc": np.cumsum([0] + [query for query, _ in lengths]).astype(np.int32),
        "seq_lens": np.array([sequence for _, sequence in lengths], np.int32),
        "scale": dim**-0.5,
    }


CASES = {
    "decode": [(1, 1), (1, 64), (1, 65), (1, 300), (1, 1500), (1, 17)],
    "prefill": [(130, 130), (40, 40), (1, 1)],
    "chunks": [(64, 200), (1, 77), (129, 400), (3, 3)],
    "padding": [(1, 30), (1, 0), (1, 0)],
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("shape", [(9, 3, 64), (32, 8, 128), (4, 4, 40), (10, 1, 256)])
def test_paged_attention(core: Any, gpu: str, rng: Any, case: str, shape: tuple[int, int, int]) -> None:
    arguments = attention_case(rng, CASES[case], *shape)
    expected = core.run_op("cpu", "attention", **arguments)
    actual = core.run_op(gpu, "attention", attention_backend="paged", **arguments)
    live = np.repeat(arguments["seq_lens"] > 0, np.diff(arguments["query_start_loc"]))
    np.testing.assert_allclose(actual[live], expected[live], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("shape", [(9, 3, 64), (16, 8, 128)])
def test_attention_in_bfloat16(core: Any, gpu: str, rng: Any, case: str, shape: tuple[int, int, int]) -> None:
    arguments = attention_case(rng, CASES[case], *shape)
    expected = core.run_op("cpu", "attention", **arguments)
    actual = core.run_op(gpu, "attention", kv_dtype="BF16", activation_dtype="BF16", precision="fast", **arguments)
    live = np.repeat(arguments["seq_lens"] > 0, np.diff(arguments["query_start_loc"]))
    np.testing.assert_allclose(actual[live], expected[live], rtol=2e-2, atol=1e-2)


def test_a_token_attends_alike_in_prefill_and_decode(core: Any, gpu: str, rng: Any) -> None:
    arguments = attention_case(rng, [(700, 700)], 6, 2, 64)
    whole = core.run_op(gpu, "attention", attention_backend="paged", batch_invariant=True, **arguments)
    for token in (0, 63, 64, 65, 500, 699):
        alone = arguments | {
            "q": arguments["q"][token : token + 1].copy(),
            "query_start_loc": np.array([0, 1], np.int32),
            "seq_lens": np.array([token + 1], np.int32),
        }
        assert np.array_equal(
            core.run_op(gpu, "attention", attention_backend="paged", batch_invariant=True, **alone)[0], whole[token]
        )


def test_silu_mul(core: Any, gpu: str, rng: Any) -> None:
    gate_up = rng.standard_normal((4, 600), np.float32) * 4
    np.testing.assert_allclose(
        core.run_op(gpu, "silu_mul", gate_up=gate_up),
        core.run_op("cpu", "silu_mul", gate_up=gate_up),
        rtol=5e-6,
        atol=1e-6,
    )


def test_gather_rows(core: Any, gpu: str, rng: Any) -> None:
    x, indices = rng.standard_normal((9, 70), np.float32), np.array([8, 0, 3, 3], np.int32)
    assert np.array_equal(core.run_op(gpu, "gather_rows", x=x, indices=indices), x[indices])


def test_copy_blocks(core: Any, gpu: str, rng: Any) -> None:
    keys, values = (rng.standard_normal((6, 2, 16, 24), np.float32) for _ in range(2))
    source, target = np.array([0, 3], np.int32), np.array([5, 1], np.int32)
    copied = core.run_op(gpu, "copy_blocks", keys=keys, values=values, source=source, target=target)
    for before, after in zip((keys, values), copied, strict=True):
        before[target] = before[source]
        assert np.array_equal(before, after)
