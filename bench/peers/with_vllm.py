"""vLLM on a GPU: one JSON object. Speaks only where the package and a card are present."""

from __future__ import annotations

import argparse
import importlib
import json
import random
import statistics
import time
from typing import Any

vllm: Any = importlib.import_module("vllm")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    started = time.perf_counter()
    engine = vllm.LLM(model=options.model, enable_prefix_caching=False)
    load_s = time.perf_counter() - started
    run(engine, options)  # warm-up
    samples = [run(engine, options) for _ in range(options.repeat)]
    print(
        json.dumps(
            {
                "version": f"vllm {vllm.__version__}",
                "prefill_tokens_per_s": statistics.median(prefill for prefill, _ in samples),
                "decode_tokens_per_s": statistics.median(decode for _, decode in samples),
                "load_s": load_s,
            }
        )
    )


def run(engine: Any, options: argparse.Namespace) -> tuple[float, float]:
    prompt = {"prompt_token_ids": [random.randrange(1000) for _ in range(options.prefill)]}
    first = seconds(engine, prompt, 1)
    whole = seconds(engine, prompt, 1 + options.decode)
    return options.prefill / first, options.decode / (whole - first)


def seconds(engine: Any, prompt: dict[str, Any], count: int) -> float:
    params = vllm.SamplingParams(temperature=0, max_tokens=count, ignore_eos=True, detokenize=False)
    started = time.perf_counter()
    engine.generate([prompt], params, use_tqdm=False)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
