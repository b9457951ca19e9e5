"""Lanes that really ran: what the review makes of a base run in the same job, and of a machine that gave out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from greenlane import cli
from greenlane.lanes import prove
from greenlane.lanes.prove import Proven
from greenlane.ledger import Ledger
from tests.lanes import conftest as lanes
from tests.lanes.conftest import Project
from tests.review.conftest import Story

project = lanes.project

FAULT = "echo 'a.cpp:1:1: error: no member named combine in vt' >&2; exit 1"
OTHER = "echo 'a.cpp:1:1: error: no member named scatter in vt' >&2; exit 1"


def reviewed(project: Project, *options: str) -> dict[str, Any]:
    done = project.greenlane("review", "--base", "main", "--format", "json", *options)
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout) | {"code": done.returncode}  # type: ignore[no-any-return]


def build(project: Project, command: str) -> None:
    project.write(stages={"build": command}, require=["checked", "built"])


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [(FAULT, FAULT, "red-on-base"), ("true", FAULT, "new-red"), (OTHER, FAULT, "unclassified")],
)
def test_a_red_is_tried_on_the_merge_base_in_the_same_job(
    project: Project, before: str, after: str, verdict: str
) -> None:
    build(project, before)
    project.commit("base")
    project.git("checkout", "-q", "-b", "change")
    (project.root / "b.cpp").write_text("int b;\n")
    build(project, after)
    project.commit("change")
    project.git("checkout", "-q", "main")
    build(project, "echo main has moved on")
    project.commit("moved")
    project.git("checkout", "-q", "change")
    project.greenlane("run", "cpu", "--base", "main")
    told = reviewed(project)
    assert [(lane["id"], lane["verdict"]) for lane in told["lanes"]] == [("cpu", verdict)]


def test_a_machine_that_gives_out_is_no_verdict_on_the_change(project: Project) -> None:
    (project.root / "Dockerfile").write_text("FROM scratch\n")
    project.write(dockerfile="Dockerfile", executor="docker")
    project.commit("in a container")
    project.git("checkout", "-q", "-b", "change")
    project.commit("change")
    done = project.greenlane("run", "cpu", "--base", "main", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert done.returncode == 3
    told = reviewed(project)
    [lane] = told["lanes"]
    assert (lane["verdict"], told["code"]) == ("infra", 1)
    comment = project.greenlane("review", "--base", "main", "--format", "markdown").stdout
    assert "## 🟠 `cpu` is cut by the infrastructure: somebody has to run it again" in comment
    project.greenlane("run", "cpu", "--base", "main", "--executor", "host")
    assert reviewed(project)["lanes"][0]["verdict"] == "green", "a run after the machine failed is no flake"


@pytest.mark.parametrize(("holds", "code"), [(True, 0), (False, 1)])
def test_a_gate_that_guards_nothing_turns_a_green_review_red(
    story: Story, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], holds: bool, code: int
) -> None:
    story.ledger = Ledger(story.repository / ".greenlane" / "ledger")
    for lane in ("cpu", "rocm-gfx1100", "rocm-gfx1151"):
        story.record(lane, story.heads["change"])
    monkeypatch.setattr(prove, "prove", lambda *_: [Proven("rocm-gfx1100", holds, "the gate stayed pass")])
    matrix = str(story.repository / "matrix.yaml")
    assert cli.main(["review", "--matrix", matrix, "--head", "change", "--prove", "reach", "--format", "json"]) == code
    assert f"rocm-gfx1100: reach {'proven' if holds else 'NOT proven'}: the gate stayed pass" in capsys.readouterr().err


def test_open_changes_are_named_by_globs_on_the_command_line(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    story.branch("pulls/7", "main")
    lines = (story.repository / "src/attn.cpp").read_text()
    story.commit("rival", {"src/attn.cpp": lines.replace("line 4\n", "line IV\n")})
    arguments = ["--matrix", str(story.repository / "matrix.yaml"), "--head", "change", "--format", "markdown"]
    cli.main(["review", *arguments, "--other", "refs/heads/pulls/*", "--other", "refs/pull/9/head"])
    told = capsys.readouterr().out
    assert "`refs/heads/pulls/7`, another open change, conflicts with this one in `src/attn.cpp`" in told
    assert "refs/pull/9/head was not tried" in told
    assert "the author has to rebase" not in told, "a conflict with another open change is no conflict with the base"


@pytest.mark.parametrize("how", ["files", "link"])
def test_a_change_that_brings_its_own_records_is_refused(project: Project, how: str) -> None:
    """The records and the state of an interrupted run, made elsewhere for this very tree, and committed by force."""
    project.git("checkout", "-q", "-b", "change")
    project.commit("change")
    assert project.greenlane("run", "cpu", "--base", "main").returncode == 0
    if how == "link":
        (project.root / ".greenlane").rename(project.root / "innocent")
        (project.root / ".greenlane").symlink_to("innocent")
        (project.root / ".gitignore").write_text("")
    project.git("add", "-f", ".greenlane", *(["innocent"] if how == "link" else []))
    project.commit("planted")
    for verb in (
        ["run", "cpu", "--base", "main"],
        ["review", "--base", "main"],
        ["ledger", "ls"],
        ["ledger", "export"],
    ):
        done = project.greenlane(*verb)
        assert done.returncode == 2, verb
        assert "git rm -r --cached .greenlane" in done.stderr
        assert "Traceback" not in done.stderr
