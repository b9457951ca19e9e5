"""Impossible sampling parameters are refused with the name, the value and what is possible."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import RequestError
from engine.sampling_params import SamplingParams, choice_seed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 0), ("max_tokens", -1), ("max_tokens", 1.5), ("max_tokens", True), ("max_tokens", "9"),
        ("temperature", -0.1), ("temperature", float("nan")), ("temperature", float("inf")), ("temperature", "hot"),
        ("top_k", -1), ("top_p", 0.0), ("top_p", 1.01), ("min_p", -0.5), ("min_p", 1.5), ("repetition_penalty", 0.0),
        ("presence_penalty", 2.1), ("frequency_penalty", -2.1), ("seed", 1 << 64), ("seed", 0.5), ("n", 0), ("n", 1000),
        ("logprobs", 21), ("logprobs", -1), ("temperature", None),
    ],
)  # fmt: skip
def test_an_impossible_value_is_named(name: str, value: Any) -> None:
    with pytest.raises(RequestError, match=rf"{name} is .*; it must be"):
        SamplingParams(**{name: value})


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({"stop": [""]}, "empty string"),
        ({"stop": ["x"] * 17}, "17 strings"),
        ({"logit_bias": {-1: 0.0}}, "token of logit_bias"),
        ({"logit_bias": {5: float("nan")}}, "logit_bias of token 5"),
        ({"stop_token_ids": [-5]}, "stop_token_ids"),
    ],
)
def test_other_impossible_wishes_are_named(extra: dict[str, Any], says: str) -> None:
    with pytest.raises(RequestError, match=says):
        SamplingParams(**extra)


def test_a_token_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(RequestError, match="outside the 10 known"):
        SamplingParams(logit_bias={10: 1.0}).check_vocabulary(10)


def test_one_stop_string_need_not_be_a_list() -> None:
    assert SamplingParams(stop="end").stop == ("end",)


def test_without_a_seed_two_requests_draw_differently() -> None:
    assert SamplingParams().with_seed() != SamplingParams().with_seed()
    assert SamplingParams(seed=-1).with_seed() == (1 << 64) - 1


def test_choices_of_one_request_get_seeds_of_their_own() -> None:
    seeds = [choice_seed(7, choice) for choice in range(100)]
    assert seeds[0] == 7 and len(set(seeds)) == 100 and all(0 <= seed < 1 << 64 for seed in seeds)
