"""Llama, Qwen2 and Qwen3 in NumPy float64, straight from the papers: no cache, no batching, one prompt at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.engine.models.tiny import Shape

Array = NDArray[np.float64]


def logits(shape: Shape, weights: dict[str, NDArray[np.float32]], tokens: list[int], *, interleaved: bool) -> Array:
    """(tokens, vocabulary)"""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    x = w["token_embd.weight"][tokens]
    for layer in range(shape.layers):
        block = {name.split(".", 2)[2]: value for name, value in w.items() if name.startswith(f"blk.{layer}.")}
        x = x + _attention(shape, block, _norm(x, block["attn_norm.weight"]), w.get("rope_freqs.weight"), interleaved)
        y = _norm(x, block["ffn_norm.weight"])
        gate = y @ block["ffn_gate.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * (y @ block["ffn_up.weight"].T)) @ block["ffn_down.weight"].T
    return _norm(x, w["output_norm.weight"]) @ w.get("output.weight", w["token_embd.weight"]).T


def log_softmax(values: Array) -> Array:
    shifted = values - values.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _norm(x: Array, weight: Array) -> Array:
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * weight


def _attention(shape: Shape, block: dict[str, Array], x: Array, factors: Array | None, interleaved: bool) -> Array:
    count = len(x)
    q, k, v = (x @ block[f"attn_{n}.weight"].T + block.get(f"attn_{n}.bias", 0.0) for n in "qkv")
    q = q.reshape(count, shape.heads, shape.head_dim)
    k, v = (part.reshape(count, shape.kv_heads, shape.head_dim) for part in (k, v))
    if "attn_q_norm.weight" in block:
        q, k = _norm(q, block["attn_q_norm.weight"]), _norm(k, block["attn_k_norm.weight"])
    q, k = (_rope(part, shape.rope_theta, factors, interleaved) for part in (q, k))
    k, v = (np.repeat(part, shape.heads // shape.kv_heads, axis=1) for part in (k, v))
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(shape.head_dim)
    scores[:, np.triu(np.ones((count, count), dtype=bool), 1)] = -np.inf
    mixed = np.einsum("hqk,khd->qhd", np.exp(log_softmax(scores)), v)
    return mixed.reshape(count, -1) @ block["attn_output.weight"].T


def _rope(x: Array, theta: float, factors: Array | None, interleaved: bool) -> Array:
    half = x.shape[-1] // 2
    frequency = theta ** (-np.arange(half) / half) / (1.0 if factors is None else factors)
    angle = np.arange(len(x))[:, None, None] * frequency
    turned = np.empty_like(x)
    first, second = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(half), slice(half, None))
    turned[..., first] = x[..., first] * np.cos(angle) - x[..., second] * np.sin(angle)
    turned[..., second] = x[..., first] * np.sin(angle) + x[..., second] * np.cos(angle)
    return turned
