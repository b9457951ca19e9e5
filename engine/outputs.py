"""What a request gives back: for each choice its tokens, their probabilities and its text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from engine.sequence import FinishReason


class TokenLogprob(NamedTuple):
    token_id: int
    logprob: float


@dataclass
class Completion:
    """`logprobs` are of the raw logits, before temperature and penalties; lists have one entry per token."""

    index: int
    seed: int
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    runner_up: list[TokenLogprob] = field(default_factory=list)
    top: list[list[TokenLogprob]] = field(default_factory=list)  # as many alternatives as were asked for
    text: str = ""
    finish_reason: FinishReason | None = None
    stop: str | int | None = None  # the stop string or token that ended it


@dataclass
class PromptScores:
    """Teacher forcing: entry i speaks of prompt token i + 1, given those before it."""

    logprobs: list[float] = field(default_factory=list)
    best: list[TokenLogprob] = field(default_factory=list)
    runner_up: list[TokenLogprob] = field(default_factory=list)


@dataclass
class RequestOutput:
    request_id: int
    prompt_token_ids: list[int]
    completions: list[Completion]
    prompt_scores: PromptScores | None = None
    num_cached_tokens: int = 0
    preemptions: int = 0

    @property
    def finished(self) -> bool:
        return all(completion.finish_reason is not None for completion in self.completions)

    @property
    def text(self) -> str:
        return self.completions[0].text

    @property
    def token_ids(self) -> list[int]:
        return self.completions[0].token_ids
