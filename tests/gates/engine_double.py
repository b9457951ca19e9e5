"""A small deterministic engine inside the test process; each test breaks one thing of it."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from greenlane.gates.contract import Ran

VOCABULARY = 97


def distribution(context: tuple[int, ...]) -> list[float]:
    """Log-probabilities that depend on the last three tokens; the two best are sometimes close."""
    logits = [
        math.sin(1.7 * token + sum((i + 1) * c for i, c in enumerate(context[-3:]))) for token in range(VOCABULARY)
    ]
    scaled = [300 * logit for logit in logits]
    total = math.log(sum(math.exp(logit) for logit in scaled))
    return [logit - total for logit in scaled]


def two_best(logprobs: list[float]) -> tuple[int, int]:
    ranked = sorted(range(VOCABULARY), key=lambda token: (-logprobs[token], token))
    return ranked[0], ranked[1]


def choice(token: int, logprobs: list[float]) -> dict[str, Any]:
    return {"token_id": token, "logprob": logprobs[token]}


def greedy(prompt: list[int], count: int, turn_at: int | None = None) -> dict[str, Any]:
    """Greedy ids; at `turn_at` the runner-up is taken instead, as a device in a near tie does."""
    ids: list[int] = []
    chosen_logprobs, runners_up = [], []
    for index in range(count):
        logprobs = distribution((*prompt, *ids))
        best, second = two_best(logprobs)
        token, other = (second, best) if index == turn_at else (best, second)
        ids.append(token)
        chosen_logprobs.append(logprobs[token])
        runners_up.append(choice(other, logprobs))
    return {"prompt_token_ids": prompt, "token_ids": ids, "logprobs": chosen_logprobs, "runner_up": runners_up}


def tokens_of(request: Mapping[str, Any]) -> list[int]:
    return list(request.get("prompt_token_ids") or (ord(c) % VOCABULARY for c in request["prompt"]))


Breakage = Callable[[dict[str, Any], list[str], Mapping[str, str]], None]


@dataclass
class EngineDouble:
    """`generate --prompts FILE [--mirror on|off] [--turn PROMPT=INDEX]`, `score`, `bench`, as a gate's Program."""

    artifacts: Path
    breakage: Breakage | None = None  # changes the document before it is printed
    ran: Ran | None = None  # what every command answers, instead of working
    commands: list[str] = field(default_factory=list)

    def __call__(self, command: str, *, env: Mapping[str, str] | None = None, timeout_s: float | None = None) -> Ran:
        self.commands.append(command)
        if self.ran is not None:
            return self.ran
        words = shlex.split(command)
        document = self.score(words) if words[0] == "score" else self.generate(words)
        if self.breakage is not None:
            self.breakage(document, words, env or {})
        return Ran(0, json.dumps(document), "")

    def generate(self, words: list[str]) -> dict[str, Any]:
        asked = json.loads((self.artifacts / words[words.index("--prompts") + 1]).read_text())
        mirror = "--mirror" in words and words[words.index("--mirror") + 1] == "on"
        turn = dict([words[words.index("--turn") + 1].split("=")]) if "--turn" in words else {}
        answers = [
            greedy(tokens_of(one), one["max_tokens"], int(turn[str(at)]) if str(at) in turn else None)
            for at, one in enumerate(asked)
        ]
        launches = {"rms_norm": 100} | ({"combine": 7} if mirror else {})
        device = {"backend": "cpu", "arch": "x86-64-test"}
        return {"device": device, "mirror": mirror, "kernel_launches": launches, "requests": answers}

    def score(self, words: list[str]) -> dict[str, Any]:
        prompts = [ids(words[i + 1]) for i, word in enumerate(words) if word == "--prompt-ids"]
        tokens = [ids(words[i + 1]) for i, word in enumerate(words) if word == "--token-ids"]
        return {"requests": [scored(p, t) for p, t in zip(prompts, tokens, strict=True)]}


def scored(prompt: list[int], tokens: list[int]) -> dict[str, Any]:
    rows = [distribution((*prompt, *tokens[:index])) for index in range(len(tokens))]
    return {
        "prompt_token_ids": prompt,
        "token_ids": tokens,
        "logprobs": [row[token] for row, token in zip(rows, tokens, strict=True)],
        "best": [choice(two_best(row)[0], row) for row in rows],
        "runner_up": [choice(two_best(row)[1], row) for row in rows],
    }


def ids(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]
