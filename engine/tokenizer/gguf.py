"""A tokenizer from a GGUF file's metadata: byte-level BPE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders
from tokenizers.models import BPE

from engine.errors import ModelFileError, UnsupportedModel
from engine.tokenizer import Tokenizer
from engine.tokenizer.chat_template import ChatTemplate
from engine.tokenizer.pre_tokenizers import ADDS_BOS, IGNORE_MERGES, PATTERNS, canonical, pre_tokenizer

CONTROL, USER_DEFINED, UNUSED = 3, 4, 5  # of tokenizer.ggml.token_type
# Tokens that end a turn though the file names only one as its end of sequence.
END_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|end_of_text|>", "<|endoftext|>", "<|return|>")


def tokenizer_from_metadata(metadata: Mapping[str, Any], vocab_size: int, path: Path) -> Tokenizer:
    tokens = _list(metadata, "tokenizer.ggml.tokens", str, path)
    if not 0 < len(tokens) <= vocab_size:
        raise ModelFileError(f"{path}: {len(tokens)} tokens for {vocab_size} embeddings; the file is damaged")
    types = _list(metadata, "tokenizer.ggml.token_type", int, path, default=[1] * len(tokens))
    if len(types) != len(tokens):
        raise ModelFileError(f"{path}: {len(types)} token types for {len(tokens)} tokens; the file is damaged")
    pre = _pre_tokenizer_name(metadata, path)
    backend = _backend(tokens, types, _merges(metadata, path), pre)
    special = frozenset(i for i, kind in enumerate(types) if kind == CONTROL)
    bos = _token_id(metadata, "bos", len(tokens), path)
    return Tokenizer(
        backend=backend,
        vocab_size=vocab_size,
        bos_id=bos,
        add_bos=bool(metadata.get("tokenizer.ggml.add_bos_token", pre in ADDS_BOS)),
        eos_id=_token_id(metadata, "eos", len(tokens), path),
        stop_ids=_stop_ids(metadata, tokens, special, path),
        special_ids=special,
        chat_template=_chat_template(metadata, tokens, path),
    )


def _backend(tokens: Sequence[str], types: Sequence[int], merges: list[tuple[str, str]], pre: str) -> Any:
    vocabulary = {token: index for index, token in enumerate(tokens)}
    try:
        model = BPE(vocab=vocabulary, merges=merges, ignore_merges=pre in IGNORE_MERGES)
    except Exception as error:  # the library raises bare Exception for merges outside the vocabulary
        raise ModelFileError(
            f"the vocabulary and its merges don't fit together ({error}); fetch the file again"
        ) from None
    backend = tokenizers.Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizer(pre)
    backend.decoder = decoders.ByteLevel()
    for kind, special in ((CONTROL, True), (USER_DEFINED, False)):
        added = [
            AddedToken(t, special=special, normalized=False) for t, k in zip(tokens, types, strict=True) if k == kind
        ]
        (backend.add_special_tokens if special else backend.add_tokens)([token for token in added if token.content])
    return backend


def _merges(metadata: Mapping[str, Any], path: Path) -> list[tuple[str, str]]:
    merges = []
    for index, line in enumerate(_list(metadata, "tokenizer.ggml.merges", str, path)):
        left, space, right = line[1:].partition(" ")
        if not space:
            raise ModelFileError(f"{path}: merge {index} is {line[:40]!r}, not two tokens; the file is damaged")
        merges.append((line[0] + left, right))
    return merges


def _pre_tokenizer_name(metadata: Mapping[str, Any], path: Path) -> str:
    model = metadata.get("tokenizer.ggml.model")
    if model != "gpt2":
        raise UnsupportedModel(
            f"{path}: tokenizer {str(model)[:40]!r} is not supported; supported is 'gpt2' (byte-level BPE)"
        )
    named = metadata.get("tokenizer.ggml.pre", "default")
    known = canonical(named) if isinstance(named, str) else None
    if known is None:
        raise UnsupportedModel(
            f"{path}: pre-tokenizer {str(named)[:40]!r} is not supported; supported are {', '.join(PATTERNS)}"
        )
    return known


def _list(metadata: Mapping[str, Any], key: str, kind: type, path: Path, default: list[Any] | None = None) -> list[Any]:
    value = metadata.get(key, default)
    if not isinstance(value, list) or not all(type(item) is kind for item in value):
        what = "missing" if value is None else "of the wrong type"
        raise ModelFileError(f"{path}: metadata {key!r} is {what}; the file is no complete model")
    return value


def _token_id(metadata: Mapping[str, Any], name: str, count: int, path: Path) -> int | None:
    key = f"tokenizer.ggml.{name}_token_id"
    value = metadata.get(key)
    if value is None or value == 0xFFFFFFFF:
        return None
    if type(value) is not int or not 0 <= value < count:
        raise ModelFileError(f"{path}: metadata {key!r} is {str(value)[:40]}, outside the vocabulary of {count}")
    return value


def _stop_ids(
    metadata: Mapping[str, Any], tokens: Sequence[str], special: frozenset[int], path: Path
) -> frozenset[int]:
    named = {_token_id(metadata, name, len(tokens), path) for name in ("eos", "eot", "eom")}
    known = {index for index in special if tokens[index] in END_OF_TURN}
    return frozenset(index for index in named if index is not None) | known


def _chat_template(metadata: Mapping[str, Any], tokens: Sequence[str], path: Path) -> ChatTemplate | None:
    source = metadata.get("tokenizer.chat_template")
    if source is None:
        return None
    if not isinstance(source, str):
        raise ModelFileError(f"{path}: metadata 'tokenizer.chat_template' is not a string; the file is damaged")
    names = {"bos": "bos_token", "eos": "eos_token", "padding": "pad_token", "unknown": "unk_token"}
    ids = {word: _token_id(metadata, name, len(tokens), path) for name, word in names.items()}
    return ChatTemplate(source, {word: tokens[index] for word, index in ids.items() if index is not None})
