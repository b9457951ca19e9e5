"""One request's tokens and where they stand: what is computed, what is in flight, where it lies in the KV cache."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from engine.sampling_params import SamplingParams


class FinishReason(StrEnum):
    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    DEADLINE = "deadline"
    ERROR = "error"


class State(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


@dataclass(eq=False)
class Sequence:
    """`num_in_flight` tokens follow `token_ids` on the device, their values not known here yet."""

    id: int
    token_ids: list[int]  # prompt, then outputs
    num_prompt_tokens: int
    max_tokens: int
    params: SamplingParams
    seed: int
    sampling: Any = None  # the core's form of params and seed
    priority: int = 0  # smaller goes first
    client: str | None = None  # whose share it counts against
    arrival: float = 0.0  # seconds, monotonic
    grammar: Any = None  # engine.grammar.Matcher, where the output is constrained
    stop_ids: frozenset[int] = frozenset()
    leader: Sequence | None = None  # the first choice of the same request

    state: State = State.WAITING
    row: int | None = None
    blocks: list[int] = field(default_factory=list)
    num_computed: int = 0
    num_in_flight: int = 0
    num_hashed: int = 0  # blocks whose content is registered for prefix reuse
    last_hash: bytes = b""  # of block num_hashed - 1
    num_cached_tokens: int = 0  # of the prompt, found in the prefix cache at admission
    preemptions: int = 0
    finished: bool = False  # the same as state; asked for every token
    finish_reason: FinishReason | None = None
    order: tuple[int, float, int] = (0, 0.0, 0)  # place among the waiting; set by the queue

    @property
    def num_tokens(self) -> int:
        """Tokens that exist, known here or only on the device."""
        return len(self.token_ids) + self.num_in_flight

    @property
    def output_ids(self) -> list[int]:
        return self.token_ids[self.num_prompt_tokens :]

    @property
    def num_outputs(self) -> int:
        return len(self.token_ids) - self.num_prompt_tokens
