"""The rendered workflows: valid, pinned, with few rights, no stranger's text in a shell, and not stale."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from greenlane import __version__, cli
from greenlane.github import workflows
from greenlane.github.plan import LABEL
from greenlane.matrix.export import GATE
from greenlane.record.git import git

ROOT = Path(__file__).parents[2]
FOLDER = Path(".github") / "workflows"
RUN, COMMENT = FOLDER / "greenlane.yml", FOLDER / "greenlane-comment.yml"
ALL = sorted(path.relative_to(ROOT) for path in (ROOT / FOLDER).glob("*.yml"))
PINNED = re.compile(r"uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
MATRIX = """\
stages: {build: [make]}
backends: {cpu: {compiler: gcc}, cuda: {compiler: nvcc, runs_on: [self-hosted, nvidia]}}
lanes: {products: [{backend: cpu}, {backend: cuda}]}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    git(tmp_path, "init", "-q")
    return tmp_path


def render(project: Path, *more: str, matrix: str = "matrix.yaml") -> int:
    return cli.main(["ci", "render", "--matrix", str(project / matrix), *more])


def jobs(path: Path) -> dict[str, Any]:
    found = yaml.safe_load((ROOT / path).read_text())["jobs"]
    assert isinstance(found, dict)
    return found


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(path).values() for step in job["steps"]]


def validated(schema: str, *files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True)


def test_this_repositorys_workflows_are_not_stale() -> None:
    assert cli.main(["ci", "render", "--check", "--matrix", str(ROOT / "matrix.yaml")]) == 0


def test_they_are_valid_workflows() -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    done = validated("vendor.github-workflows", *(ROOT / path for path in ALL))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_schema_would_find_a_mistake(tmp_path: Path) -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    (tmp_path / "bad.yml").write_text((ROOT / RUN).read_text().replace("runs-on:", "runs_on:", 1))
    assert validated("vendor.github-workflows", tmp_path / "bad.yml").returncode == 1


@pytest.mark.parametrize("path", ALL, ids=str)
def test_every_action_is_pinned_by_a_full_commit_with_its_release_beside_it(path: Path) -> None:
    lines = [line.strip() for line in (ROOT / path).read_text().splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert PINNED.search(line), line


@pytest.mark.parametrize("path", ALL, ids=str)
def test_no_shell_command_holds_an_expression(path: Path) -> None:
    commands = [step["run"] for step in steps(path) if "run" in step]
    assert commands
    assert [command for command in commands if "${{" in command] == []


@pytest.mark.parametrize("path", ALL, ids=str)
def test_no_checkout_leaves_its_token_behind(path: Path) -> None:
    checkouts = [step["with"] for step in steps(path) if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(options["persist-credentials"] is False for options in checkouts)


def test_rights_are_few_and_each_job_names_its_own() -> None:
    for path in ALL:
        assert yaml.safe_load((ROOT / path).read_text())["permissions"] == {}
    assert {name: job["permissions"] for name, job in jobs(RUN).items()} == {
        "plan": {"contents": "read"},
        "lanes_1": {"contents": "read"},
        "gate": {"contents": "read"},
    }
    assert {name: job["permissions"] for name, job in jobs(COMMENT).items()} == {
        "comment": {"actions": "read", "checks": "write", "contents": "read", "pull-requests": "write"},
        "keep": {"actions": "read", "contents": "write"},
    }


def test_the_run_has_no_secret_and_its_lanes_no_token() -> None:
    text = (ROOT / RUN).read_text()
    assert "secrets." not in text
    for name, job in jobs(RUN).items():
        tokens = [step for step in job["steps"] if "token" in str(step.get("env", "")).lower()]
        assert len(tokens) == (1 if name == "gate" else 0)


def test_the_commenter_checks_out_and_names_nothing_of_the_change() -> None:
    """No `ref` or `repository` on a checkout, and what a stranger chose goes into nothing but a group's name."""
    for step in steps(COMMENT):
        assert not {"ref", "repository"} & set(step.get("with", {})), step
        assert "workflow_run" not in str(step), step
    text = (ROOT / COMMENT).read_text()
    chosen = re.findall(r"workflow_run\.(head_branch|head_commit\S*|display_title|head_sha)", text)
    assert chosen == ["head_branch"]
    assert "pull_request_target" not in text + (ROOT / RUN).read_text()


def test_the_gate_is_one_job_of_a_fixed_name_that_waits_for_all_and_always_runs() -> None:
    gates = [job for job in jobs(RUN).values() if GATE in str(job.get("name"))]
    (gate,) = gates
    assert gate["needs"] == ["plan", "lanes_1"]
    assert gate["if"].startswith("always()")
    assert "continue-on-error" not in (ROOT / RUN).read_text()


def test_a_run_by_hand_names_its_pull_request_so_that_the_commenter_finds_it() -> None:
    """A `#` in an unquoted value would begin a YAML comment."""
    title = yaml.safe_load((ROOT / RUN).read_text())["run-name"]
    assert title == "${{ inputs.pull-request && format('greenlane for #{0}', inputs.pull-request) || '' }}"


def test_lanes_run_on_the_machines_of_the_matrix() -> None:
    runs_on = " ".join(jobs(RUN)["lanes_1"]["runs-on"].split())
    assert "matrix.runs-on" in runs_on
    assert runs_on.startswith("${{ (needs.plan.outputs.hardware == 'true' || ")


@pytest.mark.parametrize(
    ("event", "allowed"),
    [
        ({"name": "push"}, True),
        ({"name": "pull_request", "fork": "o/r", "action": "synchronize"}, True),
        ({"name": "pull_request", "fork": "stranger/r", "action": "synchronize"}, False),
        ({"name": "pull_request", "fork": None, "action": "opened"}, False),
        ({"name": "pull_request", "fork": "stranger/r", "action": "labeled", "label": LABEL}, True),
        ({"name": "pull_request", "fork": "stranger/r", "action": "labeled", "label": "docs"}, False),
        ({"name": "pull_request", "fork": "stranger/r", "action": "synchronize", "label": LABEL}, False),
    ],
)
def test_the_workflow_itself_says_who_gets_the_teams_machines(event: dict[str, Any], allowed: bool) -> None:
    """Evaluated as GitHub would, not as the plan says: a fork may have edited what plans."""
    expression = jobs(RUN)["plan"]["outputs"]["hardware"]
    assert evaluated(expression, event) is allowed


@pytest.mark.parametrize(
    ("hardware", "labels", "machine"),
    [
        ("true", ["self-hosted", "nvidia"], ["self-hosted", "nvidia"]),
        ("false", ["self-hosted", "nvidia"], "ubuntu-24.04"),
        ("false", ["our-big-box"], "ubuntu-24.04"),
        ("false", ["ubuntu-24.04", "gpu"], "ubuntu-24.04"),
        ("", ["self-hosted"], "ubuntu-24.04"),
        ("false", ["windows-2025"], ["windows-2025"]),
        ("false", ["ubuntu-24.04"], ["ubuntu-24.04"]),
    ],
)
def test_whatever_a_forged_plan_asks_for_a_strangers_lane_runs_on_githubs_machines(
    hardware: str, labels: list[str], machine: object
) -> None:
    expression = jobs(RUN)["lanes_1"]["runs-on"]
    assert evaluated(expression, {"hardware": hardware, "labels": labels}) == machine


def evaluated(expression: str, event: dict[str, Any]) -> Any:
    """The few operators of GitHub's expressions that these lines use, in Python."""
    values = {
        "github.event_name": event.get("name"),
        "github.event.pull_request.head.repo.full_name": event.get("fork"),
        "github.repository": "o/r",
        "github.event.action": event.get("action"),
        "github.event.label.name": event.get("label"),
        "needs.plan.outputs.hardware": event.get("hardware"),
        "matrix.runs-on": event.get("labels"),
    }
    text = expression.strip().removeprefix("${{").removesuffix("}}")
    text = re.sub(r"matrix\.runs-on\[(\d)\]", r"at(v['matrix.runs-on'], \1)", text)
    for name in sorted(values, key=len, reverse=True):
        text = re.sub(rf"(?<!')\b{re.escape(name)}\b(?!')", f"v['{name}']", text)
    text = (
        text.replace("&&", " and ").replace("||", " or ").replace("null", "None").replace("startsWith", "starts_with")
    )
    names = {
        "v": values,
        "at": lambda found, index: found[index] if index < len(found) else None,
        "starts_with": lambda found, start: (found or "").startswith(start),
    }
    return eval(" ".join(text.split()), {"__builtins__": {}}, names)


def test_a_check_says_what_is_stale_and_changes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(project) == 0
    assert render(project, "--check") == 0
    (project / RUN).write_text((project / RUN).read_text().replace("contents: read", "contents: write", 1))
    edited = (project / RUN).read_text()
    capsys.readouterr()
    assert render(project, "--check") == 1
    shown = capsys.readouterr().out
    assert "-      contents: write" in shown
    assert "+      contents: read" in shown
    assert (project / RUN).read_text() == edited


def test_a_workflow_that_is_missing_is_stale(project: Path) -> None:
    assert render(project, "--check") == 1
    assert not (project / ".github").exists()


def test_a_stranger_installs_a_release_and_greenlane_installs_itself(project: Path) -> None:
    assert workflows.install_command(project) == f'python -m pip install "greenlane[github]=={__version__}"'
    assert workflows.install_command(ROOT) == 'python -m pip install ".[github]"'


@pytest.mark.parametrize(
    ("url", "commit", "installs"),
    [
        (
            "https://example.com/o/greenlane.git",
            "a" * 40,
            f"greenlane[github] @ git+https://example.com/o/greenlane.git@{'a' * 40}",
        ),
        ("https://example.com/o/$(touch pwned)", "a" * 40, f"greenlane[github]=={__version__}"),
        ("https://user:secret@example.com/o/r", "a" * 40, f"greenlane[github]=={__version__}"),
        ("https://example.com/o/r", "main", f"greenlane[github]=={__version__}"),
    ],
)
def test_what_was_installed_from_git_is_installed_by_its_commit(
    url: str, commit: str, installs: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = json.dumps({"url": url, "vcs_info": {"vcs": "git", "commit_id": commit}})
    monkeypatch.setattr(workflows.metadata, "distribution", lambda name: SimpleNamespace(read_text=lambda file: told))
    assert workflows.install_command(project) == f'python -m pip install "{installs}"'


def test_a_matrix_in_a_folder_is_found_from_the_top(project: Path) -> None:
    (project / "ci").mkdir()
    (project / "ci" / "lanes.yaml").write_text(MATRIX)
    assert render(project, matrix="ci/lanes.yaml") == 0
    found = yaml.safe_load((project / RUN).read_text())
    assert found["env"]["MATRIX"] == "ci/lanes.yaml"
    uploads = [step["with"]["path"] for step in found["jobs"]["lanes_1"]["steps"] if "upload" in step.get("uses", "")]
    assert uploads == ["ci/.greenlane/ledger/records"]


@pytest.mark.parametrize("name", ["${{ github.token }}.yaml", "a\nb.yaml"])
def test_a_path_that_a_workflow_would_read_as_more_is_refused(name: str, project: Path) -> None:
    (project / name).write_text(MATRIX)
    assert render(project, matrix=name) == 2


def test_a_large_matrix_gets_a_job_for_every_group(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greenlane.matrix.export.GROUP", 1)
    assert render(project) == 0
    found = yaml.safe_load((project / RUN).read_text())["jobs"]
    assert list(found) == ["plan", "lanes_1", "lanes_2", "gate"]
    assert found["gate"]["needs"] == ["plan", "lanes_1", "lanes_2"]
    assert found["plan"]["steps"][-1]["env"]["GREENLANE_GROUPS"] == "2"


def test_a_schedule_exists_only_for_nightly_lanes(project: Path) -> None:
    render(project)
    assert "schedule" not in (project / RUN).read_text()
    (project / "matrix.yaml").write_text(MATRIX.replace("compiler: gcc", "compiler: gcc, tags: [nightly]"))
    render(project)
    assert "schedule" in (project / RUN).read_text()


def test_a_project_may_bring_its_own_template(project: Path) -> None:
    (project / "own" / "workflows").mkdir(parents=True)
    (project / "own" / "workflows" / "greenlane.yml").write_text("name: ours, {{ gate }}\n")
    (project / "matrix.yaml").write_text(MATRIX + "templates: own\n")
    assert render(project) == 0
    assert (project / RUN).read_text() == f"name: ours, {GATE}\n"
    assert (project / COMMENT).read_text().startswith("# Written by")


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    """A `greenlane` that writes down what it was called with."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "greenlane"
    program.write_text('#!/bin/sh\nprintf "<%s>" "$@" >> calls\n')
    program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("lane", "base", "called"),
    [
        ("cpu", "", "<run><cpu><--matrix><matrix.yaml>"),
        ("cpu", "abc", "<run><cpu><--matrix><matrix.yaml><--base><abc><--merge>"),
        (
            "$(touch pwned)",
            "`touch pwned`",
            "<run><$(touch pwned)><--matrix><matrix.yaml><--base><`touch pwned`><--merge>",
        ),
        ('"; touch pwned; "', "a b", '<run><"; touch pwned; "><--matrix><matrix.yaml><--base><a b><--merge>'),
    ],
)
def test_a_name_from_a_change_is_one_argument(lane: str, base: str, called: str, stub: Path) -> None:
    (step,) = [step for step in jobs(RUN)["lanes_1"]["steps"] if step.get("name") == "Run the lane"]
    environment = {"PATH": f"{stub / 'bin'}:/usr/bin:/bin", "LANE": lane, "BASE": base, "MATRIX": "matrix.yaml"}
    subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], cwd=stub, env=environment, check=True)
    assert (stub / "calls").read_text() == called
    assert not (stub / "pwned").exists()
