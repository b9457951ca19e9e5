"""`python -m tests.gpu.make_qwen3_golden` writes the golden ids of the small random Qwen3. Needs torch, no GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.gpu import qwen3
from tests.oracle.checkpoint import Checkpoint
from tests.oracle.golden import decode, dumps
from tests.oracle.transformer import Transformer

FILE = Path(__file__).parents[1] / "golden" / "qwen3-random-bf16.json"
LENGTHS, COUNT = (5, 64, 130), 64

METADATA = {
    "general.architecture": "qwen3",
    "qwen3.block_count": qwen3.LAYERS,
    "qwen3.embedding_length": qwen3.HIDDEN,
    "qwen3.attention.head_count": qwen3.HEADS,
    "qwen3.attention.head_count_kv": qwen3.KV_HEADS,
    "qwen3.attention.key_length": qwen3.HEAD_DIM,
    "qwen3.attention.layer_norm_rms_epsilon": qwen3.EPSILON,
    "qwen3.rope.freq_base": qwen3.THETA,
}


def make() -> dict[str, Any]:
    made = qwen3.weights()
    tensors = {name: torch.from_numpy((bits.astype(np.uint32) << 16).view(np.float32)) for name, bits in made.items()}
    model = Transformer(Checkpoint(METADATA, tensors))
    rng = np.random.default_rng(21)
    requests = []
    for length in LENGTHS:
        prompt = rng.integers(0, qwen3.VOCAB, length).tolist()
        requests.append({"name": f"{length} tokens", "prompt_token_ids": prompt} | decode(model, prompt, COUNT))
    oracle = {
        "name": "pytorch-float32",
        "version": torch.__version__,
        "command": "python -m tests.gpu.make_qwen3_golden",
    }
    return {"weights_sha256": qwen3.digest(made), "oracle": oracle, "requests": requests}


def main() -> None:
    golden = make()
    FILE.write_text(dumps(golden))
    print(json.dumps({request["name"]: request["smallest_margin"] for request in golden["requests"]}))


if __name__ == "__main__":
    main()
