"""Models of real shapes with random BF16 weights; every matrix is a view of one random buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ModelShape:
    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    head_dim: int = 128
    vocab: int = 151_936

    @property
    def matrices(self) -> dict[str, tuple[int, int]]:
        """One layer's, as (outputs, inputs)."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "attn_q": (q, self.hidden),
            "attn_k": (kv, self.hidden),
            "attn_v": (kv, self.hidden),
            "attn_output": (self.hidden, q),
            "ffn_gate": (self.ffn, self.hidden),
            "ffn_up": (self.ffn, self.hidden),
            "ffn_down": (self.hidden, self.ffn),
        }

    @property
    def bytes_per_token(self) -> int:
        """Weights that a decoded token reads: every layer and the tied head."""
        layer = sum(rows * cols for rows, cols in self.matrices.values())
        return 2 * (self.layers * layer + self.vocab * self.hidden)


QWEN3_4B = ModelShape("Qwen3-4B", layers=36, hidden=2560, heads=32, kv_heads=8, ffn=9728)
QWEN3_0_6B = ModelShape("Qwen3-0.6B", layers=28, hidden=1024, heads=16, kv_heads=8, ffn=3072)


def random_bfloat16(count: int) -> NDArray[np.uint16]:
    rng = np.random.default_rng(0)
    values = rng.standard_normal(1 << 24, np.float32) * 0.02
    return np.resize((values.view(np.uint32) >> 16).astype(np.uint16), count)


def build_model(core: Any, shape: ModelShape, device: str) -> Any:
    pool = random_bfloat16(shape.vocab * shape.hidden)

    def matrix(rows: int, cols: int) -> Any:
        return core.Weight(dtype="BF16", shape=(rows, cols), data=pool[: rows * cols].view(np.uint8))

    def ones(size: int) -> Any:
        return core.Weight(dtype="F32", shape=(size,), data=np.ones(size, np.float32).view(np.uint8))

    weights = {"token_embd.weight": matrix(shape.vocab, shape.hidden), "output_norm.weight": ones(shape.hidden)}
    for layer in range(shape.layers):
        for name, (rows, cols) in shape.matrices.items():
            weights[f"blk.{layer}.{name}.weight"] = matrix(rows, cols)
        for name, size in {"attn": shape.hidden, "ffn": shape.hidden}.items():
            weights[f"blk.{layer}.{name}_norm.weight"] = ones(size)
        for name in ("attn_q_norm", "attn_k_norm"):
            weights[f"blk.{layer}.{name}.weight"] = ones(shape.head_dim)
    config = core.ModelConfig(
        architecture="qwen3",
        num_layers=shape.layers,
        hidden_size=shape.hidden,
        intermediate_size=shape.ffn,
        num_heads=shape.heads,
        num_kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        vocab_size=shape.vocab,
        context_length=4096,
        rms_norm_eps=1e-6,
        rope_theta=1e6,
        rope_interleaved=False,
    )
    return core.Model(device=device, config=config, weights=weights, precision="fast")
