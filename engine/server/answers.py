"""Answers in OpenAI's shapes: whole, and as the chunks of a stream."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine.choice import Delta, SampledToken
from engine.llm import Request
from engine.outputs import Completion, TokenLogprob
from engine.tokenizer import Tokenizer


@dataclass(frozen=True)
class Head:
    """What all parts of an answer say of it."""

    prefix: str
    model: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    def document(self, kind: str, **extra: Any) -> dict[str, Any]:
        return {"id": f"{self.prefix}-{self.id}", "object": kind, "created": self.created, "model": self.model, **extra}


class Shape(Protocol):
    """How one endpoint writes its answers."""

    head: Head

    def whole(self, requests: Sequence[Request]) -> dict[str, Any]: ...
    def opening(self, index: int) -> dict[str, Any] | None:
        """A choice's first chunk, where there is one before any token."""

    def chunk(self, index: int, delta: Delta) -> dict[str, Any] | None: ...
    def closing(self, requests: Sequence[Request]) -> dict[str, Any]:
        """The chunk with the usage."""


def usage(requests: Sequence[Request]) -> dict[str, Any]:
    prompt = sum(len(request.output.prompt_token_ids) for request in requests)
    completion = sum(len(choice.token_ids) for request in requests for choice in request.output.completions)
    cached = sum(request.output.num_cached_tokens for request in requests)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def numbered(requests: Sequence[Request]) -> list[tuple[int, Request, Completion]]:
    """Every choice of every prompt with its index in the answer."""
    flat = [(request, choice) for request in requests for choice in request.output.completions]
    return [(index, request, choice) for index, (request, choice) in enumerate(flat)]


@dataclass
class CompletionShape:
    head: Head
    tokenizer: Tokenizer
    logprobs: bool
    token_ids: bool
    echoes: Sequence[str]  # per choice: what stands before its text
    _offsets: dict[int, int] = field(default_factory=dict)

    def whole(self, requests: Sequence[Request]) -> dict[str, Any]:
        choices = []
        for index, _, choice in numbered(requests):
            text = self.echoes[index] + choice.text
            logprobs = self._logprobs(index, _tokens_of(choice)) if self.logprobs else None
            ids = {"token_ids": choice.token_ids} if self.token_ids else {}
            choices.append(_choice(index, choice.finish_reason, logprobs, text=text, **ids))
        return self.head.document("text_completion", choices=choices, usage=usage(requests))

    def opening(self, index: int) -> dict[str, Any] | None:
        if not self.echoes[index]:
            return None
        choice = _choice(index, None, None, text=self.echoes[index])
        return self.head.document("text_completion", choices=[choice])

    def chunk(self, index: int, delta: Delta) -> dict[str, Any] | None:
        if not (delta.text or delta.finish_reason or self.logprobs or self.token_ids):
            return None
        logprobs = self._logprobs(index, delta.tokens) if self.logprobs else None
        choice = _choice(index, delta.finish_reason, logprobs, text=delta.text, **self._ids(delta))
        return self.head.document("text_completion", choices=[choice])

    def closing(self, requests: Sequence[Request]) -> dict[str, Any]:
        return self.head.document("text_completion", choices=[], usage=usage(requests))

    def _logprobs(self, index: int, tokens: Sequence[SampledToken]) -> dict[str, Any]:
        texts = [self.tokenizer.token_text(token.token_id) for token in tokens]
        offset = self._offsets.get(index, len(self.echoes[index]))
        offsets = []
        for text in texts:
            offsets.append(offset)
            offset += len(text)
        self._offsets[index] = offset
        return {
            "tokens": texts,
            "token_logprobs": [token.logprob for token in tokens],
            "top_logprobs": [self._alternatives(token.top) for token in tokens],
            "text_offset": offsets,
        }

    def _ids(self, delta: Delta) -> dict[str, list[int]]:
        return {"token_ids": [token.token_id for token in delta.tokens]} if self.token_ids else {}

    def _alternatives(self, top: Sequence[TokenLogprob]) -> dict[str, float]:
        """By text; of several tokens with the same text, as halves of characters have, the likeliest counts."""
        return {self.tokenizer.token_text(token.token_id): token.logprob for token in reversed(top)}


@dataclass
class ChatShape:
    head: Head
    tokenizer: Tokenizer
    logprobs: bool
    token_ids: bool

    def whole(self, requests: Sequence[Request]) -> dict[str, Any]:
        choices = []
        for index, _, choice in numbered(requests):
            message = {"role": "assistant", "content": choice.text, "refusal": None}
            logprobs = self._logprobs(_tokens_of(choice)) if self.logprobs else None
            ids = {"token_ids": choice.token_ids} if self.token_ids else {}
            choices.append(_choice(index, choice.finish_reason, logprobs, message=message, **ids))
        return self.head.document("chat.completion", choices=choices, usage=usage(requests))

    def opening(self, index: int) -> dict[str, Any] | None:
        delta = {"role": "assistant", "content": ""}
        return self.head.document("chat.completion.chunk", choices=[_choice(index, None, None, delta=delta)])

    def chunk(self, index: int, delta: Delta) -> dict[str, Any] | None:
        if not (delta.text or delta.finish_reason or self.logprobs or self.token_ids):
            return None
        logprobs = self._logprobs(delta.tokens) if self.logprobs else None
        content = {"content": delta.text} if delta.text else {}
        choice = _choice(index, delta.finish_reason, logprobs, delta=content, **self._ids(delta))
        return self.head.document("chat.completion.chunk", choices=[choice])

    def closing(self, requests: Sequence[Request]) -> dict[str, Any]:
        return self.head.document("chat.completion.chunk", choices=[], usage=usage(requests))

    def _logprobs(self, tokens: Sequence[SampledToken]) -> dict[str, Any]:
        content = [
            {**self._token(TokenLogprob(t.token_id, t.logprob)), "top_logprobs": [self._token(top) for top in t.top]}
            for t in tokens
        ]
        return {"content": content, "refusal": None}

    def _ids(self, delta: Delta) -> dict[str, list[int]]:
        return {"token_ids": [token.token_id for token in delta.tokens]} if self.token_ids else {}

    def _token(self, token: TokenLogprob) -> dict[str, Any]:
        text = self.tokenizer.token_bytes(token.token_id, keep_special=True)
        return {"token": text.decode("utf-8", "replace"), "logprob": token.logprob, "bytes": list(text)}


def _choice(index: int, finish_reason: str | None, logprobs: Any, **content: Any) -> dict[str, Any]:
    return {"index": index, **content, "logprobs": logprobs, "finish_reason": finish_reason}


def _tokens_of(choice: Completion) -> list[SampledToken]:
    tops = choice.top or [[]] * len(choice.token_ids)
    rows = zip(choice.token_ids, choice.logprobs, choice.runner_up, tops, strict=True)
    return [SampledToken(*row) for row in rows]
