"""Text as tokens come in: a character whose bytes are split over tokens appears once it is whole."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from typing import Protocol


class TokenBytes(Protocol):
    def token_bytes(self, token_id: int, *, keep_special: bool = False) -> bytes: ...


class Detokenizer:
    def __init__(self, tokenizer: TokenBytes, *, keep_special: bool = False) -> None:
        self._tokenizer = tokenizer
        self._keep_special = keep_special
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id: int) -> str:
        return self._decoder.decode(self._tokenizer.token_bytes(token_id, keep_special=self._keep_special))

    def push_all(self, token_ids: Iterable[int]) -> str:
        return "".join(self.push(token) for token in token_ids)

    def finish(self) -> str:
        """What is left of an unfinished character, as the replacement character."""
        return self._decoder.decode(b"", final=True)
