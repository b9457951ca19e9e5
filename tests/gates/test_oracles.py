"""Oracles as arms: who they are is checked, their failure is no fault of the lane, vLLM answers are read right."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from greenlane.gates import exact
from greenlane.gates.contract import GateContext, Ran
from greenlane.gates.oracles import vllm
from greenlane.record.model import Outcome, StageResult
from tests.gates.engine_double import EngineDouble
from tests.gates.test_exact import CONFIG, part

# The part of vLLM's interface that the adapter uses: a model over six tokens whose best one is the last token plus one.
VLLM = """
import math
from dataclasses import dataclass
__version__ = "0.99.1"

@dataclass
class Logprob:
    logprob: float

@dataclass
class Completion:
    token_ids: list
    logprobs: list

@dataclass
class Output:
    prompt_token_ids: list
    prompt_logprobs: list
    outputs: list

class SamplingParams:
    def __init__(self, **settings):
        assert settings.pop("temperature") == 0
        self.__dict__.update({"logprobs": None, "prompt_logprobs": None, "ignore_eos": False} | settings)

def row(last, always=()):
    best, second = (last + 1) % 6, (last + 2) % 6
    told = {best: Logprob(math.log(0.6)), second: Logprob(math.log(0.3))}
    return told | {token: Logprob(math.log(0.05)) for token in always if token not in told}

class LLM:
    def __init__(self, model, **settings):
        assert settings["enforce_eager"] is True and model == "/models/tiny"
    def generate(self, prompts, params, use_tqdm):
        (prompt,) = prompts
        ids = list(prompt["prompt_token_ids"])
        told = [None] + [row(ids[i - 1], [ids[i]]) for i in range(1, len(ids))]
        out = [(ids[-1] + 1 + i) % 6 for i in range(params.max_tokens)]
        rows = [row(last) for last in [ids[-1], *out[:-1]]]
        return [Output(ids, told if params.prompt_logprobs else None, [Completion(out, rows)])]
"""


class Adapted(EngineDouble):
    """The engine double; the adapter's command runs as a program of its own, with the stub of vLLM."""

    def __call__(self, command: str, *, env: Mapping[str, str] | None = None, timeout_s: float | None = None) -> Ran:
        if "oracle_vllm.py" not in command:
            return super().__call__(command, env=env, timeout_s=timeout_s)
        path = {"PYTHONPATH": str(self.artifacts / "stub")}
        done = subprocess.run(command, shell=True, cwd=self.artifacts, capture_output=True, text=True, env=path)
        return Ran(done.returncode, done.stdout, done.stderr)


def config(oracle: dict[str, Any]) -> dict[str, Any]:
    changed = copy.deepcopy(CONFIG)
    changed["arms"] = {"engine": {"options": "--mirror off"}, "other": {"oracle": oracle}}
    changed["compare"] = {"oracle": {"left": "engine", "right": "other"}}
    return changed


def run(oracle: dict[str, Any], engine: EngineDouble, context: GateContext) -> StageResult:
    return exact.run(config(oracle), engine, context)


def speaking(identity: dict[str, str]) -> Any:
    def say(document: dict[str, Any], words: list[str], env: Mapping[str, str]) -> None:
        if "--oracle" in words:
            document["oracle"] = identity

    return say


ORACLE = {"command": "generate --oracle --prompts {prompts}", "mode": "eager", "version": "2"}


def test_an_oracle_of_the_expected_version_and_mode_is_recorded(engine: EngineDouble, context: GateContext) -> None:
    engine.breakage = speaking({"name": "other", "mode": "eager", "version": "2"})
    result = run(ORACLE, engine, context)
    assert result.outcome is Outcome.PASS
    assert part(result, "oracle")["oracle"] == {"name": "other", "mode": "eager", "version": "2"}


@pytest.mark.parametrize(
    ("identity", "reason"),
    [
        ({"name": "other", "mode": "graph", "version": "2"}, "ran in mode 'graph'"),
        ({"name": "other", "mode": "eager", "version": "3"}, "says 3; the matrix says version 2"),
        ({"name": "other", "mode": "eager"}, "says no version"),
    ],
)
def test_another_oracle_than_the_matrix_names_is_void(
    identity: dict[str, str], reason: str, engine: EngineDouble, context: GateContext
) -> None:
    engine.breakage = speaking(identity)
    result = run(ORACLE, engine, context)
    assert result.outcome is Outcome.VOID and reason in (result.reason or "")


def test_an_oracle_that_fails_makes_the_gate_void_not_red(engine: EngineDouble, context: GateContext) -> None:
    result = run(ORACLE | {"command": "generate --prompts {prompts}.gone"}, Failing(context.artifacts), context)
    assert result.outcome is Outcome.VOID and "oracle other ended with exit code 3" in (result.reason or "")


class Failing(EngineDouble):
    def __call__(self, command: str, **how: Any) -> Ran:
        return Ran(3, "", "CUDA out of memory") if ".gone" in command else super().__call__(command, **how)


def vllm_oracle(tmp_path: Path, context: GateContext) -> dict[str, Any]:
    (context.artifacts / "stub").mkdir()
    (context.artifacts / "stub" / "vllm.py").write_text(VLLM)
    return {"adapter": "vllm", "model": "/models/tiny", "mode": "eager", "python": sys.executable}


def test_vllm_answers_greedily_one_prompt_at_a_time(tmp_path: Path, context: GateContext) -> None:
    changed = config(vllm_oracle(tmp_path, context))
    changed["workloads"] = {"main": {"prompts": [{"name": "a", "prompt_token_ids": [3]}], "max_tokens": 4}}
    result = exact.run(changed, Adapted(context.artifacts), context)
    where = part(result, "oracle")["divergences"][0]
    assert (where["index"], where["right"]) == (0, 4)
    assert where["right_margin"] == pytest.approx(0.6931, abs=1e-3)
    assert part(result, "oracle")["oracle"] == {"name": "vllm", "mode": "eager", "version": "0.99.1"}


def test_vllm_as_teacher_gives_gap_best_and_runner_up(tmp_path: Path, context: GateContext) -> None:
    oracle = vllm_oracle(tmp_path, context)
    golden = {"requests": [{"name": "a", "prompt_token_ids": [3], "token_ids": [4, 5, 0, 1]}]}
    (context.source / "golden.json").write_text(json.dumps(golden))
    device = {"requests": [{"prompt_token_ids": [3], "token_ids": [4, 5, 1, 3]}]}
    (context.artifacts / "device.json").write_text(json.dumps(device))

    class Device(Adapted):
        def generate(self, words: list[str]) -> dict[str, Any]:
            return device

    changed = {
        "generate": "generate --prompts {prompts}",
        "teacher": oracle,
        "workloads": {"main": {"prompts": [{"name": "a", "prompt_token_ids": [3]}], "max_tokens": 4}},
        "arms": {"device": {}, "golden": {"golden": "golden.json"}},
        "compare": {"oracle": {"left": "device", "right": "golden", "policy": "near_tie", "margin_nats": 0.7}},
    }
    result = exact.run(changed, Device(context.artifacts), context)
    assert result.outcome is Outcome.PASS
    gaps = part(result, "oracle")["divergences"][0]["gaps"]
    assert [(gap["index"], gap["token_id"], gap["best"]) for gap in gaps] == [(2, 1, 0), (3, 3, 2)]
    assert gaps[0]["gap_nats"] == pytest.approx(0.6931, abs=1e-3)


def test_on_a_tie_vllm_s_lowest_id_is_the_best() -> None:
    assert vllm.best_without({9: -1.0, 4: -1.0, 7: -2.0}, None)["token_id"] == 4
    assert vllm.best_without({9: -1.0, 4: -1.0, 7: -2.0}, 4)["token_id"] == 9
