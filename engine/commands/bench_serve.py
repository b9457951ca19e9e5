"""`python -m engine bench-serve`: throughput and latency of a running server, ours or another with the same API."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import time
from collections.abc import Sequence
from typing import Any

from engine.errors import ArgumentsError, EngineError
from engine.load.client import Answer, Client
from engine.load.spawn import spawned
from engine.load.workload import Sample, Workload, closed_loop, open_loop


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="of the server (http://127.0.0.1:8000)")
    parser.add_argument(
        "--spawn", metavar="ARGS", help="start `engine serve ARGS` for this run instead, such as '--model smollm2'"
    )
    parser.add_argument("--model", help="the model's name, where the server asks for it")
    parser.add_argument("--clients", type=int, default=16, help="closed loop: requests open at once (16)")
    parser.add_argument("--rate", type=float, help="open loop instead: requests per second, Poisson arrivals")
    parser.add_argument("--requests", type=int, default=64, help="requests in all (64)")
    parser.add_argument("--prompt-words", type=int, default=64, help="random words per prompt (64)")
    parser.add_argument("--shared-prefix-words", type=int, default=0, help="of them, the same in every prompt (0)")
    parser.add_argument("--max-tokens", type=int, default=64, help="tokens to generate per request (64)")
    parser.add_argument("--warmup", type=int, default=2, help="requests before measuring (2)")
    parser.add_argument("--seed", type=int, default=0, help="of prompts and arrivals (0)")
    parser.add_argument("--stop-at-eos", action="store_true", help="don't send ignore_eos")
    parser.add_argument("--api-key", default=os.environ.get("ENGINE_API_KEY"), help="also ENGINE_API_KEY")
    parser.add_argument("--json", action="store_true", help="print one JSON document with the raw samples")


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    workload = Workload(
        requests=arguments.requests,
        prompt_words=arguments.prompt_words,
        shared_words=arguments.shared_prefix_words,
        max_tokens=arguments.max_tokens,
        ignore_eos=not arguments.stop_at_eos,
        seed=arguments.seed,
        model=arguments.model,
    )
    result = _of_own_server(arguments, workload) if arguments.spawn else asyncio.run(_measure(arguments, workload))
    print(json.dumps(result) if arguments.json else _table(result))
    return 0 if result["failed"] == 0 else 1


def _of_own_server(arguments: argparse.Namespace, workload: Workload) -> dict[str, Any]:
    with spawned(arguments.spawn) as server:
        arguments.url = server.url
        result = asyncio.run(_measure(arguments, workload))
        return {**result, "peak_memory_bytes": server.peak_memory_bytes()}


async def _measure(arguments: argparse.Namespace, workload: Workload) -> dict[str, Any]:
    client = Client(arguments.url, api_key=arguments.api_key)
    bodies = workload.bodies()
    for body in bodies[: max(1, arguments.warmup)]:
        _require_served(await client.complete({**body, "max_tokens": 2}), arguments.url)
    began = time.perf_counter()
    if arguments.rate is None:
        samples = await closed_loop(client, bodies, arguments.clients)
    else:
        samples = await open_loop(client, bodies, arguments.rate, arguments.seed)
    return report(samples, time.perf_counter() - began, arguments)


def _require_served(answer: Answer, url: str) -> None:
    if answer.status != 200 or answer.error:
        raise EngineError(f"{url} does not serve completions (status {answer.status}): {answer.error}; check --url")


def report(samples: Sequence[Sample], duration: float, arguments: argparse.Namespace) -> dict[str, Any]:
    good = [s.answer for s in samples if s.answer.status == 200 and s.answer.error is None]
    gaps = [b - a for answer in good for a, b in zip(answer.token_times_s, answer.token_times_s[1:], strict=False)]
    tokens = sum(_tokens(answer) for answer in good)
    return {
        "url": arguments.url,
        "mode": "closed" if arguments.rate is None else "open",
        "clients": arguments.clients if arguments.rate is None else None,
        "rate": arguments.rate,
        "requests": len(samples),
        "failed": len(samples) - len(good),
        "rejected": sum(sample.answer.status == 429 for sample in samples),
        "duration_s": duration,
        "requests_per_s": len(good) / duration,
        "output_tokens": tokens,
        "output_tokens_per_s": tokens / duration,
        "time_to_first_token_s": _spread([a.first_token_s for a in good if a.first_token_s is not None]),
        "inter_token_s": _spread(gaps),
        "request_s": _spread([answer.duration_s for answer in good]),
        "samples": [_raw(sample) for sample in samples],
    }


def _tokens(answer: Answer) -> int:
    """As the server counts them, else one per chunk."""
    return answer.tokens or len(answer.token_times_s)


def _raw(sample: Sample) -> dict[str, Any]:
    answer = sample.answer
    return {
        "start_s": sample.start_s,
        "status": answer.status,
        "error": answer.error,
        "first_token_s": answer.first_token_s,
        "duration_s": answer.duration_s,
        "tokens": _tokens(answer),
    }


def _spread(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    ordered = sorted(values)
    at = {f"p{q}": ordered[min(len(ordered) - 1, len(ordered) * q // 100)] for q in (50, 90, 99)}
    return {"mean": statistics.fmean(ordered), **at, "max": ordered[-1]}


def _table(result: dict[str, Any]) -> str:
    how = f"{result['clients']} clients" if result["mode"] == "closed" else f"{result['rate']} requests/s"
    lines = [
        f"{result['url']}: {result['requests']} requests, {how}, {result['failed']} failed",
        f"  {result['output_tokens_per_s']:.1f} tokens/s, {result['requests_per_s']:.2f} requests/s",
    ]
    for name in ("time_to_first_token_s", "inter_token_s", "request_s"):
        spread = result[name]
        if spread is not None:
            figures = "  ".join(f"{key} {1000 * value:.1f}" for key, value in spread.items())
            lines.append(f"  {name[:-2].replace('_', ' ')} in ms: {figures}")
    return "\n".join(lines)


def _check(arguments: argparse.Namespace) -> None:
    for name in ("clients", "requests", "prompt_words", "max_tokens"):
        if getattr(arguments, name) < 1:
            raise ArgumentsError(f"--{name.replace('_', '-')} is {getattr(arguments, name)}; it must be at least 1")
    if not 0 <= arguments.shared_prefix_words <= arguments.prompt_words:
        raise ArgumentsError("--shared-prefix-words must be from 0 to --prompt-words")
    if arguments.rate is not None and not 0 < arguments.rate < 1e6:
        raise ArgumentsError(f"--rate is {arguments.rate}; it must be above 0")
