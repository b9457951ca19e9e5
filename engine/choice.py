"""One choice of a request while it runs: turns tokens into text, and notices stop strings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from engine.outputs import Completion, TokenLogprob
from engine.sequence import FinishReason, Sequence
from engine.stop_strings import StopMatcher
from engine.tokenizer import Tokenizer


class SampledToken(NamedTuple):
    token_id: int
    logprob: float
    runner_up: TokenLogprob
    top: list[TokenLogprob]


@dataclass(slots=True)
class Delta:
    """What is new of a choice since the last one. `finish_reason` comes with the last."""

    index: int
    text: str
    tokens: list[SampledToken]
    finish_reason: FinishReason | None = None
    error: str | None = None


Listener = Callable[[Delta], None]


class Choice:
    def __init__(
        self, sequence: Sequence, completion: Completion, tokenizer: Tokenizer, listener: Listener | None
    ) -> None:
        params = sequence.params
        self.sequence = sequence
        self.completion = completion
        self._listener = listener
        self._keep_special = params.keep_special_tokens
        self._detokenizer = tokenizer.detokenizer(keep_special=params.keep_special_tokens)
        self._matcher = StopMatcher(params.stop, include_stop=params.include_stop) if params.stop else None

    def push(self, token: SampledToken) -> bool:
        """Take one token in. True when a stop string is complete."""
        completion, sequence = self.completion, self.sequence
        completion.token_ids.append(token.token_id)
        completion.logprobs.append(token.logprob)
        completion.runner_up.append(token.runner_up)
        if token.top:
            completion.top.append(token.top)
        ends = sequence.finished and token.token_id in sequence.stop_ids and not self._keep_special
        text = "" if ends else self._detokenizer.push(token.token_id)
        stopped = False
        if self._matcher is not None and not ends:
            text = self._matcher.push(text)
            stopped = self._matcher.stopped_by is not None
        if stopped or sequence.finished:
            self._close(text, [token], FinishReason.STOP if stopped else sequence.finish_reason)
            return stopped
        completion.text += text
        if self._listener is not None:
            self._listener(Delta(completion.index, text, [token]))
        return False

    def end(self, reason: FinishReason, error: str | None = None) -> None:
        """The choice ends without a further token: aborted, past its deadline, or failed."""
        if self.completion.finish_reason is None:
            self._close("", [], reason, error)

    def _close(
        self, text: str, tokens: list[SampledToken], reason: FinishReason | None, error: str | None = None
    ) -> None:
        stopped_by = self._matcher.stopped_by if self._matcher is not None else None
        if stopped_by is None:
            rest = self._detokenizer.finish()
            text += self._matcher.push(rest) + self._matcher.finish() if self._matcher is not None else rest
        self.completion.finish_reason = reason
        if reason is FinishReason.STOP:
            last = self.completion.token_ids[-1]
            self.completion.stop = stopped_by or (last if last in self.sequence.stop_ids else None)
        self.completion.text += text
        if self._listener is not None:
            self._listener(Delta(self.completion.index, text, tokens, reason, error))
