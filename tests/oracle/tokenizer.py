"""Byte-level BPE from a GGUF file's own vocabulary and merges, written out in Python; splits text as llama.cpp does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import jinja2
import jinja2.sandbox
import regex

from tests.oracle.checkpoint import Checkpoint

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Each pattern splits the pieces that the one before it left; text that matches nothing is a piece of its own.
SPLITS = {"smollm": (r"\p{N}", GPT2), "gpt-2": (GPT2,), "qwen2": (QWEN2,)}

CONTROL, USER_DEFINED = 3, 4


class Tokenizer:
    def __init__(self, checkpoint: Checkpoint) -> None:
        metadata = checkpoint.metadata
        tokens: list[str] = metadata["tokenizer.ggml.tokens"]
        types: list[int] = metadata["tokenizer.ggml.token_type"]
        self.ids = {token: index for index, token in enumerate(tokens)}
        self.tokens = tokens
        self.ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(metadata["tokenizer.ggml.merges"])}
        self.patterns = [regex.compile(p) for p in SPLITS[metadata["tokenizer.ggml.pre"]]]
        special = [token for token, kind in zip(tokens, types, strict=True) if kind in (CONTROL, USER_DEFINED)]
        longest_first = sorted(special, key=len, reverse=True)
        self.special = frozenset(special)
        self.special_pattern = regex.compile("(" + "|".join(map(regex.escape, longest_first)) + ")")
        self.template = metadata.get("tokenizer.chat_template")
        self.eos = metadata.get("tokenizer.ggml.eos_token_id")
        self.bos = metadata.get("tokenizer.ggml.bos_token_id")

    def encode(self, text: str, *, parse_special: bool = False) -> list[int]:
        if not parse_special:
            return self.encode_plain(text)
        ids: list[int] = []
        for piece in self.special_pattern.split(text):
            ids += [self.ids[piece]] if piece in self.special else self.encode_plain(piece)
        return ids

    def encode_plain(self, text: str) -> list[int]:
        """A byte that the vocabulary lacks is dropped, as llama.cpp does."""
        tokens = [token for piece in self.pieces(text) for token in self.merged(piece)]
        return [self.ids[token] for token in tokens if token in self.ids]

    def pieces(self, text: str) -> list[str]:
        pieces = [text] if text else []
        for pattern in self.patterns:
            pieces = [part for piece in pieces for part in split(pattern, piece)]
        return pieces

    def merged(self, piece: str) -> list[str]:
        symbols = [BYTE_TO_CHAR[byte] for byte in piece.encode()]
        while len(symbols) > 1:
            pairs = [(self.ranks.get(pair, len(self.ranks)), at) for at, pair in enumerate(pairwise(symbols))]
            rank, at = min(pairs)
            if rank == len(self.ranks):
                break
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
        return symbols

    def decode(self, ids: list[int]) -> str:
        data = b""
        for token in (self.tokens[i] for i in ids):
            data += token.encode() if token in self.special else bytes(CHAR_TO_BYTE[c] for c in token)
        return data.decode(errors="replace")

    def chat(self, messages: list[dict[str, str]]) -> str:
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        names = {"bos_token": self.tokens[self.bos], "eos_token": self.tokens[self.eos]}
        return environment.from_string(self.template).render(messages=messages, add_generation_prompt=True, **names)


def split(pattern: regex.Pattern[str], text: str) -> Iterator[str]:
    end = 0
    for match in pattern.finditer(text):
        if match.start() > end:
            yield text[end : match.start()]
        yield match.group()
        end = match.end()
    if end < len(text):
        yield text[end:]


def byte_alphabet() -> dict[int, str]:
    """Printable bytes stand for themselves, the others for the characters from U+0100 on, in order."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


BYTE_TO_CHAR = byte_alphabet()
CHAR_TO_BYTE = {char: byte for byte, char in BYTE_TO_CHAR.items()}
