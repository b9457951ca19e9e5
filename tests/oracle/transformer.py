"""Llama, Qwen2 and Qwen3 dense decoders in float32, with a contiguous KV cache: one sequence at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from tests.oracle.checkpoint import Checkpoint

Tensor = torch.Tensor


@dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    epsilon: float
    rope_theta: float


class Transformer:
    """`forward(ids)` continues the sequence that the cache holds and returns logits (len(ids), vocabulary)."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.shape = shape_of(checkpoint)
        self.weights = checkpoint.tensors
        if checkpoint.architecture == "llama":
            self.weights = unpermuted(checkpoint.tensors, self.shape)
        self.output = self.weights.get("output.weight", self.weights["token_embd.weight"])
        self.frequency_divisors = checkpoint.tensors.get("rope_freqs.weight")
        self.reset()

    def reset(self) -> None:
        self.cache: list[tuple[Tensor, Tensor] | None] = [None] * self.shape.layers
        self.length = 0

    @torch.inference_mode()
    def forward(self, ids: list[int]) -> Tensor:
        x = self.weights["token_embd.weight"][torch.tensor(ids)]  # (tokens, hidden)
        cosine, sine = self.rotation(torch.arange(self.length, self.length + len(ids)))
        for layer in range(self.shape.layers):
            x = x + self.attention(layer, self.norm(x, f"blk.{layer}.attn_norm"), cosine, sine)
            x = x + self.feed_forward(layer, self.norm(x, f"blk.{layer}.ffn_norm"))
        self.length += len(ids)
        return F.linear(self.norm(x, "output_norm"), self.output)

    def attention(self, layer: int, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        shape, tokens = self.shape, x.shape[0]
        query = self.linear(x, f"blk.{layer}.attn_q").view(tokens, shape.heads, shape.head_dim)
        key = self.linear(x, f"blk.{layer}.attn_k").view(tokens, shape.kv_heads, shape.head_dim)
        value = self.linear(x, f"blk.{layer}.attn_v").view(tokens, shape.kv_heads, shape.head_dim)
        if f"blk.{layer}.attn_q_norm.weight" in self.weights:  # Qwen3 normalises each head before the rotation
            query = self.norm(query, f"blk.{layer}.attn_q_norm")
            key = self.norm(key, f"blk.{layer}.attn_k_norm")
        key, value = self.remember(layer, rotate(key, cosine, sine), value)
        mixed = attend(rotate(query, cosine, sine), key, value)
        return self.linear(mixed.reshape(tokens, -1), f"blk.{layer}.attn_output")

    def remember(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        past = self.cache[layer]
        if past is not None:
            key, value = torch.cat([past[0], key]), torch.cat([past[1], value])
        self.cache[layer] = key, value
        return key, value

    def feed_forward(self, layer: int, x: Tensor) -> Tensor:
        gate = F.silu(self.linear(x, f"blk.{layer}.ffn_gate"))
        return self.linear(gate * self.linear(x, f"blk.{layer}.ffn_up"), f"blk.{layer}.ffn_down")

    def linear(self, x: Tensor, name: str) -> Tensor:
        return F.linear(x, self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias"))

    def norm(self, x: Tensor, name: str) -> Tensor:
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + self.shape.epsilon)
        return x * scale * self.weights[f"{name}.weight"]

    def rotation(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines (tokens, 1, head_dim / 2); the angles are formed in float64."""
        exponents = torch.arange(0, self.shape.head_dim, 2, dtype=torch.float64) / self.shape.head_dim
        frequencies = self.shape.rope_theta**-exponents
        if self.frequency_divisors is not None:
            frequencies = frequencies / self.frequency_divisors.double()
        angles = positions.double()[:, None, None] * frequencies
        return angles.cos().float(), angles.sin().float()


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """(tokens, heads, dim) over (context, kv_heads, dim); the last query stands at the last position."""
    tokens, context = query.shape[0], key.shape[0]
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)
    scores = torch.einsum("qhd,khd->hqk", query, key) * query.shape[-1] ** -0.5
    future = torch.ones(tokens, context, dtype=torch.bool).triu(context - tokens + 1)
    return torch.einsum("hqk,khd->qhd", scores.masked_fill(future, -torch.inf).softmax(-1), value)


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotates the pairs (i, i + dim / 2)."""
    low, high = x.chunk(2, dim=-1)
    return torch.cat([low * cosine - high * sine, high * cosine + low * sine], dim=-1)


def unpermuted(tensors: dict[str, Tensor], shape: Shape) -> dict[str, Tensor]:
    """GGUF stores `llama` queries and keys for interleaved pairs; this puts the halves back."""
    turned = {"attn_q.weight": shape.heads, "attn_k.weight": shape.kv_heads}
    ends = {name: name.split(".", 2)[-1] for name in tensors}
    return {name: halves(t, turned[ends[name]]) if ends[name] in turned else t for name, t in tensors.items()}


def halves(weight: Tensor, heads: int) -> Tensor:
    rows, columns = weight.shape
    return weight.view(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)


def shape_of(checkpoint: Checkpoint) -> Shape:
    heads, hidden = checkpoint.parameter("attention.head_count"), checkpoint.parameter("embedding_length")
    return Shape(
        layers=checkpoint.parameter("block_count"),
        hidden=hidden,
        heads=heads,
        kv_heads=checkpoint.parameter("attention.head_count_kv", heads),
        head_dim=checkpoint.parameter("attention.key_length", hidden // heads),
        epsilon=checkpoint.parameter("attention.layer_norm_rms_epsilon"),
        rope_theta=checkpoint.parameter("rope.freq_base", 10_000.0),
    )
