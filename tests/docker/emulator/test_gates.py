"""The gates on an emulated program: green as it is, and red with the right message for each fault of the mirror."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from emulator_box import Box

from greenlane.gates import exact, reach
from greenlane.gates.contract import GateContext, Ran
from greenlane.matrix.model import Lane, Stage
from greenlane.record.model import Outcome, StageResult

pytestmark = pytest.mark.docker

ON, OFF = {"options": "--mirror on"}, {"options": "--mirror off"}
REACH: dict[str, Any] = {"on": ON, "off": OFF, "must_reach": ["combine", "scatter_last_sampled"], "watch": ["decode"]}
EXACT: dict[str, Any] = {
    "generate": "PROGRAM {options} {prompts}",
    "workloads": {"four": {"prompts": [{"prompt_token_ids": [id]} for id in (11, 22, 33, 44)], "max_tokens": 8}},
    "arms": {"on": ON, "off": OFF},
    "compare": {"mirror": {"left": "on", "right": "off", "moved": ["combine"]}},
}
Gate = Callable[..., StageResult]


class Emulated:
    """Runs a gate's commands in the container, and brings the emulator's counts back to where the gate looks."""

    def __init__(self, box: Box, program: str, artifacts: Path) -> None:
        self.box, self.program, self.artifacts = box, program, artifacts

    def __call__(self, command: str, *, env: Mapping[str, str] | None = None, timeout_s: float | None = None) -> Ran:
        words = shlex.split(command.replace("PROGRAM", self.program))
        done = self.box.emulate("gfx1100", *words, env=dict(env or {}))
        if counts := (env or {}).get("GREENLANE_EMULATOR_COUNTS"):
            (self.artifacts / counts).write_text(self.box.read(f"/scratch/{counts}"))
        return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def run(box: Box, tmp_path: Path) -> Callable[[int, Stage, dict[str, Any]], StageResult]:
    def run(fault: int, stage: Stage, config: dict[str, Any]) -> StageResult:
        program = box.compile("mirror.hip", "gfx1100", f"-DFAULT={fault}")
        lane = Lane(id="rocm-gfx1100", backend="rocm", arch="gfx1100", emulate=True, gates={"exact": EXACT})
        context = GateContext(lane=lane, stage=stage, source=tmp_path, artifacts=tmp_path, emulated=True)
        gate = reach.run if stage is Stage.REACH else exact.run
        return gate(config, Emulated(box, program, tmp_path), context)

    return run


@pytest.mark.parametrize(("stage", "config"), [(Stage.REACH, REACH), (Stage.EXACT, EXACT)])
def test_a_sound_program_passes(run: Gate, stage: Stage, config: dict[str, Any]) -> None:
    result = run(0, stage, config)
    assert result.outcome is Outcome.PASS, result.reason


def test_the_emulators_own_counts_are_the_second_witness(run: Gate) -> None:
    measured = run(0, Stage.REACH, REACH).measurements["on"]
    assert measured["witness"] == "emulator"
    assert measured["launches"] == {"combine": 7, "scatter_last_sampled": 8, "decode": 8}


def test_a_combine_that_is_never_dispatched_is_dead_code(run: Gate) -> None:
    result = run(1, Stage.REACH, REACH)
    assert result.outcome is Outcome.FAIL
    assert result.reason == "combine must be reached and was never launched: dead code in this lane"


def test_a_program_that_is_only_watched_is_inert(run: Gate) -> None:
    result = run(1, Stage.REACH, {"on": ON, "watch": ["combine", "scatter_last_sampled"]})
    assert result.outcome is Outcome.INERT
    assert result.reason == "compiled, but no run reaches combine, scatter_last_sampled"


def test_a_comparison_of_two_arms_that_run_alike_is_void(run: Gate) -> None:
    result = run(1, Stage.EXACT, EXACT)
    assert result.outcome is Outcome.VOID
    assert "combine was never launched in on: the arms are identical" in (result.reason or "")


def test_a_scatter_to_the_wrong_row_shows_in_the_tokens(run: Gate) -> None:
    result = run(2, Stage.EXACT, EXACT)
    assert result.outcome is Outcome.FAIL
    assert "diverges at index 1: token" in (result.reason or "")
