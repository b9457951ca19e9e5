"""A tokenizer from Hugging Face's files: tokenizer.json, tokenizer_config.json, chat_template.jinja."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers

from engine.errors import ModelFileError, UnsupportedModel
from engine.models.safetensors import read_json
from engine.tokenizer import Tokenizer
from engine.tokenizer.chat_template import ChatTemplate
from engine.tokenizer.gguf import END_OF_TURN

WORDS = ("bos_token", "eos_token", "pad_token", "unk_token")


def tokenizer_from_folder(folder: Path, config: Mapping[str, Any], vocab_size: int) -> Tokenizer:
    path = folder / "tokenizer.json"
    document = read_json(path)
    _require_byte_level(document, path)
    try:
        backend = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ModelFileError(f"{path}: can't be used: {str(error)[:200]}; fetch it again") from None
    if backend.get_vocab_size() > vocab_size:
        raise ModelFileError(
            f"{path}: {backend.get_vocab_size()} tokens for {vocab_size} embeddings; they don't belong together"
        )
    settings = read_json(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").exists() else {}
    words = {word: _text(settings.get(word)) for word in WORDS}
    added = backend.get_added_tokens_decoder()
    special = frozenset(index for index, token in added.items() if token.special)
    bos, eos = (backend.token_to_id(words[word] or "") for word in ("bos_token", "eos_token"))
    return Tokenizer(
        backend=backend,
        vocab_size=vocab_size,
        bos_id=bos,
        add_bos=settings.get("add_bos_token") is True,
        eos_id=eos,
        stop_ids=_stop_ids(folder, config, backend, special, eos, vocab_size),
        special_ids=special,
        chat_template=_chat_template(folder, settings, {word: text for word, text in words.items() if text}),
    )


def _require_byte_level(document: Mapping[str, Any], path: Path) -> None:
    """Only there does a token stand for fixed bytes, which is what turning tokens into text relies on."""
    decoder = document.get("decoder")
    if not isinstance(decoder, dict) or decoder.get("type") != "ByteLevel":
        kind = decoder.get("type") if isinstance(decoder, dict) else decoder
        raise UnsupportedModel(f"{path}: decoder {str(kind)[:40]!r} is not supported; supported is ByteLevel")


def _text(token: Any) -> str | None:
    """A special token is written as text, or as an object with the text."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def _stop_ids(
    folder: Path, config: Mapping[str, Any], backend: Any, special: frozenset[int], eos: int | None, vocab_size: int
) -> frozenset[int]:
    found = {index for index in special if backend.id_to_token(index) in END_OF_TURN}
    found |= {eos} if eos is not None else set()
    generation = folder / "generation_config.json"
    for source in (config, read_json(generation) if generation.exists() else {}):
        named = source.get("eos_token_id")
        ids = named if isinstance(named, list) else [named]
        found |= {index for index in ids if type(index) is int and 0 <= index < vocab_size}
    return frozenset(found)


def _chat_template(folder: Path, settings: Mapping[str, Any], words: Mapping[str, str]) -> ChatTemplate | None:
    file = folder / "chat_template.jinja"
    source: Any = file.read_text(encoding="utf-8") if file.exists() else settings.get("chat_template")
    if isinstance(source, list):  # several by name
        named = {entry.get("name"): entry.get("template") for entry in source if isinstance(entry, dict)}
        source = named.get("default")
    return ChatTemplate(source, words) if isinstance(source, str) else None
