"""The near_tie policy: what it forgives, what it never forgives, and that anchors bite."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from greenlane.gates import anchors, exact
from greenlane.gates.capture import capture
from greenlane.gates.contract import GateContext
from greenlane.record.model import Outcome, StageResult
from tests.gates.engine_double import EngineDouble, distribution, greedy, tokens_of, two_best
from tests.gates.test_exact import PROMPTS, golden, near_tie, part, write_golden


def margins(prompt: Mapping[str, Any]) -> list[float]:
    """How far apart the two best tokens are at each position of the greedy path."""
    ids = tokens_of(prompt)
    answer = greedy(ids, prompt["max_tokens"])["token_ids"]
    rows = [distribution((*ids, *answer[:i])) for i in range(len(answer))]
    return [row[two_best(row)[0]] - row[two_best(row)[1]] for row in rows]


CLOSE = min(range(20), key=lambda i: abs(margins(PROMPTS[1])[i] - 0.2))
FAR = max(range(20), key=lambda i: margins(PROMPTS[1])[i])


@pytest.fixture(autouse=True)
def golden_file(context: GateContext) -> None:
    write_golden(context, golden())


def run(config: dict[str, Any], engine: EngineDouble, context: GateContext) -> StageResult:
    return exact.run(config, engine, context)


def anchored(turn: str) -> dict[str, Any]:
    config = near_tie(turn)
    config["compare"]["oracle"]["anchors"] = "anchors"
    return config


def captured(config: dict[str, Any], engine: EngineDouble, context: GateContext) -> Path:
    (file,) = capture(config, engine, context, head="a" * 40, today="2026-01-02")
    return file


def edit(file: Path, change: Any) -> None:
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def test_the_double_has_a_near_tie_and_a_clear_choice() -> None:
    assert 0.02 < margins(PROMPTS[1])[CLOSE] < 0.4
    assert margins(PROMPTS[1])[FAR] > 0.6


def test_a_near_tie_is_green_and_recorded_with_its_runner_up(engine: EngineDouble, context: GateContext) -> None:
    result = run(near_tie(f"1={CLOSE}"), engine, context)
    assert result.outcome is Outcome.PASS
    found = part(result, "oracle")
    assert found["strictly_equal"] == 1
    (gap,) = found["divergences"][0]["gaps"]
    assert gap["index"] == CLOSE
    assert gap["gap_nats"] == pytest.approx(margins(PROMPTS[1])[CLOSE], abs=1e-5)
    assert gap["runner_up_margin_nats"] == pytest.approx(gap["gap_nats"]) and gap["runner_up"] == gap["token_id"]
    assert found["largest_gap_nats"] == pytest.approx(gap["gap_nats"], abs=1e-5)


def test_a_gap_above_the_margin_is_red(engine: EngineDouble, context: GateContext) -> None:
    result = run(near_tie(f"1={FAR}"), engine, context)
    assert result.outcome is Outcome.FAIL
    assert result.reason is not None and "nats below" in result.reason


def test_a_smaller_margin_refuses_the_same_tie(engine: EngineDouble, context: GateContext) -> None:
    config = near_tie(f"1={CLOSE}")
    config["compare"]["oracle"]["margin_nats"] = margins(PROMPTS[1])[CLOSE] / 2
    assert run(config, engine, context).outcome is Outcome.FAIL


def test_a_teacher_that_is_the_device_itself_excuses_nothing(engine: EngineDouble, context: GateContext) -> None:
    """A device that scores its own tokens gives them gap 0 everywhere."""

    def flattering(document: dict[str, Any], words: list[str], env: Mapping[str, str]) -> None:
        if words[0] != "score":
            return
        request = document["requests"][0]  # the device's ids; the oracle's token stands in the second request
        request["logprobs"] = [0.0] * len(request["token_ids"])
        request["best"] = [{"token_id": token, "logprob": 0.0} for token in request["token_ids"]]
        other = document["requests"][1]
        other["best"][FAR]["token_id"] = request["token_ids"][FAR]
        other["best"][FAR]["logprob"] = 0.0
        other["logprobs"][FAR] = -3.0

    engine.breakage = flattering
    result = run(near_tie(f"1={FAR}"), engine, context)
    assert result.outcome is Outcome.FAIL
    assert "no witness" in " ".join(part(result, "oracle")["problems"])
    assert "the oracle itself put every other token" in " ".join(part(result, "oracle")["problems"])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda request: request["logprobs"].__setitem__(2, math.nan), "not a number"),
        (lambda request: request["token_ids"].__setitem__(2, 1), "other tokens"),
        (lambda request: request["best"].pop(), "another number"),
        (lambda request: request.pop("best"), "not what docs/gates.md describes"),
    ],
)
def test_a_teacher_that_answers_badly_makes_the_gate_void(
    change: Any, reason: str, engine: EngineDouble, context: GateContext
) -> None:
    engine.breakage = lambda document, words, env: change(document["requests"][0]) if words[0] == "score" else None
    result = run(near_tie(f"1={CLOSE}"), engine, context)
    assert result.outcome is Outcome.VOID
    assert result.reason is not None and reason in result.reason


def test_a_missing_anchor_is_void_and_says_how_to_capture_it(engine: EngineDouble, context: GateContext) -> None:
    result = run(anchored(f"1={CLOSE}"), engine, context)
    assert result.outcome is Outcome.VOID
    assert result.reason is not None and "greenlane anchors capture" in result.reason


def test_a_captured_anchor_is_found_and_green(engine: EngineDouble, context: GateContext) -> None:
    config = anchored(f"1={CLOSE}")
    file = captured(config, engine, context)
    assert file == context.source / "anchors/cpu-x86-64-test/double-float64-device.json"
    result = run(config, engine, context)
    assert result.outcome is Outcome.PASS and part(result, "oracle")["anchored"]
    gap = anchors.Anchor.model_validate_json(file.read_text()).requests[1].gaps[0]
    assert gap.index == CLOSE and gap.runner_up == gap.token_id


def test_drift_from_the_anchor_is_red_even_within_the_margin(engine: EngineDouble, context: GateContext) -> None:
    captured(anchored("9=0"), engine, context)
    config = anchored("9=0")
    config["arms"]["device"]["command"] = f"generate --prompts {{prompts}} --turn 1={CLOSE}"
    result = run(config, engine, context)
    assert result.outcome is Outcome.FAIL
    assert result.reason is not None and "drift" in result.reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d["requests"][0]["token_ids"].__setitem__(-1, 1), "drift"),
        (lambda d: d["requests"][1]["gaps"][0].update(gap_nats=0.6), "recorded gap 0.6000"),
        (lambda d: d["requests"][1]["gaps"][0].update(gap_nats=0.0), "teacher forcing gives"),
        (lambda d: d["requests"][1]["gaps"].clear(), "teacher forcing gives"),
    ],
)
def test_a_perturbed_anchor_is_red(change: Any, reason: str, engine: EngineDouble, context: GateContext) -> None:
    config = anchored(f"1={CLOSE}")
    edit(captured(config, engine, context), change)
    result = run(config, engine, context)
    assert result.outcome is Outcome.FAIL
    assert reason in " ".join(part(result, "oracle")["problems"])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d.update(device="rocm-gfx1100"), "another device"),
        (lambda d: d["oracle"].update(mode="graph"), "another oracle"),
        (lambda d: d["oracle"].update(version="2"), "another oracle"),
        (lambda d: d.update(arm="device --max-num-seqs 8"), "another arm"),
        (lambda d: d["requests"].pop(), "no ids for 'ids'"),
        (lambda d: d["requests"][0]["prompt_token_ids"].append(3), "tokenised differently"),
        (lambda d: d.pop("head"), "is not an anchor"),
    ],
)
def test_an_anchor_for_something_else_is_void(
    change: Any, reason: str, engine: EngineDouble, context: GateContext
) -> None:
    config = anchored(f"1={CLOSE}")
    edit(captured(config, engine, context), change)
    result = run(config, engine, context)
    assert result.outcome is Outcome.VOID
    assert result.reason is not None and reason in result.reason


def test_nothing_is_captured_from_a_device_that_is_too_far_from_its_oracle(
    engine: EngineDouble, context: GateContext
) -> None:
    with pytest.raises(exact.Failed, match="nats below"):
        captured(anchored(f"1={FAR}"), engine, context)
    assert not (context.source / "anchors").exists()


def test_a_capture_without_an_anchored_comparison_says_so(engine: EngineDouble, context: GateContext) -> None:
    config = copy.deepcopy(near_tie("1=1"))
    with pytest.raises(exact.Failed, match="no comparison"):
        captured(config, engine, context)
