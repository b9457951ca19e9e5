"""A small random Qwen3 in BF16, with heads as wide as the real ones, and greedy decoding by the runner alone."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.gpu.weights import bfloat16_bits

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCAB = 3, 256, 4, 2, 128, 512, 600
EPSILON, THETA, CONTEXT, BLOCK = 1e-6, 1e6, 512, 16


def shapes() -> dict[str, tuple[int, ...]]:
    q, kv = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    layer = {
        "attn_norm": (HIDDEN,),
        "attn_q": (q, HIDDEN),
        "attn_k": (kv, HIDDEN),
        "attn_v": (kv, HIDDEN),
        "attn_q_norm": (HEAD_DIM,),
        "attn_k_norm": (HEAD_DIM,),
        "attn_output": (HIDDEN, q),
        "ffn_norm": (HIDDEN,),
        "ffn_gate": (FFN, HIDDEN),
        "ffn_up": (FFN, HIDDEN),
        "ffn_down": (HIDDEN, FFN),
    }
    names = {f"blk.{i}.{name}.weight": shape for i in range(LAYERS) for name, shape in layer.items()}
    top = {"token_embd.weight": (VOCAB, HIDDEN), "output.weight": (VOCAB, HIDDEN), "output_norm.weight": (HIDDEN,)}
    return top | names


def weights() -> dict[str, NDArray[np.uint16]]:
    """BF16 bits by GGUF name. The head is wide enough to keep the best tokens apart."""
    rng = np.random.default_rng(20)
    made = {}
    for name, shape in shapes().items():
        values = rng.standard_normal(shape, np.float32)
        if len(shape) == 1:
            values = 1 + values / 8
        elif name == "output.weight":
            values *= 0.3
        elif name != "token_embd.weight":
            values /= np.sqrt(np.float32(shape[1]))
        made[name] = bfloat16_bits(values)
    return made


def digest(made: dict[str, NDArray[np.uint16]]) -> str:
    total = hashlib.sha256()
    for name in sorted(made):
        total.update(made[name].tobytes())
    return total.hexdigest()


def build(core: Any, device: str, precision: str) -> Any:
    given = {}
    for name, bits in weights().items():
        vector = bits.ndim == 1
        data = (bits.astype(np.uint32) << 16).view(np.float32) if vector else bits
        dtype = "F32" if vector else "BF16"
        given[name] = core.Weight(dtype=dtype, shape=bits.shape, data=data.view(np.uint8).reshape(-1))
    config = core.ModelConfig(
        architecture="qwen3",
        num_layers=LAYERS,
        hidden_size=HIDDEN,
        intermediate_size=FFN,
        num_heads=HEADS,
        num_kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        vocab_size=VOCAB,
        context_length=CONTEXT,
        rms_norm_eps=EPSILON,
        rope_theta=THETA,
        rope_interleaved=False,
    )
    return core.Model(device=device, config=config, weights=given, precision=precision)


def decode(core: Any, model: Any, prompts: list[list[int]], count: int, **options: Any) -> list[list[int]]:
    """Greedy ids: each prompt at once, then all of them together, `count` tokens each."""
    blocks = CONTEXT // BLOCK
    runner = core.Runner(
        model,
        num_blocks=blocks * len(prompts),
        block_size=BLOCK,
        max_num_seqs=len(prompts),
        max_num_batched_tokens=CONTEXT,
        **options,
    )
    ids: list[list[int]] = [[] for _ in prompts]
    for row, prompt in enumerate(prompts):
        runner.add(row, np.array(prompt, np.int32), core.Sampling(), len(prompt))
        runner.set_blocks(row, 0, np.arange(row * blocks, (row + 1) * blocks, dtype=np.int32))
        one = np.array([row], np.int32)
        step = runner.launch(one, np.zeros(1, np.int32), np.array([len(prompt)], np.int32))
        ids[row].append(int(step.wait().token_ids[0]))
    rows = np.arange(len(prompts), dtype=np.int32)
    computed = np.array([len(prompt) for prompt in prompts], np.int32)
    for _ in range(count - 1):
        result = runner.launch(rows, computed.copy(), np.ones(len(prompts), np.int32)).wait()
        computed += 1
        for row, token in zip(result.rows, result.token_ids, strict=True):
            ids[int(row)].append(int(token))
    return ids
