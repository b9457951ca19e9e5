"""Random weights in every format of a model file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

QUANTISED = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")
PLAIN = ("F32", "F16", "BF16")

# Elements and bytes of a block, and where its half-precision factors stand.
BLOCKS = {
    "Q4_0": (32, 18, (0,)),
    "Q4_1": (32, 20, (0, 2)),
    "Q5_0": (32, 22, (0,)),
    "Q5_1": (32, 24, (0, 2)),
    "Q8_0": (32, 34, (0,)),
    "Q4_K": (256, 144, (0, 2)),
    "Q5_K": (256, 176, (0, 2)),
    "Q6_K": (256, 210, (208,)),
}


def bfloat16_bits(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def round_to_bfloat16(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return (bfloat16_bits(values).astype(np.uint32) << 16).view(np.float32)


def random_weight(core: Any, rng: np.random.Generator, dtype: str, rows: int, cols: int) -> Any:
    """A `Weight` of (rows, cols) whose values lie about one."""
    if dtype == "F32":
        data = rng.standard_normal((rows, cols), np.float32)
    elif dtype == "F16":
        data = rng.standard_normal((rows, cols), np.float32).astype(np.float16)
    elif dtype == "BF16":
        data = bfloat16_bits(rng.standard_normal((rows, cols), np.float32))
    else:
        data = random_blocks(rng, dtype, rows, cols)
    return core.Weight(dtype=dtype, shape=(rows, cols), data=np.ascontiguousarray(data).view(np.uint8).reshape(-1))


def random_blocks(rng: np.random.Generator, dtype: str, rows: int, cols: int) -> NDArray[np.uint8]:
    elements, size, factors = BLOCKS[dtype]
    blocks = rng.integers(0, 256, (rows * cols // elements, size), np.uint8)
    for at in factors:
        scale = (rng.uniform(0.002, 0.05, len(blocks)) * rng.choice([-1, 1], len(blocks))).astype(np.float16)
        blocks[:, at : at + 2] = scale.view(np.uint8).reshape(-1, 2)
    return blocks
