"""The Python API on the real model: text, stops, seeds, choices, probabilities, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import LLM, SamplingParams
from engine.errors import EngineError, KVCacheTooSmall, RequestError

PROMPTS = ["The capital of France is", "Once upon a time", "1, 2, 3, 4,"]
GREEDY = SamplingParams(max_tokens=16, ignore_eos=True)


@pytest.fixture(scope="module")
def llm() -> LLM:
    return LLM("smollm2", kv_cache_tokens=4096)


def test_it_knows_the_capital_of_france(llm: LLM) -> None:
    output = llm.generate(["The capital of France is"], SamplingParams(max_tokens=4))[0]
    assert output.text.startswith(" Paris") or "Paris" in output.text


def test_the_same_seed_gives_the_same_tokens_in_any_company(llm: LLM) -> None:
    params = SamplingParams(max_tokens=12, temperature=0.9, top_p=0.95, seed=11, ignore_eos=True)
    single = llm.generate([PROMPTS[1]], params)[0].token_ids
    crowd = llm.generate(PROMPTS, params)[1].token_ids
    other = llm.generate([PROMPTS[1]], SamplingParams(max_tokens=12, temperature=0.9, seed=12, ignore_eos=True))[
        0
    ].token_ids
    assert single == crowd
    assert single != other


def test_choices_differ_and_the_first_is_the_single_one(llm: LLM) -> None:
    params = {"max_tokens": 12, "temperature": 1.0, "seed": 5, "ignore_eos": True}
    many = llm.generate([PROMPTS[1]], SamplingParams(n=4, **params))[0]
    assert len({tuple(choice.token_ids) for choice in many.completions}) == 4
    assert many.completions[0].token_ids == llm.generate([PROMPTS[1]], SamplingParams(**params))[0].token_ids


def test_a_stop_string_ends_the_text_before_it(llm: LLM) -> None:
    text = llm.generate([PROMPTS[0]], GREEDY)[0].text
    stop = text[7:12]
    output = llm.generate([PROMPTS[0]], SamplingParams(max_tokens=16, stop=[stop], ignore_eos=True))[0]
    assert output.text == text[: text.index(stop)] and output.completions[0].finish_reason == "stop"


def test_a_repetition_penalty_breaks_a_loop(llm: LLM) -> None:
    loop = SamplingParams(max_tokens=24, ignore_eos=True)
    damped = SamplingParams(max_tokens=24, ignore_eos=True, repetition_penalty=1.5)
    prompt = "no no no no no no no no"
    assert len(set(llm.generate([prompt], damped)[0].token_ids)) > len(set(llm.generate([prompt], loop)[0].token_ids))


def test_a_bias_forces_and_forbids_tokens(llm: LLM) -> None:
    forced = SamplingParams(max_tokens=3, logit_bias={42: 1000.0}, ignore_eos=True)
    assert llm.generate([PROMPTS[0]], forced)[0].token_ids == [42, 42, 42]


def test_logprobs_agree_with_teacher_forcing(llm: LLM) -> None:
    output = llm.generate([PROMPTS[0]], SamplingParams(max_tokens=8, logprobs=3, ignore_eos=True))[0]
    completion = output.completions[0]
    scores = llm.score(output.prompt_token_ids, completion.token_ids)
    assert scores.logprobs == pytest.approx(completion.logprobs, abs=1e-4)
    assert [best.token_id for best in scores.best] == completion.token_ids
    assert [second.token_id for second in scores.runner_up] == [second.token_id for second in completion.runner_up]
    assert all(top[0].token_id == token for top, token in zip(completion.top, completion.token_ids, strict=True))
    assert all(len(top) == 3 for top in completion.top)


def test_chat_answers_with_the_end_of_turn(llm: LLM) -> None:
    output = llm.chat([{"role": "user", "content": "Say hello."}], SamplingParams(max_tokens=40))
    assert output.text and "<|im_end|>" not in output.text


@pytest.mark.parametrize(
    ("prompt", "params", "error", "says"),
    [
        ([1] * 8192, {}, RequestError, "context"),
        ([1] * 8000, {"max_tokens": 500}, RequestError, "lower max_tokens to 192"),
        ([1] * 4090, {"max_tokens": 50}, KVCacheTooSmall, "in which 4096 tokens fit"),
        ([49152], {}, RequestError, "outside the vocabulary"),
        ([-1], {}, RequestError, "outside the vocabulary"),
        ([1], {"logit_bias": {50000: 1.0}}, RequestError, "outside"),
        ([1], {"repetition_penalty": 5e-324}, RequestError, "repetition_penalty"),
        ("\ud800", {}, RequestError, "surrogate"),
    ],
)
def test_an_impossible_request_is_refused(
    llm: LLM, prompt: object, params: dict, error: type[EngineError], says: str
) -> None:
    with pytest.raises(error, match=says):
        llm.generate([prompt], SamplingParams(**params))  # type: ignore[list-item]


def test_after_a_refusal_everything_still_works(llm: LLM) -> None:
    with pytest.raises(RequestError):
        llm.generate(["fine", [99999]], GREEDY)
    assert llm.generate(PROMPTS[:1], GREEDY)[0].token_ids


def test_importing_engine_loads_nothing_heavy() -> None:
    import subprocess
    import sys

    code = (
        "import engine, sys; print([m for m in ('numpy', 'tokenizers', 'jinja2', 'engine._core') if m in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert ran.stdout.strip() == "[]"
