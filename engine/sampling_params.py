"""How one request is sampled and when it stops. Impossible values are refused here, before anything runs."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.errors import RequestError

if TYPE_CHECKING:
    from engine import _core

MAX_TOP_LOGPROBS = 20
MAX_STOP_STRINGS = 16
MAX_CHOICES = 128
MASK64 = (1 << 64) - 1


@dataclass(frozen=True, kw_only=True)
class SamplingParams:
    """temperature 0 is greedy. Without a seed each request draws its own."""

    max_tokens: int | None = 16  # None: up to the end of the context
    temperature: float = 0.0
    top_k: int = 0  # 0: off
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None
    n: int = 1
    stop: Sequence[str] = ()
    stop_token_ids: Sequence[int] = ()
    include_stop: bool = False  # keep the stop string in the text
    ignore_eos: bool = False
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    logprobs: int = 0  # alternatives to report per token, beside the chosen one
    prompt_logprobs: bool = False
    keep_special_tokens: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.stop, str):
            object.__setattr__(self, "stop", (self.stop,))
        _integer("max_tokens", self.max_tokens, 1, 1 << 31, optional=True)
        _number("temperature", self.temperature, 0.0, 1e4)
        _integer("top_k", self.top_k, 0, 1 << 31)
        _number("top_p", self.top_p, 0.0, 1.0, above_low=True)
        _number("min_p", self.min_p, 0.0, 1.0)
        _number("repetition_penalty", self.repetition_penalty, 0.0, 1e4, above_low=True)
        _number("presence_penalty", self.presence_penalty, -2.0, 2.0)
        _number("frequency_penalty", self.frequency_penalty, -2.0, 2.0)
        _integer("seed", self.seed, -(1 << 63), MASK64, optional=True)
        _integer("n", self.n, 1, MAX_CHOICES)
        _integer("logprobs", self.logprobs, 0, MAX_TOP_LOGPROBS)
        self._check_stops()
        for token, bias in self.logit_bias.items():
            _integer("a token of logit_bias", token, 0, 1 << 31)
            _number(f"logit_bias of token {token}", bias, -1e4, 1e4)

    def _check_stops(self) -> None:
        if len(self.stop) > MAX_STOP_STRINGS:
            raise RequestError(f"stop has {len(self.stop)} strings; at most {MAX_STOP_STRINGS} are taken")
        if not all(isinstance(text, str) and text for text in self.stop):
            raise RequestError("stop holds an empty string, which would stop everything; leave it out")
        for token in self.stop_token_ids:
            _integer("a token of stop_token_ids", token, 0, 1 << 31)

    def check_vocabulary(self, vocab_size: int) -> None:
        for token in (*self.logit_bias, *self.stop_token_ids):
            if token >= vocab_size:
                raise RequestError(
                    f"token {token} of logit_bias or stop_token_ids is outside the {vocab_size} known ones"
                )

    def with_seed(self) -> int:
        """The seed to use: the one given, or a fresh one."""
        return secrets.randbits(64) if self.seed is None else self.seed & MASK64

    def for_core(self, seed: int) -> _core.Sampling:
        from engine import _core

        try:
            return _core.Sampling(
                temperature=self.temperature,
                top_k=self.top_k,
                top_p=self.top_p,
                min_p=self.min_p,
                repetition_penalty=self.repetition_penalty,
                presence_penalty=self.presence_penalty,
                frequency_penalty=self.frequency_penalty,
                seed=seed,
                logit_bias=dict(self.logit_bias) or None,
                top_logprobs=self.logprobs,
                prompt_logprobs=self.prompt_logprobs,
            )
        except ValueError as error:  # a value that is possible here but not as float32
            raise RequestError(f"impossible sampling parameters: {error}") from None


def choice_seed(seed: int, choice: int) -> int:
    """Choice 0 keeps the request's seed; the others get unrelated ones (a round of SplitMix64)."""
    if choice == 0:
        return seed
    mixed = (seed + choice * 0x9E3779B97F4A7C15) & MASK64
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK64
    return mixed ^ (mixed >> 31)


def _integer(name: str, value: Any, low: int, high: int, *, optional: bool = False) -> None:
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise RequestError(f"{name} is {value!r}; it must be a whole number from {low} to {high}")


def _number(name: str, value: Any, low: float, high: float, *, above_low: bool = False) -> None:
    sensible = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not sensible or not low <= value <= high or (above_low and value == low):
        span = f"above {low:g} and at most {high:g}" if above_low else f"from {low:g} to {high:g}"
        raise RequestError(f"{name} is {value!r}; it must be a number {span}")
