"""Text as tokens come in, in particular where a character is split over tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.models import gguf
from engine.tokenizer import Tokenizer
from engine.tokenizer.gguf import tokenizer_from_metadata


@pytest.fixture(scope="module")
def words(smollm2: Path) -> Tokenizer:
    return tokenizer_from_metadata(gguf.read(smollm2).metadata, 49152, smollm2)


def test_a_character_appears_once_its_last_byte_has_come(words: Tokenizer) -> None:
    ids = words.encode("日")
    assert len(ids) > 1, "the test needs a character that is split over tokens"
    stream = words.detokenizer()
    assert [stream.push(token) for token in ids] == [*[""] * (len(ids) - 1), "日"]


def test_an_unfinished_character_becomes_the_replacement_character(words: Tokenizer) -> None:
    stream = words.detokenizer()
    assert stream.push(words.encode("日")[0]) == ""
    assert stream.finish() == "\ufffd"


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_streamed_text_is_the_text_decoded_at_once(words: Tokenizer, data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, 49151), max_size=30))
    stream = words.detokenizer()
    assert stream.push_all(ids) + stream.finish() == words.decode(ids)


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet=st.characters(min_codepoint=32, exclude_categories=["Cs", "Co", "Cn"]), max_size=40))
def test_encoding_and_decoding_gives_the_text_back(words: Tokenizer, text: str) -> None:
    assert words.decode(words.encode(text), keep_special=True) == text


def test_control_tokens_have_no_text_unless_kept(words: Tokenizer) -> None:
    ids = words.encode("<|im_start|>user")
    assert words.decode(ids) == "user"
    assert words.decode(ids, keep_special=True) == "<|im_start|>user"


def test_bytes_that_the_vocabulary_lacks_are_dropped(words: Tokenizer) -> None:
    assert words.decode(words.encode("a\x04b")) == "ab"


def test_an_id_beyond_the_vocabulary_has_no_text(words: Tokenizer) -> None:
    assert words.decode([60000]) == ""


def test_an_empty_prompt_is_replaced_by_the_begin_token(words: Tokenizer) -> None:
    assert words.encode("") == [] and words.empty_prompt() == [1]
