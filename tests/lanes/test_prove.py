"""A gate is proven by breaking what it guards: green as it is, red without it, and the record says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from greenlane.errors import MatrixError
from greenlane.lanes.prove import Proven, exit_code, prove

ENGINE = """
import json, os, sys
fused = "--fused" in sys.argv and os.environ.get("FUSED") != "0"  # the dispatch
asked = json.load(open(sys.argv[1]))
answers = [{"prompt_token_ids": one["prompt_token_ids"], "token_ids": [1, 2, 3]} for one in asked]
print(json.dumps({"kernel_launches": {"plain": 3, **({"fused": 5} if fused else {})}, "requests": answers}))
"""
PATCH = """--- a/engine.py
+++ b/engine.py
@@ -1,4 +1,4 @@
 
 import json, os, sys
-fused = "--fused" in sys.argv and os.environ.get("FUSED") != "0"  # the dispatch
+fused = False
 asked = json.load(open(sys.argv[1]))
"""


def gates(proof: dict[str, Any] | None, **reach: Any) -> dict[str, Any]:
    section: dict[str, Any] = {
        "command": "python3 {source}/engine.py {prompts} {options}",
        "workload": {"prompts": [{"prompt_token_ids": [3]}]},
        "on": {"options": "--fused"},
        "off": {"options": "--plain"},
        "must_reach": ["fused"],
    }
    return {"reach": section | reach | ({"prove": proof} if proof else {})}


def proven(project: Any, proof: dict[str, Any] | None, patch: str = PATCH, **reach: Any) -> Proven:
    (project.root / "engine.py").write_text(ENGINE)
    (project.root / "without-dispatch.patch").write_text(patch)
    project.write(gates=gates(proof, **reach))
    project.commit("an engine")
    (end,) = prove(project.root / "matrix.yaml", "reach")
    return end


@pytest.mark.parametrize("proof", [{"patch": "without-dispatch.patch"}, {"env": {"FUSED": "0"}}])
def test_a_gate_that_goes_red_without_the_dispatch_is_proven(proof: dict[str, Any], project: Any) -> None:
    end = proven(project, proof)
    assert end.proven and "fused must be reached" in end.reason
    record = project.records()[-1]
    assert record["outcome"] == "pass" and record["head"] == project.git("rev-parse", "HEAD")
    assert record["proven"]["reach"]["proven"] is True
    assert record["proven"]["reach"]["commit"] == record["head"] and record["proven"]["reach"]["when"]
    assert project.git("status", "--porcelain") == ""
    assert exit_code([end]) == 0


def test_a_gate_that_stays_green_without_the_dispatch_guards_nothing(project: Any) -> None:
    end = proven(project, {"env": {"UNRELATED": "1"}})
    assert not end.proven and "it guards nothing" in end.reason
    assert project.records()[-1]["proven"]["reach"]["proven"] is False
    assert exit_code([end]) == 1


def test_a_patch_that_breaks_the_program_proves_nothing(project: Any) -> None:
    end = proven(project, {"patch": "without-dispatch.patch"}, patch=PATCH.replace("fused = False", "fused = ("))
    assert not end.proven and "failed before the gate could measure" in end.reason


def test_a_patch_that_no_longer_applies_proves_nothing(project: Any) -> None:
    end = proven(project, {"patch": "without-dispatch.patch"}, patch=PATCH.replace("the dispatch", "another line"))
    assert not end.proven and "no longer applies" in end.reason


def test_a_gate_that_is_red_to_begin_with_is_not_proven(project: Any) -> None:
    end = proven(project, {"env": {"FUSED": "0"}}, must_reach=["nothing_of_this_name"])
    assert not end.proven and "not green to begin with" in end.reason


def test_where_no_lane_says_how_it_is_an_error(project: Any) -> None:
    with pytest.raises(MatrixError, match=r"gates\.reach\.prove"):
        proven(project, None)


def test_stages_that_would_notice_first_are_left_out(project: Any) -> None:
    (project.root / "engine.py").write_text(ENGINE)
    (project.root / "without-dispatch.patch").write_text(PATCH)
    proof = {"patch": "without-dispatch.patch"}
    project.write(gates=gates(proof), stages={"build": ["true"], "test": ["grep -q FUSED {source}/engine.py"]})
    project.commit("an engine")
    (end,) = prove(project.root / "matrix.yaml", "reach")
    assert end.proven and "fused must be reached" in end.reason


def test_an_unknown_lane_is_an_error(project: Any) -> None:
    project.write(gates=gates({"env": {"FUSED": "0"}}))
    project.commit("a matrix")
    with pytest.raises(MatrixError, match="no lane 'nowhere'"):
        prove(project.root / "matrix.yaml", "reach", ["nowhere"])


def test_only_reach_and_exact_can_be_proven(project: Path) -> None:
    with pytest.raises(MatrixError, match="only reach, exact"):
        prove(Path("matrix.yaml"), "bench")
