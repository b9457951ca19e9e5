"""The exact gate is tested by breaking what it guards: each breakage turns it red or void, and says why."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from typing import Any

import pytest

from greenlane.gates import exact
from greenlane.gates.contract import GateContext, Ran
from greenlane.record.model import Outcome, StageResult
from tests.gates.engine_double import Breakage, EngineDouble, greedy, tokens_of

PROMPTS = [
    {"name": "plain", "prompt": "hello", "max_tokens": 12},
    {"name": "ids", "prompt_token_ids": [5, 7, 11], "max_tokens": 20},
]
CONFIG: dict[str, Any] = {
    "generate": "generate --prompts {prompts} {options}",
    "score": "score {pairs}",
    "workloads": {"main": {"prompts": PROMPTS}},
    "arms": {
        "on": {"options": "--mirror on"},
        "off": {"options": "--mirror off"},
        "golden": {"golden": "golden.json"},
    },
    "compare": {
        "mirror": {"left": "on", "right": "off", "moved": ["combine"]},
        "golden": {"left": "off", "right": "golden"},
    },
}


def near_tie(turn: str) -> dict[str, Any]:
    """A configuration in which the device takes the runner-up once."""
    config = copy.deepcopy(CONFIG)
    config["arms"] = {"device": {"options": f"--turn {turn}"}, "golden": {"golden": "golden.json"}}
    config["compare"] = {"oracle": {"left": "device", "right": "golden", "policy": "near_tie"}}
    return config


def golden() -> dict[str, Any]:
    oracle = {"name": "double", "mode": "float64", "version": "1"}
    answers = [{"name": p["name"]} | greedy(tokens_of(p), int(str(p["max_tokens"]))) for p in PROMPTS]
    return {"oracle": oracle, "requests": answers}


@pytest.fixture(autouse=True)
def golden_file(context: GateContext) -> None:
    write_golden(context, golden())


def write_golden(context: GateContext, document: dict[str, Any]) -> None:
    (context.source / "golden.json").write_text(json.dumps(document))


def run(config: dict[str, Any], engine: EngineDouble, context: GateContext) -> StageResult:
    return exact.run(config, engine, context)


def part(result: StageResult, name: str) -> dict[str, Any]:
    found = next(p for p in result.measurements["comparisons"] if p["name"] == name)
    assert isinstance(found, dict)
    return found


def test_an_exact_engine_is_green_and_every_position_is_counted(engine: EngineDouble, context: GateContext) -> None:
    result = run(CONFIG, engine, context)
    assert result.outcome is Outcome.PASS
    assert part(result, "golden")["positions"] == part(result, "golden")["equal_positions"] == 32
    assert part(result, "mirror")["arms"]["moved"] == {"combine": 7}
    assert part(result, "golden")["oracle"] == {"name": "double", "mode": "float64", "version": "1"}
    assert part(result, "golden")["smallest_margin_nats"] > 0


def test_each_arm_runs_once_however_many_comparisons_want_it(engine: EngineDouble, context: GateContext) -> None:
    run(CONFIG, engine, context)
    assert len(engine.commands) == 2


def test_a_result_can_be_written_into_a_record(engine: EngineDouble, context: GateContext) -> None:
    result = run(near_tie("1=9"), engine, context)
    assert StageResult.model_validate_json(result.model_dump_json()) == StageResult.model_validate(
        result.model_dump(mode="json")
    )


def test_one_wrong_token_is_red_with_prompt_index_tokens_gap_and_context(
    engine: EngineDouble, context: GateContext
) -> None:
    broken = golden()
    ids = broken["requests"][1]["token_ids"]
    ids[7] = 96 - ids[7]
    write_golden(context, broken)
    result = run(CONFIG, engine, context)
    assert result.outcome is Outcome.FAIL
    where = part(result, "golden")["divergences"][0]
    assert (where["prompt"], where["index"], where["right"]) == ("ids", 7, ids[7])
    assert where["context"] == ids[4:7] and len(where["context"]) == 3
    assert where["left_margin"] > 0
    assert result.reason is not None and "diverges at index 7" in result.reason and "nats" in result.reason
    assert result.first_error is not None and result.first_error.fingerprint


def test_a_last_wrong_token_is_seen(engine: EngineDouble, context: GateContext) -> None:
    broken = golden()
    broken["requests"][1]["token_ids"][-1] += 1
    write_golden(context, broken)
    assert part(run(CONFIG, engine, context), "golden")["divergences"][0]["index"] == 19


def test_a_shorter_answer_is_red(engine: EngineDouble, context: GateContext) -> None:
    def shorten(document: dict[str, Any], words: list[str], env: Mapping[str, str]) -> None:
        for key in ("token_ids", "logprobs", "runner_up"):
            document["requests"][0][key].pop()

    engine.breakage = shorten
    result = run(CONFIG, engine, context)
    assert result.outcome is Outcome.FAIL
    assert "the end against token" in str(part(result, "golden")["reason"])


def test_a_counter_that_does_not_move_makes_the_arms_identical(engine: EngineDouble, context: GateContext) -> None:
    def still(document: dict[str, Any], words: list[str], env: Mapping[str, str]) -> None:
        document["kernel_launches"].pop("combine", None)

    engine.breakage = still
    result = run(CONFIG, engine, context)
    assert result.outcome is Outcome.VOID
    assert result.reason is not None and "combine was never launched" in result.reason


def test_a_counter_that_moves_in_both_arms_is_void(engine: EngineDouble, context: GateContext) -> None:
    engine.breakage = lambda document, words, env: document["kernel_launches"].update(combine=3)
    assert "in off too" in str(part(run(CONFIG, engine, context), "mirror")["reason"])


def test_swapped_arms_are_void(engine: EngineDouble, context: GateContext) -> None:
    config = copy.deepcopy(CONFIG)
    config["arms"]["on"], config["arms"]["off"] = config["arms"]["off"], config["arms"]["on"]
    assert run(config, engine, context).outcome is Outcome.VOID


def test_arms_that_ran_the_same_way_are_void(engine: EngineDouble, context: GateContext) -> None:
    config = copy.deepcopy(CONFIG)
    config["arms"]["on"] = {"options": "--mirror off", "env": {"ENGINE_MIRROR": "1"}}
    config["compare"]["mirror"] = {"left": "on", "right": "off"}
    result = run(config, engine, context)
    assert result.outcome is Outcome.VOID
    assert result.reason is not None and "identical arms" in result.reason


def no_json(document: dict[str, Any], words: list[str], env: Mapping[str, str]) -> None:
    document.clear()


def half(document: dict[str, Any], words: list[str], env: Mapping[str, str]) -> None:
    del document["requests"][1:]


def not_a_number(document: dict[str, Any], words: list[str], env: Mapping[str, str]) -> None:
    document["requests"][0]["logprobs"][3] = math.nan


def nothing(document: dict[str, Any], words: list[str], env: Mapping[str, str]) -> None:
    for request in document["requests"]:
        request.update(token_ids=[], logprobs=[], runner_up=[])


def other_tokenizer(document: dict[str, Any], words: list[str], env: Mapping[str, str]) -> None:
    if "off" in words:
        document["requests"][0]["prompt_token_ids"].append(1)


@pytest.mark.parametrize(
    ("breakage", "reason"),
    [
        (no_json, "no JSON object"),
        (half, "2 prompts asked, 1 answered"),
        (not_a_number, "is not a number"),
        (nothing, "nothing was compared"),
        (other_tokenizer, "tokenised differently"),
    ],
)
def test_an_answer_that_measures_nothing_is_void(
    breakage: Breakage, reason: str, engine: EngineDouble, context: GateContext
) -> None:
    engine.breakage = breakage
    result = run(CONFIG | {"compare": {"mirror": CONFIG["compare"]["mirror"]}}, engine, context)
    assert result.outcome is Outcome.VOID
    assert result.reason is not None and reason in result.reason


@pytest.mark.parametrize(
    ("ran", "outcome", "reason"),
    [
        (Ran(1, "", "loading\nengine: no such model"), Outcome.FAIL, "exit code 1: engine: no such model"),
        (Ran(-11, "", "boom"), Outcome.FAIL, "signal 11"),
        (Ran(139, "", "boom"), Outcome.FAIL, "signal 11"),
        (Ran(-9, "", "", timed_out=True), Outcome.FAIL, "did not end within"),
        (Ran(0, "", ""), Outcome.VOID, "printed nothing"),
        (Ran(0, "Paris is the capital.\n", "llama_print_timings"), Outcome.VOID, "text output can't be compared"),
        (Ran(0, '{"requests": [{"token_ids": ["a"]}]}', ""), Outcome.VOID, "requests.0.token_ids.0"),
        (Ran(0, "[" * 100_000, ""), Outcome.VOID, "no JSON object"),
    ],
)
def test_a_program_that_fails_is_red_with_the_reason_and_the_tail(
    ran: Ran, outcome: Outcome, reason: str, engine: EngineDouble, context: GateContext
) -> None:
    engine.ran = ran
    result = run(CONFIG, engine, context)
    assert result.outcome is outcome
    assert result.reason is not None and reason in result.reason
    if ran.stderr:
        assert result.first_error is not None and result.first_error.raw is not None
        assert ran.stderr.splitlines()[-1] in result.first_error.raw


def test_one_crashing_arm_leaves_the_other_comparison_measured(engine: EngineDouble, context: GateContext) -> None:
    config = copy.deepcopy(CONFIG)
    config["arms"]["on"] = {"command": "generate --prompts missing.json"}

    class Crashing(EngineDouble):
        def __call__(self, command: str, **how: Any) -> Ran:
            return Ran(3, "", "no file") if "missing" in command else super().__call__(command, **how)

    result = run(config, Crashing(context.artifacts), context)
    assert result.outcome is Outcome.FAIL
    assert part(result, "golden")["outcome"] == Outcome.PASS


def test_json_between_log_lines_is_found(engine: EngineDouble, context: GateContext) -> None:
    class Chatty(EngineDouble):
        def __call__(self, command: str, **how: Any) -> Ran:
            return Ran(0, "{loading} model\n" + super().__call__(command, **how).stdout + "\nbye\n", "")

    assert run(CONFIG, Chatty(context.artifacts), context).outcome is Outcome.PASS


def test_a_missing_golden_file_is_void(engine: EngineDouble, context: GateContext) -> None:
    (context.source / "golden.json").unlink()
    result = run(CONFIG, engine, context)
    assert result.outcome is Outcome.VOID
    assert result.reason is not None and "golden.json" in result.reason


def test_a_golden_file_without_one_of_the_prompts_is_void(engine: EngineDouble, context: GateContext) -> None:
    broken = golden()
    broken["requests"].pop()
    write_golden(context, broken)
    assert "no answer to 'ids'" in str(part(run(CONFIG, engine, context), "golden")["reason"])


def test_a_base_arm_without_a_base_is_void(engine: EngineDouble, context: GateContext) -> None:
    config = copy.deepcopy(CONFIG)
    config["arms"]["base"] = {"base": True}
    config["compare"] = {"base": {"left": "off", "right": "base"}}
    assert "--base REV" in str(run(config, engine, context).reason)


def test_copies_of_a_prompt_must_answer_alike(engine: EngineDouble, context: GateContext) -> None:
    config = copy.deepcopy(CONFIG)
    config["arms"]["on"] |= {"repeat": 3}
    assert run(config, engine, context).outcome is Outcome.PASS

    def last_copy_differs(document: dict[str, Any], words: list[str], env: Mapping[str, str]) -> None:
        if len(document["requests"]) == 6:
            document["requests"][5]["token_ids"][0] += 1

    engine.breakage = last_copy_differs
    result = run(config, engine, context)
    assert result.outcome is Outcome.FAIL
    assert result.reason is not None and "copy 3 of 'ids'" in result.reason


@pytest.mark.parametrize(("cached", "outcome"), [(16, Outcome.PASS), (0, Outcome.VOID), (None, Outcome.PASS)])
def test_later_copies_that_missed_the_prefix_cache_prove_nothing(
    cached: int | None, outcome: Outcome, engine: EngineDouble, context: GateContext
) -> None:
    config = copy.deepcopy(CONFIG)
    config["generate"] += " --arrivals {arrivals}"
    config["arms"]["on"] |= {"repeat": 2, "repeat_after_step": 9}

    def tells_of_its_cache(document: dict[str, Any], words: list[str], env: Mapping[str, str]) -> None:
        for at, request in enumerate(document["requests"]):
            if cached is not None:
                request["num_cached_tokens"] = cached if at >= len(PROMPTS) else 0

    engine.breakage = tells_of_its_cache
    result = run(config, engine, context)
    assert result.outcome is outcome
    assert outcome is Outcome.PASS or "no hit was compared" in str(result.reason)
    arrivals = json.loads(next(context.artifacts.glob("on-main-arrivals.json")).read_text())
    assert [one["step"] for one in arrivals] == [0, 0, 9, 9]


def test_prompts_go_one_by_one_where_the_command_takes_one(engine: EngineDouble, context: GateContext) -> None:
    config = copy.deepcopy(CONFIG)
    config["arms"]["on"] |= {"one_by_one": True}
    config["compare"] = {"batch": {"left": "on", "right": "off"}}
    result = run(config, engine, context)
    assert result.outcome is Outcome.PASS
    assert len(engine.commands) == 3
    assert "kernel_launches" in part(result, "batch")["arms"]["differ_in"]
