"""Arguments that several commands share: how the engine is set up, and how it samples."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine import config
from engine.errors import ArgumentsError
from engine.sampling_params import SamplingParams

_ENGINE_FIELDS = (
    "model", "device", "precision", "threads", "max_num_seqs", "max_num_batched_tokens", "block_size",
    "kv_cache_tokens", "kv_dtype", "attention_backend", "async_device_mirror", "max_context",
)  # fmt: skip


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Absent ones are left to the environment and the defaults, so they have none here."""
    group = parser.add_argument_group("engine")

    def add(name: str, help: str, **extra: Any) -> None:
        group.add_argument(name, help=help, default=argparse.SUPPRESS, **extra)

    add("--model", "a GGUF file, a safetensors folder, or smollm2 (default)")
    add("--device", "cpu (default), cuda, cuda:0, rocm")
    add("--precision", "fast (default): quantised weights; reference: float32 everywhere", choices=config.PRECISIONS)
    add("--threads", "CPU threads; 0 (default): one per core", type=int)
    add("--max-num-seqs", "requests in the batch at once (64)", type=int)
    add("--max-num-batched-tokens", "tokens computed in one step (512)", type=int)
    add("--block-size", "tokens in a block of the KV cache (16)", type=int)
    add("--kv-cache-tokens", "tokens that the KV cache holds in all", type=int)
    add("--kv-dtype", "type of the KV cache", choices=config.KV_DTYPES)
    add("--attention-backend", "name of an attention backend; default: the first that fits")
    add("--async-device-mirror", "launch the next step before tokens reach the host", choices=config.MIRROR)
    add("--max-context", "use no more than this much of the model's context", type=int)
    add("--no-prefix-cache", "compute every prompt anew", action="store_const", const=False, dest="prefix_cache")
    add("--batch-invariant", "ids don't depend on batch or chunking", action="store_const", const=True)


def engine_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    names = (*_ENGINE_FIELDS, "prefix_cache", "batch_invariant")
    return {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("sampling")
    group.add_argument("--max-tokens", type=int, default=128, metavar="N", help="new tokens per prompt (128)")
    group.add_argument("--temperature", type=float, default=0.0, help="0 (default): greedy")
    group.add_argument("--top-k", type=int, default=0, help="0 (default): off")
    group.add_argument("--top-p", type=float, default=1.0)
    group.add_argument("--min-p", type=float, default=0.0)
    group.add_argument("--repetition-penalty", type=float, default=1.0)
    group.add_argument("--presence-penalty", type=float, default=0.0)
    group.add_argument("--frequency-penalty", type=float, default=0.0)
    group.add_argument("--seed", type=int, default=0, help="same seed, same tokens (0)")
    group.add_argument("--stop", action="append", default=[], help="end before this text; may be repeated")
    group.add_argument("--ignore-eos", action="store_true", help="run to --max-tokens")


def sampling_params(arguments: argparse.Namespace, **extra: Any) -> SamplingParams:
    names = ("max_tokens", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty",
             "frequency_penalty", "seed", "stop", "ignore_eos")  # fmt: skip
    return SamplingParams(**({name: getattr(arguments, name) for name in names} | extra))


def token_ids(text: str) -> list[int]:
    """`504,3575` as ids."""
    try:
        return [int(part) for part in text.replace(" ", "").split(",")]
    except ValueError:
        raise ArgumentsError(f"{text[:60]!r} is no list of token ids; write them as 504,3575") from None


def read_json_list(path: Path, check: Callable[[Any], str | None]) -> list[Any]:
    """A JSON file that holds a list; `check` says what is wrong with an entry."""
    try:
        entries = json.loads(path.read_text())
    except OSError as error:
        raise ArgumentsError(f"{path}: can't be read: {error.strerror}") from None
    except ValueError as error:
        raise ArgumentsError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(entries, list):
        raise ArgumentsError(f"{path}: must hold a JSON list")
    for index, entry in enumerate(entries):
        problem = check(entry)
        if problem:
            raise ArgumentsError(f"{path}: entry {index}: {problem}")
    return entries
