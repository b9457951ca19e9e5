"""From a checked body to requests of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.errors import RequestError
from engine.grammar import ANY_OBJECT, Grammars
from engine.llm import LLM, Prompt, Request
from engine.sampling_params import SamplingParams
from engine.server import protocol


@dataclass
class Builder:
    """Makes requests; compiles grammars, for which it indexes the vocabulary when the first one comes."""

    llm: LLM
    _grammars: Grammars | None = field(default=None, repr=False)

    def completions(self, body: protocol.CompletionBody, client: str | None) -> list[Request]:
        params = _params(body, max_tokens=body.max_tokens, logprobs=body.logprobs or 0)
        return [self._request(self.llm.encode(prompt), params, body, client) for prompt in _prompts(body.prompt)]

    def chat(self, body: protocol.ChatBody, client: str | None) -> list[Request]:
        if body.top_logprobs and not body.logprobs:
            raise RequestError("top_logprobs needs logprobs: true")
        params = _params(
            body,
            max_tokens=body.max_completion_tokens or body.max_tokens,
            logprobs=body.top_logprobs or 0,
        )
        return [self._request(self.llm.encode_chat(as_messages(body.messages)), params, body, client)]

    def _request(
        self, prompt_ids: list[int], params: SamplingParams, body: protocol.Generation, client: str | None
    ) -> Request:
        grammar = self._grammar(body.response_format)
        matchers = [self._matcher(grammar) for _ in range(params.n)]
        return self.llm.request(
            prompt_ids, params, priority=body.priority, client=body.user or client, grammars=matchers
        )

    def _matcher(self, grammar: str | None) -> Any:
        if grammar is None or self._grammars is None:
            return None
        return self._grammars.matcher(grammar)

    def _grammar(self, wanted: Any) -> str | None:
        if wanted is None or isinstance(wanted, protocol.TextFormat):
            return None
        if self._grammars is None:
            self._grammars = Grammars(self.llm.tokenizer)
        if isinstance(wanted, protocol.RegexFormat):
            return self._grammars.regex(wanted.pattern)
        schema = wanted.json_schema.schema_ if isinstance(wanted, protocol.JsonSchemaFormat) else ANY_OBJECT
        return self._grammars.json_schema(schema)


def as_messages(messages: Sequence[protocol.Message]) -> list[dict[str, str]]:
    """Plain role and text, as chat templates know them."""
    found = []
    for message in messages:
        content = message.content
        text = content if isinstance(content, str) else "".join(part.text for part in content)
        found.append({"role": "system" if message.role == "developer" else message.role, "content": text})
    return found


def _prompts(prompt: str | list[str] | list[int] | list[list[int]]) -> list[Prompt]:
    if isinstance(prompt, str):
        return [prompt]
    if not prompt:
        raise RequestError("prompt is an empty list; send a text or token ids")
    if isinstance(prompt[0], int):
        return [prompt]
    return prompt  # type: ignore[return-value]


def _params(body: protocol.Generation, *, max_tokens: int | None, logprobs: int) -> SamplingParams:
    return SamplingParams(
        max_tokens=max_tokens,
        temperature=1.0 if body.temperature is None else body.temperature,
        top_k=body.top_k,
        top_p=1.0 if body.top_p is None else body.top_p,
        min_p=body.min_p,
        repetition_penalty=body.repetition_penalty,
        presence_penalty=body.presence_penalty or 0.0,
        frequency_penalty=body.frequency_penalty or 0.0,
        seed=body.seed,
        n=body.n,
        stop=_stops(body.stop),
        stop_token_ids=body.stop_token_ids,
        ignore_eos=body.ignore_eos,
        logit_bias=_biases(body.logit_bias or {}),
        logprobs=logprobs,
    )


def _stops(stop: str | list[str] | None) -> list[str]:
    """An empty stop string means none, as OpenAI's API has it."""
    return [stop] if isinstance(stop, str) and stop else [] if stop is None or stop == "" else list(stop)


def _biases(given: dict[str, float]) -> dict[int, float]:
    try:
        return {int(token): bias for token, bias in given.items()}
    except ValueError:
        raise RequestError("logit_bias must map token ids, written as strings, to numbers") from None
