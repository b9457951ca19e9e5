"""What the core's tests share: weights of every format with random contents, and a transformer in NumPy."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import gguf
import numpy as np
import pytest

import engine._core as core

FORMATS = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]
# Where the 16-bit scales of a block lie; every other byte may be anything.
SCALES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2],
    "Q6_K": [208],
}  # fmt: skip


def random_bytes(rng: np.random.Generator, dtype: str, rows: int, cols: int, scale: float) -> np.ndarray:
    """(rows, bytes of a row): a random tensor of the format, whose values are of the order of `scale`."""
    if dtype in ("F32", "F16", "BF16"):
        values = (rng.standard_normal((rows, cols)) * scale).astype(np.float32)
        if dtype == "F16":
            return values.astype(np.float16).view(np.uint8)
        bits = values.view(np.uint32)
        return values.view(np.uint8) if dtype == "F32" else (bits >> 16).astype(np.uint16).view(np.uint8)
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[dtype]]
    blocks = rng.integers(0, 256, (rows, cols // elements, size), dtype=np.uint8)
    for offset in SCALES[dtype]:
        factors = rng.standard_normal((rows, cols // elements)) * scale / (200 if "K" in dtype else 10)
        blocks[:, :, offset : offset + 2] = factors.astype(np.float16)[..., None].view(np.uint8)
    return blocks.reshape(rows, -1)


def reference_values(dtype: str, data: np.ndarray) -> np.ndarray:
    return np.asarray(gguf.dequantize(data, gguf.GGMLQuantizationType[dtype]), np.float32)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """The same numbers on each run, others for each test."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture
def random_data(rng: np.random.Generator) -> Callable[..., np.ndarray]:
    """Makes the bytes of a tensor of a format."""
    return lambda dtype, rows, cols, scale=1.0: random_bytes(rng, dtype, rows, cols, scale)


@pytest.fixture
def random_weight(rng: np.random.Generator) -> Callable[..., tuple[core.Weight, np.ndarray]]:
    """Makes a weight of a format and its values by the gguf package."""

    def make(dtype: str, rows: int, cols: int, scale: float = 1.0) -> tuple[core.Weight, np.ndarray]:
        data = random_bytes(rng, dtype, rows, cols, scale)
        return core.Weight(dtype=dtype, shape=(rows, cols), data=data.tobytes()), reference_values(dtype, data)

    return make


def unaligned(array: np.ndarray, extra: int = 3) -> np.ndarray:
    """The same values as a view whose rows lie apart and begin in the middle of a cache line."""
    array = np.asarray(array, np.float32)
    wide = np.full((*array.shape[:-1], array.shape[-1] + extra), np.nan, np.float32)
    view = wide[..., 1 : 1 + array.shape[-1]]
    view[...] = array
    return view


SIZES: dict[str, Any] = {
    "num_layers": 2, "hidden_size": 64, "intermediate_size": 96, "num_heads": 4, "num_kv_heads": 2, "head_dim": 16,
    "vocab_size": 101, "context_length": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
}  # fmt: skip


class Transformer:
    """A small random model: its weights for the core, and the same computed by NumPy in float64."""

    def __init__(self, architecture: str, seed: int = 0, dtype: str = "F32", interleaved: bool = True, **sizes: Any):
        self.architecture, self.interleaved, self.sizes = architecture, interleaved, {**SIZES, **sizes}
        self.rng = np.random.default_rng(seed)
        self.values: dict[str, np.ndarray] = {}
        self.weights: dict[str, core.Weight] = {}
        s = self.sizes
        q, kv = s["num_heads"] * s["head_dim"], s["num_kv_heads"] * s["head_dim"]
        hidden, ffn = s["hidden_size"], s["intermediate_size"]
        self._add("token_embd.weight", (s["vocab_size"], hidden), dtype, 1.0)
        self._add("output_norm.weight", (hidden,), "F32", 1.0)
        for i in range(s["num_layers"]):
            for name, rows, cols in [
                ("attn_q", q, hidden), ("attn_k", kv, hidden), ("attn_v", kv, hidden), ("attn_output", hidden, q),
                ("ffn_gate", ffn, hidden), ("ffn_up", ffn, hidden), ("ffn_down", hidden, ffn),
            ]:  # fmt: skip
                self._add(f"blk.{i}.{name}.weight", (rows, cols), dtype, 0.3)
                if architecture == "qwen2" and name in ("attn_q", "attn_k", "attn_v"):
                    self._add(f"blk.{i}.{name}.bias", (rows,), "F32", 0.5)
            for name in ("attn_norm", "ffn_norm"):
                self._add(f"blk.{i}.{name}.weight", (hidden,), "F32", 1.0)
            if architecture == "qwen3":
                for name in ("attn_q_norm", "attn_k_norm"):
                    self._add(f"blk.{i}.{name}.weight", (s["head_dim"],), "F32", 1.0)

    def _add(self, name: str, shape: tuple[int, ...], dtype: str, scale: float) -> None:
        data = random_bytes(self.rng, dtype, shape[0] if len(shape) == 2 else 1, shape[-1], scale)
        self.values[name] = reference_values(dtype, data).reshape(shape).astype(np.float64)
        self.weights[name] = core.Weight(dtype=dtype, shape=shape, data=data.tobytes())

    def config(self) -> core.ModelConfig:
        return core.ModelConfig(architecture=self.architecture, rope_interleaved=self.interleaved, **self.sizes)

    def model(self, precision: str = "reference", threads: int = 1, **changes: Any) -> core.Model:
        weights = {**self.weights, **changes.get("weights", {})}
        return core.Model(device="cpu", config=self.config(), weights=weights, precision=precision, threads=threads)

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        scale = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + self.sizes["rms_norm_eps"])
        return x * scale * self.values[name]

    def _rotate(self, x: np.ndarray) -> np.ndarray:
        half = x.shape[-1] // 2
        inverse = self.sizes["rope_theta"] ** (-2 * np.arange(half) / x.shape[-1])
        angles = np.arange(x.shape[0])[:, None, None] * inverse
        first = slice(0, None, 2) if self.interleaved else slice(0, half)
        second = slice(1, None, 2) if self.interleaved else slice(half, None)
        out = np.empty_like(x)
        out[..., first] = x[..., first] * np.cos(angles) - x[..., second] * np.sin(angles)
        out[..., second] = x[..., first] * np.sin(angles) + x[..., second] * np.cos(angles)
        return out

    def logits(self, token_ids: list[int]) -> np.ndarray:
        """(tokens, vocab)"""
        s, v = self.sizes, self.values
        x = v["token_embd.weight"][token_ids]
        mask = np.triu(np.full((len(token_ids),) * 2, -np.inf), 1)
        for i in range(s["num_layers"]):
            blk = f"blk.{i}."
            normed = self._norm(x, f"{blk}attn_norm.weight")
            parts = []
            for name in ("attn_q", "attn_k", "attn_v"):
                part = normed @ v[f"{blk}{name}.weight"].T + v.get(f"{blk}{name}.bias", 0.0)
                parts.append(part.reshape(len(token_ids), -1, s["head_dim"]))
            q, k, value = parts
            if self.architecture == "qwen3":
                q, k = self._norm(q, f"{blk}attn_q_norm.weight"), self._norm(k, f"{blk}attn_k_norm.weight")
            q, k = self._rotate(q), self._rotate(k)
            group = s["num_heads"] // s["num_kv_heads"]
            k, value = k.repeat(group, 1), value.repeat(group, 1)
            scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(s["head_dim"]) + mask
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            mixed = np.einsum("hqk,khd->qhd", shares, value).reshape(len(token_ids), -1)
            x = x + mixed @ v[f"{blk}attn_output.weight"].T
            normed = self._norm(x, f"{blk}ffn_norm.weight")
            gate = normed @ v[f"{blk}ffn_gate.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * (normed @ v[f"{blk}ffn_up.weight"].T)) @ v[f"{blk}ffn_down.weight"].T
        return self._norm(x, "output_norm.weight") @ v["token_embd.weight"].T

    def greedy(self, token_ids: list[int], count: int) -> list[int]:
        ids = list(token_ids)
        for _ in range(count):
            ids.append(int(self.logits(ids)[-1].argmax()))
        return ids[len(token_ids) :]


def int32(values: Any) -> np.ndarray:
    return np.asarray(values, np.int32)


class Loop:
    """The least scheduler there can be: every row owns its own blocks and is stepped by hand."""

    def __init__(self, model: core.Model, rows: int = 8, tokens_per_row: int = 128, **options: Any):
        options = {"block_size": 8, "max_num_seqs": rows, **options}
        self.blocks = tokens_per_row // options["block_size"]
        self.runner = core.Runner(model, num_blocks=rows * self.blocks, **options)
        self.computed: dict[int, int] = {}
        self.tokens: dict[int, list[int]] = {}

    def add(self, row: int, prompt: list[int], sampling: core.Sampling | None = None, computed: int = 0) -> None:
        self.runner.add(row, int32(prompt), sampling or core.Sampling(), len(prompt))
        self.runner.set_blocks(row, 0, int32(range(row * self.blocks, (row + 1) * self.blocks)))
        self.computed[row], self.tokens[row] = computed, list(prompt)

    def remove(self, row: int) -> None:
        self.runner.remove(row)
        del self.computed[row], self.tokens[row]

    def step(self, chunk: int = 512, allowed: dict[int, np.ndarray] | None = None) -> core.StepOutput:
        rows = sorted(self.computed)
        counts = [min(chunk, len(self.tokens[row]) - self.computed[row]) for row in rows]
        pending = self.runner.launch(int32(rows), int32([self.computed[r] for r in rows]), int32(counts), allowed)
        output = pending.wait()
        for row, count in zip(rows, counts, strict=True):
            self.computed[row] += count
        for row, token in zip(output.rows, output.token_ids, strict=True):
            self.tokens[int(row)].append(int(token))
        return output

    def generate(self, row: int, count: int, chunk: int = 512) -> list[int]:
        """Steps all rows until `row` has `count` more tokens than its prompt."""
        start = len(self.tokens[row])
        while len(self.tokens[row]) < start + count:
            self.step(chunk)
        return self.tokens[row][start : start + count]


@pytest.fixture
def transformer() -> type[Transformer]:
    return Transformer


@pytest.fixture
def loop() -> type[Loop]:
    return Loop


@pytest.fixture
def as_unaligned() -> Callable[..., np.ndarray]:
    return unaligned
