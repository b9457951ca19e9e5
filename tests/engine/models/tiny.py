"""Small random models, written with the `gguf` package: real files for the loader, real arithmetic for the core."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

SPECIAL = ["<|begin|>", "<|end|>", "<|user|>"]
CHAT_TEMPLATE = "{% for m in messages %}<|user|>{{ m.content }}{% endfor %}"


@dataclass(frozen=True)
class Shape:
    architecture: str = "llama"
    layers: int = 2
    hidden: int = 64
    ffn: int = 96
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    context: int = 256
    rope_theta: float = 10000.0
    tied: bool = False
    rope_factors: bool = False  # a rope_freqs tensor, as Llama 3 files have


def vocabulary() -> tuple[list[str], list[int], list[str]]:
    """Tokens, types and merges of a byte-level vocabulary: 256 bytes, some merges, three control tokens."""
    themselves = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = [chr(byte) for byte in themselves] + [chr(0x100 + i) for i in range(256 - len(themselves))]
    merges = ["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or"]
    tokens = letters + [merge.replace(" ", "") for merge in merges] + SPECIAL
    return tokens, [1] * (len(tokens) - len(SPECIAL)) + [3] * len(SPECIAL), merges


def weights(shape: Shape, seed: int = 1) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(seed)

    def matrix(*size: int) -> NDArray[np.float32]:
        return (rng.standard_normal(size) * (1.5 / size[-1] ** 0.5)).astype(np.float32)

    def near_one(size: int) -> NDArray[np.float32]:
        return (1 + 0.2 * rng.standard_normal(size)).astype(np.float32)

    query, keys, vocab = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim, len(vocabulary()[0])
    found = {"token_embd.weight": rng.standard_normal((vocab, shape.hidden)).astype(np.float32)}
    found["output_norm.weight"] = near_one(shape.hidden)
    if not shape.tied:
        found["output.weight"] = matrix(vocab, shape.hidden)
    if shape.rope_factors:
        found["rope_freqs.weight"] = np.linspace(1, 8, shape.head_dim // 2, dtype=np.float32)
    for layer in range(shape.layers):
        block = {
            "attn_norm.weight": near_one(shape.hidden),
            "attn_q.weight": matrix(query, shape.hidden),
            "attn_k.weight": matrix(keys, shape.hidden),
            "attn_v.weight": matrix(keys, shape.hidden),
            "attn_output.weight": matrix(shape.hidden, query),
            "ffn_norm.weight": near_one(shape.hidden),
            "ffn_gate.weight": matrix(shape.ffn, shape.hidden),
            "ffn_up.weight": matrix(shape.ffn, shape.hidden),
            "ffn_down.weight": matrix(shape.hidden, shape.ffn),
        }
        if shape.architecture == "qwen2":
            block |= {
                f"attn_{n}.bias": rng.standard_normal(s).astype(np.float32)
                for n, s in (("q", query), ("k", keys), ("v", keys))
            }
        if shape.architecture == "qwen3":
            block |= {f"attn_{n}_norm.weight": near_one(shape.head_dim) for n in "qk"}
        found |= {f"blk.{layer}.{name}": value for name, value in block.items()}
    return found


def write_gguf(
    path: Path,
    shape: Shape = Shape(),
    *,
    dtype: str = "F32",
    metadata: dict[str, Any] | None = None,
    tensors: dict[str, NDArray[np.float32]] | None = None,
) -> dict[str, NDArray[np.float32]]:
    """Writes the file and returns its weights as float32, as they are after quantising."""
    writer = gguf.GGUFWriter(path, shape.architecture)
    _write_metadata(writer, shape)
    for key, value in (metadata or {}).items():
        (writer.add_string if isinstance(value, str) else writer.add_uint32)(key, value)
    kept = {}
    for name, value in (tensors or weights(shape)).items():
        kind = gguf.GGMLQuantizationType[dtype if value.ndim == 2 else "F32"]
        data = gguf.quantize(value, kind)
        kept[name] = gguf.dequantize(data, kind).astype(np.float32).reshape(value.shape)
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return kept


def _write_metadata(writer: gguf.GGUFWriter, shape: Shape) -> None:
    tokens, types, merges = vocabulary()
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(shape.rope_theta)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(tokens.index("<|begin|>"))
    writer.add_eos_token_id(tokens.index("<|end|>"))
    writer.add_chat_template(CHAT_TEMPLATE)
