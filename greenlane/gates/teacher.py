"""Teacher forcing: how far, in nats, given tokens stand below the best ones, by the lane's scoring command."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError

from greenlane.gates import commands, generation
from greenlane.gates.commands import Failed, filled
from greenlane.gates.contract import Program
from greenlane.gates.generation import Choice, Unusable
from greenlane.record.model import Outcome

Sequence_ = tuple[tuple[int, ...], tuple[int, ...]]  # prompt ids, token ids


class Scored(BaseModel):
    """Entry i speaks of token_ids[i], given the prompt and the tokens before it."""

    model_config = ConfigDict(frozen=True)
    prompt_token_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    best: tuple[Choice, ...]
    runner_up: tuple[Choice, ...]

    def gap(self, index: int) -> float:
        """Nats below the best token; 0 for the best token itself."""
        return max(0.0, self.best[index].logprob - self.logprobs[index])

    def margin(self, index: int) -> float:
        """Nats between the best token and the runner-up."""
        return self.best[index].logprob - self.runner_up[index].logprob


@dataclass(frozen=True)
class Teacher:
    command: str
    program: Program
    timeout_s: float

    def score(self, sequences: Sequence[Sequence_]) -> list[Scored]:
        if "{pairs}" in self.command:
            return self.ask(sequences)
        return [scored for sequence in sequences for scored in self.ask([sequence])]

    def ask(self, sequences: Sequence[Sequence_]) -> list[Scored]:
        prompt, tokens = sequences[0]
        pairs = (f"--prompt-ids {commands.ids(p)} --token-ids {commands.ids(t)}" for p, t in sequences)
        values = {"pairs": " ".join(pairs), "prompt_ids": commands.ids(prompt), "token_ids": commands.ids(tokens)}
        ran = commands.run(self.program, filled(self.command, values), "score", env={}, timeout_s=self.timeout_s)
        try:
            return checked(ran.stdout, sequences)
        except Unusable as error:
            raise Failed(Outcome.VOID, f"score: {error}", commands.tail(ran)) from None


def checked(text: str, sequences: Sequence[Sequence_]) -> list[Scored]:
    document = generation.document_in(text, "requests")
    try:
        scored = [Scored.model_validate(request) for request in document["requests"]]
    except (ValidationError, TypeError) as error:
        raise Unusable(f"its JSON is not what docs/gates.md describes: {str(error).splitlines()[0]}") from None
    if [(s.prompt_token_ids, s.token_ids) for s in scored] != [(tuple(p), tuple(t)) for p, t in sequences]:
        raise Unusable("it scored other tokens than those asked for")
    for one in scored:
        counts = {len(one.token_ids), len(one.logprobs), len(one.best), len(one.runner_up)}
        if len(counts) != 1:
            raise Unusable("it gave another number of log-probabilities than of tokens")
        numbers = [*one.logprobs, *(choice.logprob for choice in (*one.best, *one.runner_up))]
        if not all(math.isfinite(number) for number in numbers):  # max(0, nan) is 0: a gap would look like none
            raise Unusable("a log-probability is not a number")
    return scored
