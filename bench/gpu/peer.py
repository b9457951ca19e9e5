"""The limit and the peer, measured with PyTorch where it is installed."""

from __future__ import annotations

import statistics
import time

from bench.gpu.shapes import ModelShape


def read_bandwidth() -> float:
    """Bytes per second of a sum over 8 GB."""
    import torch

    data = torch.ones(2 * 10**9, dtype=torch.float32, device="cuda")
    seconds = []
    for _ in range(12):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        data.sum()
        end.record()
        torch.cuda.synchronize()
        seconds.append(begin.elapsed_time(end) / 1e3)
    size = data.numel() * 4
    del data
    torch.cuda.empty_cache()
    return size / statistics.median(seconds[2:])


def hugging_face_decode(shape: ModelShape, tokens: int = 64) -> float:
    """Tokens per second of `generate`, eager, batch 1, 128-token prompt, random BF16 weights."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        intermediate_size=shape.ffn,
        vocab_size=shape.vocab,
        tie_word_embeddings=True,
    )
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = Qwen3ForCausalLM(config).eval()
    prompt = torch.randint(0, 150_000, (1, 128), device="cuda")
    seconds = []
    for count in (8, tokens, tokens):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        model.generate(prompt, max_new_tokens=count, min_new_tokens=count, do_sample=False, pad_token_id=0)
        torch.cuda.synchronize()
        seconds.append((time.perf_counter() - begin) / count)
    del model
    torch.cuda.empty_cache()
    return 1 / statistics.median(seconds[1:])
