"""Products and look-ups with weights of every format. Bounds are in units of the sum of |x| * |w|."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.gpu.weights import PLAIN, QUANTISED, random_weight, round_to_bfloat16

F32_BOUND = 2e-6
BF16_OUT = 2.0**-8  # one rounding of a result to BF16


def scale_of(core: Any, weight: Any, x: np.ndarray) -> np.ndarray:
    return np.abs(x) @ np.abs(core.dequantize(weight)).T + 1e-3


@pytest.mark.parametrize("dtype", PLAIN + QUANTISED)
@pytest.mark.parametrize("rows", [1, 3, 17, 70])
def test_matmul_equals_the_reference(core: Any, gpu: str, rng: Any, dtype: str, rows: int) -> None:
    weight = random_weight(core, rng, dtype, 133, 512)
    x = rng.standard_normal((rows, 512), np.float32)
    bias = rng.standard_normal(133, np.float32)
    expected = core.run_op("cpu", "matmul", x=x, weight=weight, bias=bias)
    actual = core.run_op(gpu, "matmul", x=x, weight=weight, bias=bias, precision="fast")
    assert np.max(np.abs(actual - expected) / scale_of(core, weight, x)) < F32_BOUND


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("cols", [1, 7, 24, 100])
def test_matmul_takes_any_number_of_inputs(core: Any, gpu: str, rng: Any, dtype: str, cols: int) -> None:
    weight = random_weight(core, rng, dtype, 9, cols)
    x = rng.standard_normal((5, cols), np.float32)
    expected = core.run_op("cpu", "matmul", x=x, weight=weight)
    actual = core.run_op(gpu, "matmul", x=x, weight=weight)
    assert np.max(np.abs(actual - expected) / scale_of(core, weight, x)) < F32_BOUND


@pytest.mark.parametrize("dtype", ["Q4_1", "Q6_K", "F32"])
@pytest.mark.parametrize("rows", [1, 4, 40])
def test_silu_and_product_are_fused(core: Any, gpu: str, rng: Any, dtype: str, rows: int) -> None:
    gate, up = (random_weight(core, rng, dtype, 96, 256) for _ in range(2))
    x = rng.standard_normal((rows, 256), np.float32) / 8
    gates = x @ core.dequantize(gate).T
    expected = gates / (1 + np.exp(-gates)) * (x @ core.dequantize(up).T)
    actual = core.run_op(gpu, "matmul_silu_mul", x=x, gate=gate, up=up)
    np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("rows", [1, 2, 16, 31, 64, 65, 200, 300])
@pytest.mark.parametrize("shape", [(64, 64), (136, 256), (2560, 1024), (1000, 4096)])
@pytest.mark.parametrize("invariant", [False, True])
def test_bfloat16_products_equal_the_reference(
    core: Any, gpu: str, rng: Any, rows: int, shape: tuple[int, int], invariant: bool
) -> None:
    weight = random_weight(core, rng, "BF16", *shape)
    x = round_to_bfloat16(rng.standard_normal((rows, shape[1]), np.float32))
    expected = x @ core.dequantize(weight).T
    actual = core.run_op(
        gpu, "matmul", x=x, weight=weight, precision="fast", activation_dtype="BF16", batch_invariant=invariant
    )
    assert np.max(np.abs(actual - expected) / scale_of(core, weight, x)) < F32_BOUND


@pytest.mark.parametrize("rows", [1, 2, 33, 64, 65, 130])
@pytest.mark.parametrize("shape", [(64, 64), (200, 512), (1024, 2560)])
def test_bfloat16_silu_and_product_are_fused(core: Any, gpu: str, rng: Any, rows: int, shape: tuple[int, int]) -> None:
    gate, up = (random_weight(core, rng, "BF16", *shape) for _ in range(2))
    x = round_to_bfloat16(rng.standard_normal((rows, shape[1]), np.float32) / 16)
    gates = x @ core.dequantize(gate).T
    expected = gates / (1 + np.exp(-gates)) * (x @ core.dequantize(up).T)
    actual = core.run_op(gpu, "matmul_silu_mul", x=x, gate=gate, up=up, precision="fast", activation_dtype="BF16")
    np.testing.assert_allclose(actual, expected, rtol=2 * BF16_OUT, atol=2e-3)


@pytest.mark.parametrize("activation", ["F32", "BF16"])
def test_a_row_has_the_same_bits_in_any_batch(core: Any, gpu: str, rng: Any, activation: str) -> None:
    weight = random_weight(core, rng, "BF16", 512, 1024)
    x = round_to_bfloat16(rng.standard_normal((150, 1024), np.float32))
    options = {"weight": weight, "precision": "fast", "activation_dtype": activation, "batch_invariant": True}
    whole = core.run_op(gpu, "matmul", x=x, **options)
    for rows in (1, 2, 16, 17, 40, 100):
        assert np.array_equal(core.run_op(gpu, "matmul", x=x[:rows].copy(), **options), whole[:rows]), rows


@pytest.mark.parametrize("dtype", PLAIN + QUANTISED)
def test_embedding_gives_the_bits_of_the_reference(core: Any, gpu: str, rng: Any, dtype: str) -> None:
    weight = random_weight(core, rng, dtype, 50, 512)
    ids = rng.integers(0, 50, 23).astype(np.int32)
    actual = core.run_op(gpu, "embedding", ids=ids, weight=weight)
    assert np.array_equal(actual, core.dequantize(weight)[ids])
