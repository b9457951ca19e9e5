"""What the README shows works as it stands there; its two commands are run verbatim by .ci/run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from greenlane import cli
from greenlane.matrix import load

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_it_is_short() -> None:
    assert README.count("\n") <= 150


def test_the_two_commands_come_first_and_ci_runs_them() -> None:
    assert [block.strip() for block in blocks("sh")[:2]] == ["pip install nox && nox -s cpu", "nox -s tests"]
    script = (ROOT / ".ci" / "run").read_text()
    assert '"$(readme 1)"' in script
    assert '"$(readme 2)"' in script


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "rocm.Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "matrix.yaml").write_text(blocks("yaml")[0])
    (tmp_path / "noxfile.py").write_text(blocks("python")[0])
    return tmp_path


def test_the_matrix_in_it_has_the_lanes_that_it_promises(project: Path) -> None:
    assert [lane.id for lane in load(project / "matrix.yaml").lanes] == ["cpu", "rocm-gfx1100", "rocm-gfx1201"]


def test_the_noxfile_in_it_lists_those_lanes(project: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "nox", "-l"]
    listed = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    for lane in ("cpu", "rocm-gfx1100", "rocm-gfx1201"):
        assert re.search(rf"^- {lane}\b", listed.stdout, re.MULTILINE), listed.stdout


def test_every_command_that_it_names_exists() -> None:
    known = {command for action in cli.parser()._subparsers._group_actions for command in action.choices}  # type: ignore[union-attr,attr-defined]
    named = set(re.findall(r"`greenlane ([a-z]+)", README))
    assert named
    assert named <= known


def test_every_page_that_it_links_to_exists() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
