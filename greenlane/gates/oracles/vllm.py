"""vLLM (CUDA or ROCm) as an oracle: greedy ids, or teacher forcing, as the JSON that the exact gate reads."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

MODES = ("eager", "graph")  # the two pick different branches of an exact tie
TOP = 20  # log-probabilities per position; a token outside of them is a clear error, and is said to be one


def main() -> int:
    options = arguments()
    vllm = importlib.import_module("vllm")
    settings = {"enforce_eager": options.mode == "eager", "max_logprobs": TOP, "enable_prefix_caching": False}
    settings |= {"dtype": options.dtype, "seed": 0, "gpu_memory_utilization": options.gpu_memory_utilization}
    if options.max_model_len is not None:
        settings["max_model_len"] = options.max_model_len
    engine = vllm.LLM(model=options.model, **settings)
    if options.prompts is not None:
        asked = json.loads(options.prompts.read_text(encoding="utf-8"))
        requests = [generated(vllm, engine, one) for one in asked]
    else:
        pairs = zip(options.prompt_ids, options.token_ids, strict=True)
        requests = [scored(vllm, engine, ids(prompt), ids(tokens)) for prompt, tokens in pairs]
    oracle = {"name": "vllm", "mode": options.mode, "version": vllm.__version__}
    print(json.dumps({"oracle": oracle, "dtype": options.dtype, "batch": 1, "requests": requests}))
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--mode", required=True, choices=MODES)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--gpu-memory-utilization", type=float, default=0.8)
    parser.add_argument("--prompts", type=Path, help='JSON list of {"prompt_token_ids" or "prompt", "max_tokens"}')
    parser.add_argument("--prompt-ids", action="append", default=[], help="with --token-ids: teacher forcing")
    parser.add_argument("--token-ids", action="append", default=[])
    return parser.parse_args()


def generated(vllm: Any, engine: Any, request: dict[str, Any]) -> dict[str, Any]:
    """One prompt at a time: vLLM's greedy ids depend on what else is in the batch."""
    count = request.get("max_tokens", 64)
    params = vllm.SamplingParams(temperature=0, max_tokens=count, ignore_eos=True, logprobs=2, detokenize=False)
    (output,) = engine.generate([input_of(engine, request)], params, use_tqdm=False)
    answer = output.outputs[0]
    chosen = list(answer.token_ids)
    told = [{token: entry.logprob for token, entry in row.items()} for row in answer.logprobs]
    return {
        "prompt_token_ids": list(output.prompt_token_ids),
        "token_ids": chosen,
        "logprobs": [row[token] for row, token in zip(told, chosen, strict=True)],
        "runner_up": [best_without(row, token) for row, token in zip(told, chosen, strict=True)],
    }


def input_of(engine: Any, request: dict[str, Any]) -> dict[str, Any]:
    if "prompt_token_ids" in request:
        return {"prompt_token_ids": list(request["prompt_token_ids"])}
    if "messages" not in request:
        return {"prompt": request["prompt"]}
    tokenizer = engine.get_tokenizer()
    text = tokenizer.apply_chat_template(request["messages"], add_generation_prompt=True, tokenize=False)
    return {"prompt_token_ids": list(tokenizer(text, add_special_tokens=False)["input_ids"])}


def scored(vllm: Any, engine: Any, prompt: list[int], tokens: list[int]) -> dict[str, Any]:
    params = vllm.SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=TOP, detokenize=False)
    (output,) = engine.generate([{"prompt_token_ids": prompt + tokens}], params, use_tqdm=False)
    told = [{t: e.logprob for t, e in row.items()} for row in output.prompt_logprobs[len(prompt) :]]
    best = [best_without(row, None) for row in told]
    return {
        "prompt_token_ids": prompt,
        "token_ids": tokens,
        "logprobs": [row[token] for row, token in zip(told, tokens, strict=True)],  # vLLM adds the token itself
        "best": best,
        "runner_up": [best_without(row, first["token_id"]) for row, first in zip(told, best, strict=True)],
    }


def best_without(row: dict[int, float], token: int | None) -> dict[str, Any]:
    """The likeliest token of a position; on a tie the lowest id."""
    others = {candidate: logprob for candidate, logprob in row.items() if candidate != token}
    best = min(others, key=lambda candidate: (-others[candidate], candidate))
    return {"token_id": best, "logprob": others[best]}


def ids(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
