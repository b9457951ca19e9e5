"""The action for strangers: its steps are run by bash as a runner would, in a scratch project."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from greenlane.github.workflows import ACTIONS

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
MATRIX = """\
stages: {image: null, configure: null, build: ["echo built"], test: ["COMMAND"]}
backends: {cpu: {compiler: gcc, executor: host, require: [built], variants: {two: {}}}}
lanes: {products: [{backend: cpu, variant: [null, two]}]}
"""


def loaded() -> dict[str, Any]:
    found = yaml.safe_load(ACTION.read_text())
    assert isinstance(found, dict)
    return found


def step(name: str) -> dict[str, Any]:
    (found,) = [step for step in loaded()["runs"]["steps"] if step.get("id") == name]
    assert isinstance(found, dict)
    return found


@dataclass
class Runner:
    """Fills a step's environment from the inputs and runs it."""

    folder: Path

    def run(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        defaults = {name: spec["default"] for name, spec in loaded()["inputs"].items()}
        given = defaults | {name.replace("_", "-"): value for name, value in inputs.items()}
        found = step("run")
        filled = {name: self._filled(text, given) for name, text in found["env"].items()}
        environment = os.environ | {
            "PYTHONPATH": str(ROOT), "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"), **filled,
        }  # fmt: skip
        for name in ("GITHUB_ACTIONS", "GITHUB_EVENT_PATH"):
            environment.pop(name, None)
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", found["run"]]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)

    def _filled(self, text: str, inputs: dict[str, str]) -> str:
        if "steps.install.outputs.greenlane" in text:
            return str(self.folder / "greenlane")
        name = re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", text)
        assert name is not None, text
        return inputs[name[1]]

    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in (self.folder / "output").read_text().splitlines())


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    (tmp_path / "matrix.yaml").write_text(MATRIX.replace("COMMAND", "true"))
    (tmp_path / ".gitignore").write_text(".greenlane/\ngreenlane\noutput\nsummary\n")
    program = tmp_path / "greenlane"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m greenlane "$@"\n')
    program.chmod(0o755)
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "m"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return Runner(tmp_path)


def test_it_is_a_valid_action() -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions", str(ACTION)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_uses_the_same_pinned_actions_as_the_workflows() -> None:
    used = [line.split("uses: ")[1] for line in ACTION.read_text().splitlines() if "uses: " in line]
    assert used == [ACTIONS["setup_python"], ACTIONS["upload"]]


def test_no_command_holds_an_expression() -> None:
    assert [step for step in loaded()["runs"]["steps"] if "${{" in step.get("run", "")] == []


def test_every_input_has_a_default_and_is_used() -> None:
    text = ACTION.read_text()
    for name, spec in loaded()["inputs"].items():
        assert "default" in spec
        assert f"inputs.{name}" in text


def test_all_lanes_run_and_leave_their_records(runner: Runner) -> None:
    done = runner.run()
    assert done.returncode == 0, done.stdout + done.stderr
    outputs = runner.outputs()
    assert outputs["exit-code"] == "0"
    assert len(list((runner.folder / outputs["records"]).rglob("*.json"))) == 2
    assert "`cpu-two`" in (runner.folder / "summary").read_text()


def test_named_lanes_run_alone(runner: Runner) -> None:
    assert runner.run(lanes="\n  cpu-two\n").returncode == 0
    assert len(list((runner.folder / ".greenlane" / "ledger" / "records").rglob("*.json"))) == 1


def test_selected_lanes_run_alone(runner: Runner) -> None:
    assert runner.run(select="*-two").returncode == 0
    assert len(list((runner.folder / ".greenlane" / "ledger" / "records").rglob("*.json"))) == 1


def test_a_red_lane_is_red_and_the_others_still_run(runner: Runner) -> None:
    (runner.folder / "matrix.yaml").write_text(MATRIX.replace("COMMAND", "false"))
    assert runner.run().returncode == 1
    assert runner.outputs()["exit-code"] == "1"
    assert len(list((runner.folder / ".greenlane" / "ledger" / "records").rglob("*.json"))) == 2


def test_a_selection_of_nothing_is_no_pass(runner: Runner) -> None:
    done = runner.run(select="nothing*")
    assert done.returncode == 2


@pytest.mark.parametrize("evil", ["cpu; touch pwned", "$(touch pwned)", "`touch pwned`", "* --fresh", "--help"])
def test_an_input_is_never_a_command(evil: str, runner: Runner) -> None:
    done = runner.run(lanes=evil)
    assert done.returncode == 2, done.stdout + done.stderr
    assert not (runner.folder / "pwned").exists()


def test_the_install_step_takes_the_actions_own_sources() -> None:
    assert step("install")["env"] == {"SOURCE": "${{ github.action_path }}"}
    assert '"$SOURCE"' in step("install")["run"]
