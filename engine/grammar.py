"""Structured output: which tokens a JSON schema, a regex or any JSON object allows next (by llguidance)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import EngineError, RequestError
from engine.tokenizer import Tokenizer

ANY_OBJECT = {"type": "object"}
MAX_GRAMMAR_BYTES = 1 << 16


class Grammars:
    """Compiles grammars for one tokenizer; made once, since it indexes the whole vocabulary."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        llguidance = _library()
        self._matcher = llguidance.LLMatcher
        self._vocab_size = tokenizer.vocab_size
        self._tokenizer = llguidance.LLTokenizer(
            llguidance.TokenizerWrapper(_Vocabulary(tokenizer)), n_vocab=tokenizer.vocab_size
        )

    def json_schema(self, schema: Mapping[str, Any] | bool) -> str:
        try:
            text = json.dumps(schema)
            return self._checked(self._matcher.grammar_from_json_schema(text, defaults={"whitespace_flexible": False}))
        except (ValueError, RecursionError) as error:
            raise RequestError(f"the JSON schema can't be used: {_first_line(error)}") from None

    def regex(self, pattern: str) -> str:
        try:
            return self._checked(self._matcher.grammar_from_regex(pattern))
        except ValueError as error:
            raise RequestError(f"the regex can't be used: {_first_line(error)}") from None

    def _checked(self, grammar: str) -> str:
        if len(grammar) > MAX_GRAMMAR_BYTES:
            raise ValueError(f"it is longer than {MAX_GRAMMAR_BYTES} bytes")
        problem = self._matcher.validate_grammar(grammar, self._tokenizer)
        if problem:
            raise ValueError(problem)
        return grammar

    def matcher(self, grammar: str) -> Matcher:
        return Matcher(self._matcher(self._tokenizer, grammar, log_level=0), self._vocab_size)


class Matcher:
    """Where one output stands in its grammar."""

    def __init__(self, matcher: Any, vocab_size: int) -> None:
        self._matcher = matcher
        self._mask = np.zeros((1, -(-vocab_size // 32)), dtype=np.int32)

    def mask(self) -> NDArray[np.uint32]:
        """One bit per token of the vocabulary, set where it may come next."""
        from llguidance.numpy import fill_next_token_bitmask

        fill_next_token_bitmask(self._matcher, self._mask, 0)
        bits: NDArray[np.uint32] = self._mask[0].view(np.uint32)
        return bits

    def accept(self, token_id: int) -> bool:
        """Take the sampled token. True when nothing may follow it, be it for an `error`."""
        self._matcher.consume_token(token_id)
        return bool(self._matcher.is_stopped())

    @property
    def error(self) -> str | None:
        return str(self._matcher.get_error()) if self._matcher.is_error() else None


class _Vocabulary:
    """What llguidance asks of a tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.eos_token_id = tokenizer.eos_id if tokenizer.eos_id is not None else min(tokenizer.stop_ids, default=0)
        self.bos_token_id = tokenizer.bos_id
        self.tokens: Sequence[bytes] = [
            tokenizer.token_bytes(token, keep_special=True) for token in range(tokenizer.vocab_size)
        ]
        self.special_token_ids = sorted(tokenizer.special_ids)

    def __call__(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_bos=False)


def _library() -> Any:
    try:
        import llguidance
    except ImportError:
        raise EngineError("structured output needs llguidance; pip install 'greenlane[serve]'") from None
    return llguidance


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
