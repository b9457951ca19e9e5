"""What this repository's own matrix says of gates, as far as it can be seen without a build."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from greenlane.gates.prove import proof_of
from greenlane.matrix import document, load
from greenlane.matrix.gates import GatesConfig
from greenlane.matrix.model import Lane, Stage
from greenlane.matrix.problems import Problems
from greenlane.record.git import git

ROOT = Path(__file__).parents[2]
LANES = load(ROOT / "matrix.yaml").lanes
PROOFS = {proof.patch: lane for lane in LANES for gate in (Stage.REACH, Stage.EXACT) if (proof := proof_of(lane, gate))}


@pytest.mark.parametrize("patch", sorted(str(patch) for patch in PROOFS if patch))
def test_a_planted_fault_still_applies(patch: str) -> None:
    done = git(ROOT, "apply", "--check", patch, check=False)
    assert done.returncode == 0, f"make {patch} again for the code as it is now: {done.stderr.decode()}"


@pytest.mark.parametrize("lane", [lane for lane in LANES if lane.gates], ids=lambda lane: lane.id)
def test_the_gates_of_a_lane_are_whole(lane: Lane) -> None:
    gates = GatesConfig.model_validate(dict(lane.gates))
    if gates.exact:
        for name, comparison in gates.exact.compare.items():
            assert comparison.workload or len(gates.exact.workloads) == 1, name


def test_the_cpu_lane_compares_batches_chunks_and_prefix_hits_strictly() -> None:
    lane = next(lane for lane in LANES if lane.id == "cpu")
    exact = GatesConfig.model_validate(dict(lane.gates)).exact
    assert exact is not None
    strict = {name for name, comparison in exact.compare.items() if comparison.policy == "strict"}
    assert {"reference", "batch", "chunked", "prefix-hit"} <= strict
    assert exact.arms["prefix-hit"].repeat_after_step


def test_a_mirror_is_told_apart_by_its_counters() -> None:
    for lane in LANES:
        exact = GatesConfig.model_validate(dict(lane.gates)).exact
        if exact and "mirror" in exact.compare:
            assert exact.compare["mirror"].moved == ("combine", "scatter_last_sampled"), lane.id


def examples() -> list[str]:
    text = (ROOT / "docs" / "gates.md").read_text()
    return [block for block in re.findall(r"```yaml\n(.*?)```", text, re.S) if block.startswith(("exact:", "bench:"))]


@pytest.mark.parametrize("example", examples())
def test_the_examples_in_the_guide_are_right(example: str) -> None:
    written = document.parse(example.encode(), "docs/gates.md", Problems()).plain()
    assert GatesConfig.model_validate(written)


def test_the_guide_has_examples() -> None:
    assert examples()
