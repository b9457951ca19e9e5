"""Products against NumPy, in every format."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import engine._core as core

FORMATS = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]
# Activations of the fast kernels are rounded to 8 bits in blocks of 32: about 1/250 of the largest of a block.
TOLERANCE = {"reference": 1e-5, "fast": 2e-2}


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(actual - expected).max(initial=0.0) / max(np.sqrt((expected**2).mean()), 1e-9))


@pytest.mark.parametrize("precision", ["reference", "fast"])
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(("tokens", "outputs"), [(0, 5), (1, 1), (1, 67), (3, 33), (17, 130)])
def test_products_equal_numpy(
    random_weight: Callable[..., tuple],
    rng: np.random.Generator,
    as_unaligned: Callable[..., np.ndarray],
    precision: str,
    dtype: str,
    tokens: int,
    outputs: int,
) -> None:
    weight, values = random_weight(dtype, outputs, 512)
    x = rng.standard_normal((tokens, 512)).astype(np.float32)
    bias = rng.standard_normal(outputs).astype(np.float32)
    actual = core.run_op("cpu", "matmul", x=as_unaligned(x), weight=weight, bias=bias, precision=precision, threads=2)
    expected = x.astype(np.float64) @ values.astype(np.float64).T + bias
    assert actual.shape == (tokens, outputs)
    if tokens:
        assert relative_error(actual, expected) < TOLERANCE[precision] * (5 if tokens * outputs > 1 else 20)


@pytest.mark.parametrize("precision", ["reference", "fast"])
@pytest.mark.parametrize("dtype", FORMATS)
def test_a_row_has_the_same_bits_alone_and_in_a_crowd(
    random_weight: Callable[..., tuple], rng: np.random.Generator, precision: str, dtype: str
) -> None:
    weight, _ = random_weight(dtype, 83, 768)
    x = rng.standard_normal((70, 768)).astype(np.float32)
    crowd = core.run_op("cpu", "matmul", x=x, weight=weight, precision=precision, threads=2)
    for count in (1, 2, 5, 16, 33):
        few = core.run_op("cpu", "matmul", x=x[:count], weight=weight, precision=precision, threads=1)
        np.testing.assert_array_equal(few, crowd[:count])


@pytest.mark.parametrize("precision", ["reference", "fast"])
@pytest.mark.parametrize("columns", [32, 96, 576])
def test_columns_need_not_be_a_power_of_two(
    random_weight: Callable[..., tuple], rng: np.random.Generator, precision: str, columns: int
) -> None:
    weight, values = random_weight("Q4_1", 40, columns)
    x = rng.standard_normal((9, columns)).astype(np.float32)
    actual = core.run_op("cpu", "matmul", x=x, weight=weight, precision=precision)
    assert relative_error(actual, x @ values.T) < TOLERANCE[precision] * 5


@pytest.mark.parametrize("columns", [1, 3, 15, 17, 50])
@pytest.mark.parametrize("precision", ["reference", "fast"])
def test_plain_numbers_take_any_width(
    random_weight: Callable[..., tuple], rng: np.random.Generator, columns: int, precision: str
) -> None:
    weight, values = random_weight("F32", 21, columns)
    x = rng.standard_normal((4, columns)).astype(np.float32)
    actual = core.run_op("cpu", "matmul", x=x, weight=weight, precision=precision)
    np.testing.assert_allclose(actual, x @ values.T, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("dtype", FORMATS)
def test_zero_activations_give_the_bias(random_weight: Callable[..., tuple], dtype: str) -> None:
    weight, _ = random_weight(dtype, 33, 256)
    bias = np.arange(33, dtype=np.float32)
    zeros = np.zeros((2, 256), np.float32)
    for precision in ("reference", "fast"):
        actual = core.run_op("cpu", "matmul", x=zeros, weight=weight, bias=bias, precision=precision)
        np.testing.assert_array_equal(actual, np.stack([bias, bias]))


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_embedding_is_the_dequantised_row(
    random_weight: Callable[..., tuple], rng: np.random.Generator, dtype: str
) -> None:
    weight, values = random_weight(dtype, 37, 512)
    ids = rng.integers(0, 37, 11).astype(np.int32)
    for precision in ("reference", "fast"):
        actual = core.run_op("cpu", "embedding", ids=ids, weight=weight, precision=precision)
        np.testing.assert_allclose(actual, values[ids], rtol=1e-6, atol=1e-7)
    assert core.run_op("cpu", "embedding", ids=ids[:0], weight=weight).shape == (0, 512)
