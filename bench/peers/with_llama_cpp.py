"""llama.cpp through llama-cpp-python's C interface (its own Python loop would cost it a third): one JSON object."""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import random
import statistics
import time
from pathlib import Path
from typing import Any

ll: Any = importlib.import_module("llama_cpp")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-mmap", action="store_true")
    parser.add_argument("--no-repack", action="store_true", help="without AMX and repacked weights")
    parser.add_argument("--flash-attention", action="store_true")
    options = parser.parse_args()
    silent = ll.llama_log_callback(lambda level, text, data: None)
    ll.llama_log_set(silent, ctypes.c_void_p(0))
    ll.llama_backend_init()
    started = time.perf_counter()
    model = load(options)
    context = open_context(model, options)
    load_s = time.perf_counter() - started
    run(model, context, options)  # warm-up
    samples = [run(model, context, options) for _ in range(options.repeat)]
    print(
        json.dumps(
            {
                "version": f"llama-cpp-python {ll.__version__}",
                "prefill_tokens_per_s": statistics.median(prefill for prefill, _ in samples),
                "decode_tokens_per_s": statistics.median(decode for _, decode in samples),
                "peak_memory_bytes": peak_memory(),
                "load_s": load_s,
                "system": ll.llama_print_system_info().decode(),
            }
        )
    )


def load(options: argparse.Namespace) -> Any:
    settings = ll.llama_model_default_params()
    settings.n_gpu_layers = 0
    settings.use_extra_bufts = not options.no_repack
    if hasattr(settings, "load_mode"):
        settings.load_mode = ll.LLAMA_LOAD_MODE_NONE if options.no_mmap else ll.LLAMA_LOAD_MODE_MMAP
    else:
        settings.use_mmap = not options.no_mmap
    model = ll.llama_model_load_from_file(options.model.encode(), settings)
    if not model:
        raise SystemExit(f"llama.cpp can't load {options.model}")
    return model


def open_context(model: Any, options: argparse.Namespace) -> Any:
    settings = ll.llama_context_default_params()
    settings.n_ctx = options.prefill + options.decode + 16
    settings.n_batch = settings.n_ubatch = options.prefill
    settings.n_threads = settings.n_threads_batch = options.threads
    enabled, disabled = ll.LLAMA_FLASH_ATTN_TYPE_ENABLED, ll.LLAMA_FLASH_ATTN_TYPE_DISABLED
    settings.flash_attn_type = enabled if options.flash_attention else disabled
    context = ll.llama_init_from_model(model, settings)
    if not context:
        raise SystemExit("llama.cpp can't open a context")
    return context


def run(model: Any, context: Any, options: argparse.Namespace) -> tuple[float, float]:
    """Prefill and decode tokens/s: random ids, logits of the last position only, greedy by the largest logit."""
    vocabulary = ll.llama_vocab_n_tokens(ll.llama_model_get_vocab(model))
    ll.llama_memory_clear(ll.llama_get_memory(context), True)
    rng = random.Random(0)
    prompt = (ll.llama_token * options.prefill)(*(rng.randrange(vocabulary) for _ in range(options.prefill)))
    started = time.perf_counter()
    decode(context, prompt, options.prefill)
    prefill_s = time.perf_counter() - started
    one = (ll.llama_token * 1)(rng.randrange(vocabulary))
    started = time.perf_counter()
    for _ in range(options.decode):
        decode(context, one, 1)
        one[0] = rng.randrange(vocabulary)  # as llama-bench does: sampling is not what is measured
    return options.prefill / prefill_s, options.decode / (time.perf_counter() - started)


def decode(context: Any, tokens: Any, count: int) -> None:
    if ll.llama_decode(context, ll.llama_batch_get_one(tokens, count)) != 0:
        raise SystemExit("llama_decode failed")
    ll.llama_get_logits_ith(context, -1)


def peak_memory() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
