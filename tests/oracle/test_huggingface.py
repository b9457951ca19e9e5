"""The Hugging Face adapter, run as the exact gate runs it: a second oracle for the golden ids."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the oracle needs PyTorch: nox -s oracle")
transformers = pytest.importorskip("transformers", reason="the adapter needs transformers: nox -s oracle")

from greenlane.gates import exact  # noqa: E402
from greenlane.gates.contract import GateContext, Ran  # noqa: E402
from greenlane.matrix.model import Lane, Stage  # noqa: E402
from greenlane.record.model import Outcome, StageResult  # noqa: E402
from tests.oracle.__main__ import FILE, packaged_model  # noqa: E402

TOKENS = 24
GOLDEN = json.loads(FILE.read_text())
ORACLE = {"adapter": "huggingface", "model": str(packaged_model()), "mode": "float32", "python": sys.executable}
PROMPTS = [
    {"name": request["name"], "prompt_token_ids": request["prompt_token_ids"], "max_tokens": TOKENS}
    for request in GOLDEN["requests"]
    if request["name"] in ("short", "chat")
]


class Shell:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, command: str, *, env: Mapping[str, str] | None = None, timeout_s: float | None = None) -> Ran:
        done = subprocess.run(command, shell=True, cwd=self.folder, capture_output=True, text=True, timeout=timeout_s)
        return Ran(done.returncode, done.stdout, done.stderr)


def run(tmp_path: Path, left: dict[str, Any], right: dict[str, Any]) -> StageResult:
    """An engine that answers with what stands in a file."""
    (tmp_path / "left.json").write_text(json.dumps(left))
    config = {
        "generate": "cat left.json; : {prompts}",
        "teacher": ORACLE,
        "workloads": {"two": {"prompts": PROMPTS}},
        "arms": {"engine": {}, "right": right},
        "compare": {"oracle": {"left": "engine", "right": "right", "policy": "near_tie"}},
    }
    context = GateContext(Lane("cpu", "cpu"), Stage.EXACT, tmp_path, tmp_path)
    return exact.run(config, Shell(tmp_path), context)


def answers() -> dict[str, Any]:
    chosen = [request for request in GOLDEN["requests"] if request["name"] in ("short", "chat")]
    keys = ("token_ids", "logprobs", "runner_up")
    cut = [{key: request[key][:TOKENS] for key in keys} for request in chosen]
    return {"requests": [one | {"prompt_token_ids": r["prompt_token_ids"]} for one, r in zip(cut, chosen, strict=True)]}


def test_hugging_face_confirms_the_golden_ids(tmp_path: Path) -> None:
    result = run(tmp_path, answers(), {"oracle": ORACLE | {"version": transformers.__version__}})
    assert result.outcome is Outcome.PASS
    (part,) = result.measurements["comparisons"]
    assert part["strictly_equal"] == 2 and part["equal_positions"] == 2 * TOKENS
    assert part["oracle"] == {"name": "huggingface", "mode": "float32", "version": transformers.__version__}


def test_hugging_face_as_teacher_refuses_a_wrong_token(tmp_path: Path) -> None:
    broken = answers()
    broken["requests"][0]["token_ids"][-1] = 20_000
    golden = answers() | {"oracle": {"name": "golden"}}
    for request, prompt in zip(golden["requests"], PROMPTS, strict=True):
        request["name"] = prompt["name"]
    (tmp_path / "golden.json").write_text(json.dumps(golden))
    result = run(tmp_path, broken, {"golden": "golden.json"})
    assert result.outcome is Outcome.FAIL
    assert "nats below" in (result.reason or "")


def test_an_oracle_that_crashes_is_void_not_red(tmp_path: Path) -> None:
    result = run(tmp_path, answers(), {"oracle": ORACLE | {"model": "/nowhere"}})
    assert result.outcome is Outcome.VOID
