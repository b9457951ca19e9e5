"""The oracle's tokenizer against what llama.cpp says of the same texts."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the oracle needs PyTorch: nox -s oracle")
pytest.importorskip("regex", reason="the oracle's tokenizer needs `regex`: nox -s oracle")

from tests.oracle import checkpoint
from tests.oracle.__main__ import packaged_model
from tests.oracle.tokenizer import SPLITS, Tokenizer

ENCODINGS = json.loads((Path(__file__).parent.parent / "engine/tokenizer/llama_cpp_encodings.json").read_text())


@pytest.fixture(scope="module")
def model() -> checkpoint.Checkpoint:
    return checkpoint.load(packaged_model())


@pytest.mark.parametrize("split", sorted(SPLITS))
def test_texts_are_encoded_as_by_llama_cpp(split: str, model: checkpoint.Checkpoint) -> None:
    tokenizer = Tokenizer(dataclasses.replace(model, metadata=model.metadata | {"tokenizer.ggml.pre": split}))
    column = ENCODINGS["columns"].index(split)
    wrong = [row[0] for row in ENCODINGS["rows"] if tokenizer.encode(row[0], parse_special=True) != row[column]]
    assert len(ENCODINGS["rows"]) > 50 and wrong == []


def test_decoding_gives_the_text_back(model: checkpoint.Checkpoint) -> None:
    tokenizer = Tokenizer(model)
    for text in ("naïve ½ 東京 🙂\n\tx", "a  b", "<|im_end|>"):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_special_tokens_are_read_only_where_asked(model: checkpoint.Checkpoint) -> None:
    tokenizer = Tokenizer(model)
    assert tokenizer.encode("<|im_end|>", parse_special=True) == [2]
    assert 2 not in tokenizer.encode("<|im_end|>")
