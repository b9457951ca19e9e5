"""Text to token ids and back. Built from a GGUF file or from Hugging Face's files; the same object either way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import tokenizers

from engine.errors import RequestError
from engine.tokenizer.chat_template import ChatTemplate
from engine.tokenizer.detokenizer import Detokenizer


@dataclass(frozen=True)
class Tokenizer:
    backend: tokenizers.Tokenizer
    vocab_size: int  # rows of the embedding; ids from the vocabulary's end to here have no text
    bos_id: int | None
    add_bos: bool
    eos_id: int | None
    stop_ids: frozenset[int]  # end of sequence or of turn
    special_ids: frozenset[int]  # control tokens, without text of their own
    chat_template: ChatTemplate | None
    _bytes: dict[int, bytes] = field(default_factory=dict, repr=False)

    def encode(self, text: str, *, add_bos: bool | None = None) -> list[int]:
        """Special tokens written in the text become those tokens. BOS comes first where the model wants it."""
        try:
            ids: list[int] = self.backend.encode(text, add_special_tokens=False).ids
        except (TypeError, UnicodeEncodeError):
            raise RequestError("the prompt holds a lone surrogate, which is no text; send valid Unicode") from None
        wants_bos = self.add_bos if add_bos is None else add_bos
        if wants_bos and self.bos_id is not None and ids[:1] != [self.bos_id]:
            return [self.bos_id, *ids]
        return ids

    def empty_prompt(self) -> list[int]:
        """What an empty text is replaced by, so that there is something to continue."""
        return [self.bos_id] if self.bos_id is not None else sorted(self.stop_ids)[:1]

    def token_bytes(self, token_id: int, *, keep_special: bool = False) -> bytes:
        """The bytes that the token stands for: none for a control token, unless asked to keep it."""
        if token_id in self.special_ids and not keep_special:
            return b""
        known = self._bytes.get(token_id)
        if known is None:
            known = self._bytes[token_id] = _bytes_of(self.backend.id_to_token(token_id))
        return known

    def decode(self, token_ids: Sequence[int], *, keep_special: bool = False) -> str:
        joined = b"".join(self.token_bytes(token, keep_special=keep_special) for token in token_ids)
        return joined.decode("utf-8", "replace")

    def token_text(self, token_id: int) -> str:
        return self.token_bytes(token_id, keep_special=True).decode("utf-8", "replace")

    def detokenizer(self, *, keep_special: bool = False) -> Detokenizer:
        return Detokenizer(self, keep_special=keep_special)


def _byte_of_character() -> dict[str, int]:
    """Byte-level BPE writes bytes as printable characters: these stand for themselves, the rest from U+0100 on."""
    themselves = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    shifted = [byte for byte in range(256) if byte not in set(themselves)]
    return {chr(byte): byte for byte in themselves} | {chr(0x100 + i): byte for i, byte in enumerate(shifted)}


_BYTES = _byte_of_character()


def _bytes_of(token: str | None) -> bytes:
    if token is None:
        return b""
    try:
        return bytes([_BYTES[character] for character in token])
    except KeyError:  # an added token, written as it is
        return token.encode()
