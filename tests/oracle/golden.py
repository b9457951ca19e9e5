"""Makes golden files: greedy ids with log-probabilities and runners-up, and how they came to be."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from tests.oracle import checkpoint
from tests.oracle.tokenizer import Tokenizer
from tests.oracle.transformer import Transformer

GOLDEN = Path(__file__).parent.parent / "golden"
PROMPTS = GOLDEN / "prompts.json"


def make(model_file: Path, prompts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    loaded = checkpoint.load(model_file)
    model, tokenizer = Transformer(loaded), Tokenizer(loaded)
    requests = [answer(model, tokenizer, prompt) for prompt in prompts]
    return {
        "model": {"file": model_file.name, "sha256": checkpoint.sha256(model_file)},
        "oracle": provenance(),
        "requests": requests,
    }


def provenance() -> dict[str, str]:
    return {
        "name": "pytorch-float32",
        "mode": "float32, weights dequantised, eager, batch 1, KV cache",
        "version": torch.__version__,
        "command": "nox -s oracle -- --write",
        "script": "tests/oracle/golden.py",
        "python": platform.python_version(),
    }


def answer(model: Transformer, tokenizer: Tokenizer, prompt: dict[str, Any]) -> dict[str, Any]:
    text = tokenizer.chat(prompt["messages"]) if "messages" in prompt else prompt["prompt"]
    ids = tokenizer.encode(text, parse_special="messages" in prompt)
    greedy = decode(model, ids, prompt["max_tokens"])
    asked = {key: prompt[key] for key in ("name", "messages", "max_tokens") if key in prompt}
    return asked | {"prompt": text, "prompt_token_ids": ids} | greedy | {"text": tokenizer.decode(greedy["token_ids"])}


def decode(model: Transformer, prompt_ids: list[int], count: int) -> dict[str, Any]:
    """Greedy, never stopping at EOS; on a tie the lowest id."""
    model.reset()
    ids: list[int] = []
    logprobs: list[float] = []
    runners_up: list[dict[str, Any]] = []
    logits = model.forward(prompt_ids)[-1]
    for _ in range(count):
        distribution = logits.double().log_softmax(-1)
        best, second = two_best(distribution)
        ids.append(best)
        logprobs.append(round(distribution[best].item(), 6))
        runners_up.append({"token_id": second, "logprob": round(distribution[second].item(), 6)})
        logits = model.forward([best])[-1]
    gap = min(a - b["logprob"] for a, b in zip(logprobs, runners_up, strict=True))
    return {"token_ids": ids, "logprobs": logprobs, "runner_up": runners_up, "smallest_margin": round(gap, 6)}


def two_best(distribution: torch.Tensor) -> tuple[int, int]:
    best = int(distribution.argmax())
    others = distribution.clone()
    others[best] = -torch.inf
    return best, int(others.argmax())


def score(model: Transformer, prompt_ids: list[int], ids: list[int]) -> list[float]:
    """Teacher forcing: how many nats below the best token each of `ids` stands, given everything before it."""
    model.reset()
    logits = model.forward(prompt_ids + ids[:-1])[len(prompt_ids) - 1 :].double()
    return [round((row.max() - row[token]).item(), 6) for row, token in zip(logits, ids, strict=True)]


def dumps(golden: dict[str, Any]) -> str:
    """JSON with one request per line group and no line per number."""
    requests = ",\n".join("  " + json.dumps(request, ensure_ascii=False) for request in golden["requests"])
    head = {key: value for key, value in golden.items() if key != "requests"}
    return json.dumps(head, indent=1, ensure_ascii=False)[:-2] + f',\n "requests": [\n{requests}\n ]\n}}\n'
