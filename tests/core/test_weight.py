"""What a crafted file can put into a Weight ends as an error, never in memory that isn't there."""

from __future__ import annotations

import numpy as np
import pytest

import engine._core as core


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((0, 32), "positive"),
        ((-1, 32), "positive"),
        ((4, 2**70), "positive"),
        ((2**62, 2**62), "larger than any memory"),
        ((2**40, 2**40), "larger than any memory"),
        ((4, 33), "multiple of 32"),
        ((4, 32), "takes 80 bytes, not 18"),
        ((), "1 to 4 dimensions"),
        ((1, 1, 1, 1, 32), "1 to 4 dimensions"),
    ],
)
def test_a_shape_that_cannot_be_is_a_value_error(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        core.Weight(dtype="Q4_1", shape=shape, data=b"\0" * 18)


@pytest.mark.parametrize("dtype", ["Q2_K", "I32", "", "q4_1"])
def test_an_unknown_type_is_a_core_error(dtype: str) -> None:
    with pytest.raises(core.CoreError):
        core.Weight(dtype=dtype, shape=(1, 32), data=b"\0" * 20)


def test_a_shape_of_something_else_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        core.Weight(dtype="F32", shape=("a", 1), data=b"\0" * 4)


def test_data_without_a_buffer_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        core.Weight(dtype="F32", shape=(1, 1), data=3)


def test_a_weight_keeps_its_data_alive() -> None:
    weight = core.Weight(dtype="F32", shape=(1000, 1000), data=np.full((1000, 1000), 2.5, np.float32))
    assert weight.shape == (1000, 1000)
    assert weight.nbytes == 4_000_000
    assert (core.dequantize(weight) == 2.5).all()
