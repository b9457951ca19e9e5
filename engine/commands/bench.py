"""`python -m engine bench`: prefill and decode speed of the engine itself, for given lengths and batch."""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from dataclasses import asdict, dataclass
from typing import Any

from engine.commands import report, settings
from engine.errors import ArgumentsError
from engine.llm import LLM
from engine.sampling_params import SamplingParams


@dataclass(frozen=True)
class Sample:
    prefill_tokens_per_s: float
    decode_tokens_per_s: float
    prefill_s: float
    decode_s: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--prompt-tokens", type=int, default=512, metavar="N", help="random tokens per prompt (512)")
    parser.add_argument("--decode-tokens", type=int, default=128, metavar="N", help="new tokens per prompt (128)")
    parser.add_argument("--batch", type=int, default=1, metavar="N", help="prompts at once (1)")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="measured runs after one for warm-up (5)")
    parser.add_argument("--seed", type=int, default=0, help="of the random prompts (0)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    settings.add_engine_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    for name in ("prompt_tokens", "decode_tokens", "batch", "repeat"):
        if getattr(arguments, name) < 1:
            raise ArgumentsError(f"--{name.replace('_', '-')} is {getattr(arguments, name)}; it must be at least 1")
    need = arguments.batch * (arguments.prompt_tokens + arguments.decode_tokens + 16)
    sizes = {"prefix_cache": False, "max_num_seqs": max(64, arguments.batch), "kv_cache_tokens": need}
    llm = LLM(**{**sizes, **settings.engine_settings(arguments)})
    rng = random.Random(arguments.seed)
    measure(llm, arguments, rng)  # warm-up
    samples = [measure(llm, arguments, rng) for _ in range(arguments.repeat)]
    result = document(llm, arguments, samples)
    print(json.dumps(result) if arguments.json else _table(result))
    return 0


def measure(llm: LLM, arguments: argparse.Namespace, rng: random.Random) -> Sample:
    """All prompts at once. Decode is timed from the step in which every prompt has its first token."""
    vocabulary = llm.architecture.vocab_size
    prompts = [[rng.randrange(vocabulary) for _ in range(arguments.prompt_tokens)] for _ in range(arguments.batch)]
    params = SamplingParams(max_tokens=arguments.decode_tokens + 1, ignore_eos=True)
    requests = [llm.request(prompt, params) for prompt in prompts]
    started = time.perf_counter()
    for request in requests:
        llm.submit(request)
    while any(not request.output.token_ids for request in requests):
        llm.loop.step()
    prefilled = time.perf_counter()
    early = sum(len(request.output.token_ids) for request in requests) - len(requests)
    while llm.loop.has_work:
        llm.loop.step()
    ended = time.perf_counter()
    prefill_s, decode_s = prefilled - started, ended - prefilled
    decoded = arguments.batch * arguments.decode_tokens - early
    return Sample(arguments.batch * arguments.prompt_tokens / prefill_s, decoded / decode_s, prefill_s, decode_s)


def document(llm: LLM, arguments: argparse.Namespace, samples: list[Sample]) -> dict[str, Any]:
    names = ("prompt_tokens", "decode_tokens", "batch", "repeat")
    return {
        **report.heading(llm),
        **{name: getattr(arguments, name) for name in names},
        "load_s": llm.load_s,
        "prefill_tokens_per_s": statistics.median(sample.prefill_tokens_per_s for sample in samples),
        "decode_tokens_per_s": statistics.median(sample.decode_tokens_per_s for sample in samples),
        "samples": [asdict(sample) for sample in samples],
        "host_us_per_step": _host_cost(llm),
        **report.costs(llm),
    }


def _host_cost(llm: LLM) -> dict[str, float]:
    """What a step costs in Python, in microseconds on average."""
    statistics = llm.loop.statistics
    costs = {"schedule": statistics.schedule_s, "launch": statistics.launch_s, "hand_out": statistics.hand_out_s}
    return {name: 1e6 * seconds / max(statistics.steps, 1) for name, seconds in costs.items()}


def _table(result: dict[str, Any]) -> str:
    device, batch = result["device"], result["batch"]
    lines = [f"{result['model']} on {device['name']} ({device['arch']}), {result['precision']}"]
    for phase, tokens in (("prefill", result["prompt_tokens"]), ("decode", result["decode_tokens"])):
        lines.append(f"  {phase:7} {tokens:5d} x {batch}  {result[f'{phase}_tokens_per_s']:10.1f} tokens/s")
    peak = result["peak_memory_bytes"] / 1e6
    return "\n".join([*lines, f"  {result['threads']} threads, load {result['load_s']:.2f} s, peak {peak:.0f} MB"])
