"""What a run takes: a fork's change never gets onto the team's own machines unless it is labelled."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from greenlane import cli
from greenlane.errors import MatrixError
from greenlane.github import plan
from greenlane.record.git import git, git_text

MATRIX = """\
stages: {build: [make]}
backends:
  cpu: {compiler: gcc, variants: {slow: {tags: [nightly]}}}
  cuda: {compiler: nvcc, device: nvidia, runs_on: [self-hosted, nvidia]}
  odd: {compiler: gcc, runs_on: [our-big-box]}
  win: {compiler: gcc, runs_on: [windows-2025]}
lanes:
  products: [{backend: cpu, variant: [null, slow]}, {backend: cuda}, {backend: odd}, {backend: win}]
"""
HARDWARE = {"cuda", "odd"}


def pull_event(fork: str | None = "stranger/r", **more: Any) -> dict[str, Any]:
    repo = {"full_name": fork} if fork else None
    return {"action": "synchronize", "pull_request": {
        "number": 3, "head": {"repo": repo, "sha": "a" * 40}, "base": {"repo": {"full_name": "o/r"}, "sha": "b" * 40},
    }} | more  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "r").mkdir()
    git(tmp_path / "r", "init", "-q", "-b", "main")
    (tmp_path / "r" / "matrix.yaml").write_text(MATRIX)
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    git(tmp_path / "r", "add", "-A")
    git(tmp_path / "r", *identity, "commit", "-qm", "matrix")
    return tmp_path / "r"


@pytest.fixture
def planned(folder: Path, tmp_path: Path, environment: Callable[..., None]) -> Callable[..., dict[str, str]]:
    def run(name: str, event: dict[str, Any], **more: str) -> dict[str, str]:
        (tmp_path / "event.json").write_text(json.dumps(event))
        (tmp_path / "out").write_text("")
        environment(
            GITHUB_EVENT_NAME=name, GITHUB_EVENT_PATH=str(tmp_path / "event.json"),
            GITHUB_OUTPUT=str(tmp_path / "out"), GITHUB_STEP_SUMMARY=str(tmp_path / "summary"), **more,
        )  # fmt: skip
        assert cli.main(["ci", "plan", "--matrix", str(folder / "matrix.yaml")]) == 0
        lines = (tmp_path / "out").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    return run


def lanes(outputs: dict[str, str]) -> set[str]:
    return {entry["lane"] for entry in json.loads(outputs["lanes_1"])["include"]}


def at(folder: Path, event: dict[str, Any]) -> dict[str, Any]:
    """The event with a base that this clone has."""
    event["pull_request"]["base"]["sha"] = git_text(folder, "rev-parse", "HEAD")
    return event


def test_a_push_takes_all_but_the_nightly_lanes(planned: Callable[..., dict[str, str]], folder: Path) -> None:
    outputs = planned("push", {})
    assert lanes(outputs) == {"cpu", "cuda", "odd", "win"}
    assert outputs["head"] == git_text(folder, "rev-parse", "HEAD")
    assert outputs["base"] == ""


def test_the_nightly_run_takes_every_lane(planned: Callable[..., dict[str, str]]) -> None:
    assert lanes(planned("schedule", {})) == {"cpu", "cpu-slow", "cuda", "odd", "win"}


def test_a_change_of_the_repositorys_own_branch_gets_every_machine(
    planned: Callable[..., dict[str, str]], folder: Path
) -> None:
    outputs = planned("pull_request", at(folder, pull_event("o/r")))
    assert lanes(outputs) == {"cpu", "cuda", "odd", "win"}
    assert outputs["base"] == git_text(folder, "rev-parse", "HEAD")


@pytest.mark.parametrize("fork", ["stranger/r", None])
def test_a_forks_change_gets_hosted_machines_only_and_is_told_so(
    fork: str | None, planned: Callable[..., dict[str, str]], folder: Path, tmp_path: Path
) -> None:
    assert lanes(planned("pull_request", at(folder, pull_event(fork)))) == {"cpu", "win"}
    summary = (tmp_path / "summary").read_text()
    assert "2 lanes run, 3 are withheld" in summary
    assert "`cuda` | it needs a machine of the team" in summary


def test_the_event_of_being_labelled_lets_it_on(planned: Callable[..., dict[str, str]], folder: Path) -> None:
    event = at(folder, pull_event(action="labeled", label={"name": plan.LABEL}))
    assert lanes(planned("pull_request", event)) >= HARDWARE


@pytest.mark.parametrize(
    "more",
    [
        {"action": "synchronize", "label": {"name": plan.LABEL}},
        {"action": "labeled", "label": {"name": "docs"}},
        {"action": "labeled", "label": None},
        {"action": "labeled"},
    ],
)
def test_a_push_after_the_label_does_not(
    more: dict[str, Any], planned: Callable[..., dict[str, str]], folder: Path
) -> None:
    event = at(folder, pull_event(**more))
    event["pull_request"]["labels"] = [{"name": plan.LABEL}]  # it still has the label
    assert not lanes(planned("pull_request", event)) & HARDWARE


def test_an_event_that_cannot_be_read_is_a_strangers() -> None:
    assert not plan.may_use_hardware("pull_request", {})
    assert not plan.may_use_hardware("pull_request", {"pull_request": []})


@pytest.mark.parametrize(
    "labels", [["self-hosted"], ["ubuntu-24.04", "gpu"], ["gpu"], ["ubuntu"], ["x", "ubuntu-24.04"]]
)
def test_only_one_label_of_githubs_own_pattern_is_hosted(labels: list[str]) -> None:
    assert not plan.is_hosted(labels)
    assert plan.is_hosted(["ubuntu-24.04"])


def test_lanes_can_be_chosen_by_hand(planned: Callable[..., dict[str, str]]) -> None:
    assert lanes(planned("workflow_dispatch", {}, GREENLANE_SELECT="cpu*")) == {"cpu", "cpu-slow"}


def test_a_selection_is_no_shell(planned: Callable[..., dict[str, str]], folder: Path) -> None:
    with pytest.raises(AssertionError):
        planned("workflow_dispatch", {}, GREENLANE_SELECT="$(touch pwned)")
    assert not list(folder.glob("pwned"))


def test_a_base_that_was_not_fetched_is_said(folder: Path) -> None:
    with pytest.raises(MatrixError, match="fetch-depth: 0"):
        plan.base_of(folder, "pull_request", pull_event())


def test_a_run_by_hand_for_a_pull_request_is_compared_with_the_default_branch(
    planned: Callable[..., dict[str, str]], folder: Path
) -> None:
    tip = git_text(folder, "rev-parse", "HEAD")
    git(folder, "update-ref", "refs/remotes/origin/main", tip)
    event = {"repository": {"default_branch": "main"}}
    assert planned("workflow_dispatch", event, GREENLANE_PULL="3")["base"] == tip
    assert planned("workflow_dispatch", event, GREENLANE_PULL="")["base"] == ""


def test_without_the_default_branch_it_is_not_compared_with_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GREENLANE_PULL", "3")
    with pytest.raises(MatrixError, match="origin/main is not in this clone"):
        plan.base_of(folder, "workflow_dispatch", {"repository": {"default_branch": "main"}})


def test_a_merge_group_is_compared_with_its_base(planned: Callable[..., dict[str, str]], folder: Path) -> None:
    tip = git_text(folder, "rev-parse", "HEAD")
    assert planned("merge_group", {"merge_group": {"base_sha": tip}})["base"] == tip


def test_more_groups_than_the_workflow_has_jobs_is_an_error_and_not_a_lane_that_never_runs(
    folder: Path, environment: Callable[..., None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenlane.matrix.export.GROUP", 2)
    environment(GITHUB_EVENT_NAME="push")
    assert cli.main(["ci", "plan", "--matrix", str(folder / "matrix.yaml")]) == 2
    assert "need 2 jobs, and the workflow has 1" in capsys.readouterr().err
