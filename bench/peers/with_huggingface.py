"""Hugging Face transformers, float32, on the dequantised GGUF: one JSON object."""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import time
from pathlib import Path
from typing import Any

torch: Any = importlib.import_module("torch")
transformers: Any = importlib.import_module("transformers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    started = time.perf_counter()
    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(options.model.parent), gguf_file=options.model.name, dtype=torch.float32, local_files_only=True
    ).eval()
    load_s = time.perf_counter() - started
    run(model, options)  # warm-up
    samples = [run(model, options) for _ in range(options.repeat)]
    print(
        json.dumps(
            {
                "version": f"transformers {transformers.__version__}, torch {torch.__version__}",
                "prefill_tokens_per_s": statistics.median(prefill for prefill, _ in samples),
                "decode_tokens_per_s": statistics.median(decode for _, decode in samples),
                "peak_memory_bytes": peak_memory(),
                "load_s": load_s,
            }
        )
    )


def run(model: Any, options: argparse.Namespace) -> tuple[float, float]:
    """`generate` as its users call it; decode is what each further token costs."""
    prompt = torch.randint(0, model.config.vocab_size, (1, options.prefill))
    with torch.inference_mode():
        first = seconds(model, prompt, 1)
        whole = seconds(model, prompt, 1 + options.decode)
    return options.prefill / first, options.decode / (whole - first)


def seconds(model: Any, prompt: Any, count: int) -> float:
    started = time.perf_counter()
    model.generate(prompt, max_new_tokens=count, min_new_tokens=count, do_sample=False, pad_token_id=0)
    return time.perf_counter() - started


def peak_memory() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
