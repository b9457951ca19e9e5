"""Every block format against the gguf package's own dequantisation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import engine._core as core

FORMATS = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("rows", [1, 7])
def test_values_equal_those_of_the_gguf_package(random_weight: Callable[..., tuple], dtype: str, rows: int) -> None:
    weight, expected = random_weight(dtype, rows, 768)
    np.testing.assert_allclose(core.dequantize(weight), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_op_equals_the_function(random_weight: Callable[..., tuple], dtype: str) -> None:
    weight, _ = random_weight(dtype, 3, 256)
    np.testing.assert_array_equal(core.run_op("cpu", "dequantize", weight=weight, threads=2), core.dequantize(weight))


@pytest.mark.parametrize("dtype", FORMATS)
def test_data_may_begin_at_an_odd_address(random_data: Callable[..., np.ndarray], dtype: str) -> None:
    data = random_data(dtype, 2, 256)
    buffer = b"\0" + data.tobytes()
    shifted = core.Weight(dtype=dtype, shape=(2, 256), data=memoryview(buffer)[1:])
    straight = core.Weight(dtype=dtype, shape=(2, 256), data=data)
    np.testing.assert_array_equal(core.dequantize(shifted), core.dequantize(straight))


def test_subnormal_and_extreme_half_floats_are_exact() -> None:
    bits = np.arange(65536, dtype=np.uint16)
    finite = bits[np.isfinite(bits.view(np.float16))]
    weight = core.Weight(dtype="F16", shape=(1, len(finite)), data=finite.tobytes())
    np.testing.assert_array_equal(core.dequantize(weight)[0], finite.view(np.float16).astype(np.float32))
