"""The API as the official client sees it."""

from __future__ import annotations

import json
import re

import openai
import pytest

from engine import LLM, SamplingParams
from tests.engine.server.running import Running

GREEDY = {"model": "tiny", "temperature": 0, "extra_body": {"ignore_eos": True}}
HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def llm(tiny_model: object) -> LLM:
    return LLM(str(tiny_model), kv_cache_tokens=4096, threads=1)


def test_the_model_is_listed_and_found(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").id == "tiny"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-17")


def test_a_completion_is_what_the_python_api_gives(client: openai.OpenAI, llm: LLM) -> None:
    answer = client.completions.create(prompt="hello", max_tokens=12, **GREEDY)
    expected = llm.generate(["hello"], SamplingParams(max_tokens=12, ignore_eos=True))[0]
    assert answer.choices[0].text == expected.text
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (1, 12, 13)


def test_without_max_tokens_a_completion_has_16(client: openai.OpenAI) -> None:
    answer = client.completions.create(prompt="hello", **GREEDY)
    assert answer.usage is not None and answer.usage.completion_tokens == 16


def test_several_prompts_and_choices_are_numbered_in_order(client: openai.OpenAI) -> None:
    prompts = ["h", "o", "hello wor"]
    many = client.completions.create(prompt=prompts, n=2, max_tokens=6, **GREEDY)
    alone = [client.completions.create(prompt=prompt, max_tokens=6, **GREEDY).choices[0].text for prompt in prompts]
    assert [choice.index for choice in many.choices] == list(range(6))
    assert [choice.text for choice in many.choices] == [text for text in alone for _ in range(2)]


def test_token_ids_may_be_the_prompt(client: openai.OpenAI) -> None:
    by_ids = client.completions.create(prompt=[71], max_tokens=6, **GREEDY)
    by_text = client.completions.create(prompt="h", max_tokens=6, **GREEDY)
    many = client.completions.create(prompt=[[71], [78]], max_tokens=6, **GREEDY)
    assert by_ids.choices[0].text == by_text.choices[0].text == many.choices[0].text


def test_a_stream_adds_up_to_the_whole_answer(client: openai.OpenAI) -> None:
    whole = client.completions.create(prompt="hello", max_tokens=40, **GREEDY)
    stream = list(client.completions.create(prompt="hello", max_tokens=40, stream=True, **GREEDY))
    assert "".join(chunk.choices[0].text for chunk in stream) == whole.choices[0].text
    assert [chunk.choices[0].finish_reason for chunk in stream][-1] == "length"
    assert all(chunk.choices[0].finish_reason is None for chunk in stream[:-1])


def test_a_streamed_chat_begins_with_the_role_and_ends_with_the_usage(client: openai.OpenAI) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(client.chat.completions.create(messages=HELLO, max_tokens=8, **options, **GREEDY))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 8
    whole = client.chat.completions.create(messages=HELLO, max_tokens=8, **GREEDY)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
    assert text == whole.choices[0].message.content and whole.choices[0].message.role == "assistant"


def test_content_parts_and_the_developer_role_are_understood(client: openai.OpenAI) -> None:
    parts = [{"role": "user", "content": [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]}]
    one = client.chat.completions.create(messages=parts, max_tokens=6, **GREEDY)
    two = client.chat.completions.create(messages=HELLO, max_completion_tokens=6, **GREEDY)
    assert one.choices[0].message.content == two.choices[0].message.content
    client.chat.completions.create(messages=[{"role": "developer", "content": "x"}, *HELLO], max_tokens=1, **GREEDY)


def test_a_stop_string_ends_whole_and_streamed_answers_alike(client: openai.OpenAI) -> None:
    text = client.completions.create(prompt="hello", max_tokens=40, **GREEDY).choices[0].text
    stop = text[12:17]
    expected = text[: text.index(stop)]
    whole = client.completions.create(prompt="hello", max_tokens=40, stop=[stop], **GREEDY)
    assert (whole.choices[0].text, whole.choices[0].finish_reason) == (expected, "stop")
    stream = list(client.completions.create(prompt="hello", max_tokens=40, stop=stop, stream=True, **GREEDY))
    assert "".join(chunk.choices[0].text for chunk in stream) == expected
    assert stream[-1].choices[0].finish_reason == "stop"


def test_a_stream_never_shows_half_a_character(client: openai.OpenAI) -> None:
    """The model is random, so it emits many bytes that begin or continue a character."""
    body = {"ignore_eos": True}
    kwargs = {"model": "tiny", "prompt": "hello", "max_tokens": 300, "temperature": 2.0, "seed": 3}
    whole = client.completions.create(extra_body=body, **kwargs).choices[0].text
    pieces = [c.choices[0].text for c in client.completions.create(extra_body=body, stream=True, **kwargs)]
    assert "".join(pieces) == whole


def test_the_same_seed_gives_the_same_text_and_choices_differ(client: openai.OpenAI) -> None:
    def sample(seed: int) -> list[str]:
        answer = client.completions.create(model="tiny", prompt="hello", max_tokens=20, n=3, temperature=1, seed=seed)
        return [choice.text for choice in answer.choices]

    assert sample(5) == sample(5) != sample(6)
    assert len(set(sample(5))) == 3


def test_logprobs_of_completions_have_offsets_and_alternatives(client: openai.OpenAI) -> None:
    answer = client.completions.create(prompt="hello", max_tokens=5, logprobs=3, **GREEDY)
    logprobs = answer.choices[0].logprobs
    assert (
        logprobs is not None and len(logprobs.tokens) == len(logprobs.token_logprobs) == len(logprobs.text_offset) == 5
    )
    assert all(
        len(top) <= 3 and max(top.values()) == pytest.approx(own)
        for top, own in zip(logprobs.top_logprobs, logprobs.token_logprobs, strict=True)
    )


def test_logprobs_of_chat_are_the_same_streamed_and_whole(client: openai.OpenAI) -> None:
    asked = {"messages": HELLO, "max_tokens": 5, "logprobs": True, "top_logprobs": 2, **GREEDY}
    whole = client.chat.completions.create(**asked).choices[0].logprobs
    chunks = client.chat.completions.create(stream=True, **asked)
    streamed = [entry for chunk in chunks if chunk.choices[0].logprobs for entry in chunk.choices[0].logprobs.content]
    assert whole is not None and whole.content is not None
    assert [entry.bytes for entry in streamed] == [entry.bytes for entry in whole.content]
    assert [entry.logprob for entry in streamed] == pytest.approx([entry.logprob for entry in whole.content])
    assert all(len(entry.top_logprobs) == 2 for entry in streamed)


def test_an_empty_prompt_is_answered(client: openai.OpenAI) -> None:
    answer = client.completions.create(prompt="", max_tokens=3, **GREEDY)
    assert answer.usage is not None and answer.usage.prompt_tokens == 1 and answer.usage.completion_tokens == 3


def test_echo_puts_the_prompt_before_the_text(client: openai.OpenAI) -> None:
    plain = client.completions.create(prompt="hello", max_tokens=4, **GREEDY).choices[0].text
    assert (
        client.completions.create(prompt="hello", max_tokens=4, echo=True, **GREEDY).choices[0].text == "hello" + plain
    )
    stream = client.completions.create(prompt="hello", max_tokens=4, echo=True, stream=True, **GREEDY)
    assert "".join(chunk.choices[0].text for chunk in stream) == "hello" + plain


def test_a_prompt_seen_before_is_reported_as_cached(client: openai.OpenAI) -> None:
    for _ in range(2):
        answer = client.completions.create(prompt="abcdefghij" * 10, max_tokens=1, **GREEDY)
    assert answer.usage is not None and answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == 96


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 5}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("seed", range(4))
def test_a_json_schema_is_kept_whatever_the_model_would_say(client: openai.OpenAI, seed: int) -> None:
    answer = client.chat.completions.create(
        model="tiny", messages=HELLO, max_tokens=200, temperature=1.5, seed=seed,
        response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}},
    )  # fmt: skip
    found = json.loads(answer.choices[0].message.content or "")
    assert answer.choices[0].finish_reason == "stop"
    assert set(found) == {"name", "age"} and len(found["name"]) <= 5 and 0 <= found["age"] <= 99


def test_a_regex_is_kept_in_a_stream_of_several_choices(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="tiny", messages=HELLO, max_tokens=50, temperature=1, seed=1, n=3, stream=True,
        extra_body={"response_format": {"type": "regex", "pattern": "[a-c]{3}-[0-9]{2}"}},
    )  # fmt: skip
    texts = ["", "", ""]
    for chunk in stream:
        texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert all(re.fullmatch("[a-c]{3}-[0-9]{2}", text) for text in texts)


def test_json_mode_begins_an_object(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tiny", messages=HELLO, max_tokens=30, temperature=1, seed=2, response_format={"type": "json_object"}
    )
    assert (answer.choices[0].message.content or "").startswith("{")


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({"max_tokens": 100_000}, "lower max_tokens to"),
        ({"temperature": -1}, "temperature"),
        ({"n": 0}, "n: "),
        ({"stop": ["a"] * 17}, "17 strings"),
        ({"stop": [""]}, "empty string"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"logit_bias": {"999": 1}}, "outside the 266"),
        ({"tools": []}, "tools"),
        ({"top_logprobs": 3}, "needs logprobs"),
        ({"stream_options": {"include_usage": True}}, "needs stream"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "odd"}}}},
            "schema",
        ),
        ({"response_format": {"type": "regex", "pattern": "("}}, "regex"),
        ({"response_format": {"type": "poem"}}, "response_format"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "pilot", "content": "x"}]}, "role"),
    ],
)
def test_an_impossible_wish_is_refused_with_its_name(server: Running, extra: dict[str, object], says: str) -> None:
    status, answer = server.post("/v1/chat/completions", {"model": "tiny", "messages": HELLO, "max_tokens": 3, **extra})
    assert status == 400
    assert says in answer["error"]["message"] and answer["error"]["type"] == "invalid_request_error"


def test_another_model_is_not_found(server: Running) -> None:
    status, answer = server.post("/v1/completions", {"model": "gpt-17", "prompt": "x"})
    assert status == 404 and answer["error"]["code"] == "model_not_found"


def test_tokenize_and_detokenize_are_each_others_reverse(server: Running) -> None:
    _, found = server.post("/tokenize", {"prompt": "hello wor½"})
    assert found["count"] == len(found["tokens"]) and found["max_model_len"] == 4096
    assert server.post("/detokenize", {"tokens": found["tokens"]})[1] == {"prompt": "hello wor½"}
    assert server.post("/tokenize", {"messages": HELLO})[1]["count"] == 2
    assert server.post("/tokenize", {})[0] == 400
