"""What an engine answers: the documented JSON, checked as hostile text."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from greenlane.matrix.gates import TEXT_REFUSED

# Everything else at the top of the document says how the engine ran, and tells two arms apart.
MEASURED = frozenset({"requests", "timings", "peak_memory_bytes", "model", "device", "oracle", "text"})


class Unusable(Exception):
    """An answer that can't be compared: says why."""


class Choice(BaseModel):
    model_config = ConfigDict(frozen=True)
    token_id: int
    logprob: float


class Answer(BaseModel):
    """One request's ids, with the log-probability of each chosen token and of the best one not chosen, where known."""

    model_config = ConfigDict(frozen=True)
    name: str | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...] = ()
    runner_up: tuple[Choice, ...] = ()
    num_cached_tokens: int | None = None  # of the prompt, found in a prefix cache; engines that have none don't say

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.token_ids).encode()).hexdigest()

    def margin(self, index: int) -> float | None:
        """Nats between the chosen token and the best other one."""
        if index >= len(self.logprobs) or index >= len(self.runner_up):
            return None
        return self.logprobs[index] - self.runner_up[index].logprob


class Identity(BaseModel):
    """Which oracle spoke; all three parts make it what it is."""

    model_config = ConfigDict(frozen=True)
    name: str
    mode: str = ""
    version: str = ""


class Generation(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")
    requests: tuple[Answer, ...]
    device: dict[str, Any] | str | None = None
    kernel_launches: dict[str, int] = Field(default_factory=dict)
    oracle: Identity | None = None

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, document: Any) -> Any:
        if isinstance(document, dict) and document.get("kernel_launches", {}) is None:
            return {key: value for key, value in document.items() if key != "kernel_launches"}
        return document

    @property
    def counts_launches(self) -> bool:
        """Whether the engine has counters at all: `{}` says that nothing was launched, no key says nothing."""
        return "kernel_launches" in self.model_fields_set

    @property
    def how(self) -> dict[str, Any]:
        """What the engine says of its own settings, and its launch counts."""
        return {
            key: value for key, value in self.model_dump().items() if key not in MEASURED and value not in ({}, None)
        }

    @property
    def device_key(self) -> str:
        """Names the device in a path: backend and architecture."""
        if isinstance(self.device, dict):
            parts = [self.device.get("backend"), self.device.get("arch") or self.device.get("name")]
        else:
            parts = [self.device]
        return slug("-".join(str(part) for part in parts if part)) or "unknown-device"


def slug(text: str) -> str:
    return "-".join("".join(c if c.isalnum() or c in "._" else " " for c in text).split()).strip(".") or ""


def parse(text: str) -> Generation:
    """The generation that a command printed; `Unusable` says what is wrong with it."""
    document = document_in(text, "requests")
    try:
        generation = Generation.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Unusable(f"its JSON is not what docs/gates.md describes: {where}: {first['msg']}") from None
    for position, answer in enumerate(generation.requests):
        check_numbers(answer, answer.name or f"request {position}")
    return generation


def document_in(text: str, key: str | None = None) -> dict[str, Any]:
    """The JSON object in a program's output; lines that a chatty program printed around it are passed over."""
    for candidate in candidates(text):
        if isinstance(candidate, dict) and (key is None or key in candidate):
            return candidate
    if not text.strip():
        raise Unusable("it printed nothing")
    wanted = f" with {key!r}" if key else ""
    raise Unusable(f"it printed no JSON object{wanted}; {TEXT_REFUSED}")


def candidates(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    starts = [0] + [at + 1 for at, char in enumerate(text) if char == "\n" and text[at + 1 : at + 2] == "{"]
    for start in (starts[0], *reversed(starts[1:])):
        try:
            yield decoder.raw_decode(text, start + len(text[start:]) - len(text[start:].lstrip()))[0]
        except (ValueError, RecursionError):
            continue


def check_numbers(answer: Answer, name: str) -> None:
    numbers = [*answer.logprobs, *(choice.logprob for choice in answer.runner_up)]
    if any(math.isnan(number) or number == math.inf for number in numbers) or -math.inf in answer.logprobs:
        raise Unusable(f"{name}: a log-probability is not a number")
    if answer.logprobs and len(answer.logprobs) != len(answer.token_ids):
        raise Unusable(f"{name}: {len(answer.token_ids)} token ids but {len(answer.logprobs)} log-probabilities")
    if answer.runner_up and len(answer.runner_up) != len(answer.token_ids):
        raise Unusable(f"{name}: {len(answer.token_ids)} token ids but {len(answer.runner_up)} runners-up")
