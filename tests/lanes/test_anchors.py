"""A stranger's engine through the exact, reach and bench gates of a real lane, and the capture of its anchors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ENGINE = '''
import json, sys, time
words = sys.argv[1:]
turn = "--turn" in words

def row(token):
    """Two candidates: the even one is best, the odd one 0.1 nats below it."""
    return {"token_id": 2 * (token % 7), "logprob": -0.6}, {"token_id": 2 * (token % 7) + 1, "logprob": -0.7}

def answer(prompt, count):
    ids, logprobs, others = [], [], []
    for index in range(count):
        best, second = row(prompt[-1] + index)
        chosen, other = (second, best) if turn and index == 3 else (best, second)
        ids.append(chosen["token_id"]); logprobs.append(chosen["logprob"]); others.append(other)
    return {"prompt_token_ids": prompt, "token_ids": ids, "logprobs": logprobs, "runner_up": others}

def scored(prompt, tokens):
    rows = [row(prompt[-1] + index) for index in range(len(tokens))]
    told = [{c["token_id"]: c["logprob"] for c in pair}.get(token, -9.0) for pair, token in zip(rows, tokens)]
    return {"prompt_token_ids": prompt, "token_ids": tokens, "logprobs": told,
            "best": [pair[0] for pair in rows], "runner_up": [pair[1] for pair in rows]}

ids = lambda text: [int(part) for part in text.split(",")]
if words[0] == "score":
    prompts = [ids(words[i + 1]) for i, word in enumerate(words) if word == "--prompt-ids"]
    tokens = [ids(words[i + 1]) for i, word in enumerate(words) if word == "--token-ids"]
    print(json.dumps({"requests": [scored(p, t) for p, t in zip(prompts, tokens)]}))
elif words[0] == "bench":
    print(json.dumps({"speed": 100.0}))
else:
    asked = json.load(open(words[1]))
    print("loading the model")
    launches = {"fused": 5 * ("--fused" in words)}
    answers = [answer(one["prompt_token_ids"], one["max_tokens"]) for one in asked]
    device = {"backend": "cpu", "arch": "toy"}
    print(json.dumps({"device": device, "kernel_launches": launches, "requests": answers}))
'''
PROMPTS = [{"name": "one", "prompt_token_ids": [3], "max_tokens": 6}, {"name": "two", "prompt_token_ids": [4, 5]}]
GATES: dict[str, Any] = {
    "reach": {"on": {"options": "--fused"}, "off": {"options": "--plain"}, "must_reach": ["fused"]},
    "exact": {
        "generate": "python3 {source}/engine.py generate {prompts} {options}",
        "score": "python3 {source}/engine.py score {pairs}",
        "workloads": {"main": {"prompts": PROMPTS, "max_tokens": 8}},
        "arms": {"device": {"options": "--turn"}, "golden": {"golden": "golden.json"}},
        "compare": {"oracle": {"left": "device", "right": "golden", "policy": "near_tie", "anchors": "anchors"}},
    },
    "bench": {
        "command": "python3 {source}/engine.py bench",
        "metrics": {"speed": {"path": "speed", "direction": "higher"}},
    },
}


@pytest.fixture
def engine(project: Any) -> Any:
    """The project with an engine, its golden ids and gates."""
    root: Path = project.root
    (root / "engine.py").write_text(ENGINE)
    even = [[2 * ((3 + i) % 7) for i in range(6)], [2 * ((5 + i) % 7) for i in range(8)]]
    requests = [
        {"name": one["name"], "prompt_token_ids": one["prompt_token_ids"], "token_ids": ids}
        for one, ids in zip(PROMPTS, even, strict=True)
    ]
    oracle = {"name": "paper", "mode": "by hand", "version": "1"}
    (root / "golden.json").write_text(json.dumps({"oracle": oracle, "requests": requests}))
    project.write(gates=GATES, require=["built", "exact"])
    project.commit("an engine")
    return project


def test_a_lane_without_its_anchor_is_not_measured(engine: Any) -> None:
    done = engine.greenlane("run", "cpu")
    assert done.returncode == 1
    exact = engine.stages()["exact"]
    assert exact["outcome"] == "void" and "anchors capture" in exact["reason"]
    assert engine.stages()["bench"]["outcome"] == "blocked"


def test_a_captured_anchor_makes_the_lane_green_and_a_perturbed_one_red(engine: Any) -> None:
    done = engine.greenlane("anchors", "capture", "cpu")
    assert done.returncode == 0, done.stderr
    file = engine.root / "anchors/cpu-toy/paper-by-hand-device.json"
    assert str(file.relative_to(engine.root)) in done.stdout
    anchor = json.loads(file.read_text())
    assert anchor["head"] == engine.git("rev-parse", "HEAD")
    assert [gap["index"] for gap in anchor["requests"][0]["gaps"]] == [3]
    engine.commit("anchors")

    assert engine.greenlane("run", "cpu").returncode == 0
    stages = engine.stages()
    assert [stages[name]["outcome"] for name in ("reach", "exact", "bench")] == ["pass"] * 3
    assert {"reached", "exact", "benched"} <= set(engine.records()[-1]["evidence"])
    assert stages["reach"]["measurements"]["on"]["launches"] == {"fused": 5}
    assert stages["bench"]["measurements"]["judged"] is False

    anchor["requests"][1]["token_ids"][5] += 1
    file.write_text(json.dumps(anchor))
    engine.commit("a perturbed anchor")
    assert engine.greenlane("run", "cpu").returncode == 1
    assert "drift" in engine.stages()["exact"]["reason"]


def test_a_dirty_tree_is_refused(engine: Any) -> None:
    (engine.root / "a.cpp").write_text("int b;\n")
    done = engine.greenlane("anchors", "capture", "cpu")
    assert done.returncode == 2 and "in no commit" in done.stderr
    assert not (engine.root / "anchors").exists()


def test_a_lane_without_an_exact_gate_is_refused(engine: Any) -> None:
    engine.write()
    engine.commit("no gates")
    done = engine.greenlane("anchors", "capture", "cpu")
    assert done.returncode == 2 and "no exact gate" in done.stderr


def test_a_red_build_gives_nothing_to_capture_from(engine: Any) -> None:
    engine.write(
        gates=GATES, require=["built"], stages={"configure": "true", "build": "echo 'error: missing brace' >&2; false"}
    )
    engine.commit("broken")
    done = engine.greenlane("anchors", "capture", "cpu")
    assert done.returncode == 1 and "build is red" in done.stderr
    assert "Traceback" not in done.stderr
