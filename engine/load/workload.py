"""What is asked of a server, and when: random prompts with or without a shared beginning; closed or open loop."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Any

from engine.load.client import Answer, Client

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Lengths in words of random letters (about two tokens each) and in tokens to generate."""

    requests: int
    prompt_words: int = 64
    shared_words: int = 0  # of prompt_words, the same in all prompts
    max_tokens: int = 64
    ignore_eos: bool = True
    seed: int = 0
    model: str | None = None

    def bodies(self) -> list[dict[str, Any]]:
        rng = random.Random(self.seed)
        shared = _words(rng, self.shared_words)
        return [self._body(shared + _words(rng, self.prompt_words - self.shared_words)) for _ in range(self.requests)]

    def _body(self, words: list[str]) -> dict[str, Any]:
        body: dict[str, Any] = {"prompt": " ".join(words), "max_tokens": self.max_tokens, "temperature": 0}
        body["stream_options"] = {"include_usage": True}
        if self.ignore_eos:
            body["ignore_eos"] = True
        if self.model:
            body["model"] = self.model
        return body


def _words(rng: random.Random, count: int) -> list[str]:
    return ["".join(rng.choice(_LETTERS) for _ in range(rng.randint(2, 7))) for _ in range(count)]


@dataclass(frozen=True)
class Sample:
    start_s: float  # since the measurement began
    answer: Answer


async def closed_loop(client: Client, bodies: list[dict[str, Any]], clients: int) -> list[Sample]:
    """Each of `clients` sends its next request when its last one is answered."""
    began, waiting, samples = time.perf_counter(), list(reversed(bodies)), []

    async def one_client() -> None:
        while waiting:
            body = waiting.pop()
            start = time.perf_counter() - began
            samples.append(Sample(start, await client.complete(body)))

    await asyncio.gather(*(one_client() for _ in range(clients)))
    return samples


async def open_loop(client: Client, bodies: list[dict[str, Any]], rate: float, seed: int) -> list[Sample]:
    """Requests arrive at `rate` per second on average, whether or not earlier ones are answered (Poisson)."""
    rng, began = random.Random(seed), time.perf_counter()
    tasks = []
    due = 0.0
    for body in bodies:
        due += rng.expovariate(rate)
        await asyncio.sleep(max(0.0, due - (time.perf_counter() - began)))
        tasks.append(asyncio.create_task(_sample(client, body, time.perf_counter() - began)))
    return list(await asyncio.gather(*tasks))


async def _sample(client: Client, body: dict[str, Any], start: float) -> Sample:
    return Sample(start, await client.complete(body))
