"""Hugging Face transformers as an oracle: greedy ids, or teacher forcing, as the JSON that the exact gate reads."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

torch: Any = None
DTYPES = {"float32": "float32", "bfloat16": "bfloat16", "float16": "float16"}


def main() -> int:
    global torch
    options = arguments()
    torch = importlib.import_module("torch")
    transformers = importlib.import_module("transformers")
    model, tokenizer = load(transformers, Path(options.model), options.mode, options.device)
    if options.prompts is not None:
        asked = json.loads(options.prompts.read_text(encoding="utf-8"))
        requests = [generated(model, prompt_ids(tokenizer, one), one.get("max_tokens", 64)) for one in asked]
    else:
        pairs = zip(options.prompt_ids, options.token_ids, strict=True)
        requests = [scored(model, ids(prompt), ids(tokens)) for prompt, tokens in pairs]
    oracle = {"name": "huggingface", "mode": options.mode, "version": transformers.__version__}
    print(json.dumps({"oracle": oracle, "device": options.device, "torch": torch.__version__, "requests": requests}))
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="a model folder, or a GGUF file")
    parser.add_argument("--mode", required=True, choices=sorted(DTYPES), help="type of weights and arithmetic")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--prompts", type=Path, help='JSON list of {"prompt_token_ids" or "prompt", "max_tokens"}')
    parser.add_argument("--prompt-ids", action="append", default=[], help="with --token-ids: teacher forcing")
    parser.add_argument("--token-ids", action="append", default=[])
    return parser.parse_args()


def load(transformers: Any, path: Path, mode: str, device: str) -> tuple[Any, Any]:
    where: dict[str, Any] = {"gguf_file": path.name} if path.is_file() else {}
    folder = str(path.parent if path.is_file() else path)
    dtype = getattr(torch, DTYPES[mode])
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True, **where)
    return model.to(device).eval(), lambda: transformers.AutoTokenizer.from_pretrained(
        folder, local_files_only=True, **where
    )


def prompt_ids(tokenizer: Any, request: dict[str, Any]) -> list[int]:
    if "prompt_token_ids" in request:
        return list(request["prompt_token_ids"])
    if "messages" in request:
        text = tokenizer().apply_chat_template(request["messages"], add_generation_prompt=True, tokenize=False)
        return list(tokenizer()(text, add_special_tokens=False)["input_ids"])
    return list(tokenizer()(request["prompt"], add_special_tokens=False)["input_ids"])


def generated(model: Any, prompt: list[int], count: int) -> dict[str, Any]:
    """Greedy, past any end-of-sequence token; batch 1."""
    chosen: list[int] = []
    logprobs: list[float] = []
    runners_up: list[dict[str, Any]] = []
    with torch.inference_mode():
        inputs, past = torch.tensor([prompt], device=model.device), None
        for _ in range(count):
            output = model(inputs, past_key_values=past, use_cache=True)
            best, second = top_two(output.logits[0, -1])
            chosen.append(best["token_id"])
            logprobs.append(best["logprob"])
            runners_up.append(second)
            inputs, past = torch.tensor([[best["token_id"]]], device=model.device), output.past_key_values
    return {"prompt_token_ids": prompt, "token_ids": chosen, "logprobs": logprobs, "runner_up": runners_up}


def scored(model: Any, prompt: list[int], tokens: list[int]) -> dict[str, Any]:
    with torch.inference_mode():
        logits = model(torch.tensor([prompt + tokens[:-1]], device=model.device)).logits[0, len(prompt) - 1 :]
    rows = [top_two(row) for row in logits]
    told = logits.double().log_softmax(-1)
    return {
        "prompt_token_ids": prompt,
        "token_ids": tokens,
        "logprobs": [told[at, token].item() for at, token in enumerate(tokens)],
        "best": [best for best, _ in rows],
        "runner_up": [second for _, second in rows],
    }


def top_two(logits: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Best first; on a tie the lowest id."""
    told = logits.double().log_softmax(-1)
    best = int(told.argmax())
    rest = told.clone()
    rest[best] = -torch.inf
    second = int(rest.argmax())
    one, two = ({"token_id": token, "logprob": told[token].item()} for token in (best, second))
    return one, two


def ids(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
