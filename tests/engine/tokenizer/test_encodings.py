"""Token ids against two independent implementations: llama.cpp's tokenizer and the float32 oracle's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.models import gguf
from engine.tokenizer import Tokenizer
from engine.tokenizer.gguf import tokenizer_from_metadata

ENCODINGS = json.loads(Path(__file__).with_name("llama_cpp_encodings.json").read_text())
GOLDEN = Path(__file__).parents[2] / "golden" / "smollm2-135m-instruct-q4_1.json"


@pytest.fixture(scope="module")
def metadata(smollm2: Path) -> dict[str, Any]:
    return dict(gguf.read(smollm2).metadata)


def tokenizer(metadata: dict[str, Any], pre: str) -> Tokenizer:
    changed = metadata | {"tokenizer.ggml.pre": pre, "tokenizer.ggml.add_bos_token": False}
    return tokenizer_from_metadata(changed, 49152, Path("model.gguf"))


@pytest.mark.parametrize("pre", ENCODINGS["columns"][1:])
def test_ids_are_those_of_llama_cpp(pre: str, metadata: dict[str, Any]) -> None:
    words = tokenizer(metadata, pre)
    column = ENCODINGS["columns"].index(pre)
    different = [
        (row[0], words.encode(row[0]), row[column]) for row in ENCODINGS["rows"] if words.encode(row[0]) != row[column]
    ]
    assert different == []


def test_ids_are_those_of_the_oracle(metadata: dict[str, Any]) -> None:
    words = tokenizer(metadata, "smollm")
    for request in json.loads(GOLDEN.read_text())["requests"]:
        assert words.encode(request["prompt"]) == request["prompt_token_ids"], request["name"]


def test_the_chat_template_gives_the_oracles_prompt(metadata: dict[str, Any]) -> None:
    words = tokenizer(metadata, "smollm")
    (chat,) = [r for r in json.loads(GOLDEN.read_text())["requests"] if "messages" in r]
    assert words.chat_template is not None
    assert words.chat_template.render(chat["messages"]) == chat["prompt"]
