"""Records of trusted runs go into the team's ref; two runs at once lose none, and a fork's never get there."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from greenlane import cli
from greenlane.github import history
from greenlane.ledger import Ledger, ref
from greenlane.record.git import git, git_text
from tests.github.fake import GitHub
from tests.review.conftest import MATRIX, Story

RUN = 9


@pytest.fixture
def story(tmp_path: Path, github: GitHub, environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Story:
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    made = Story(work, Ledger(tmp_path / "ledger"))
    made.commit("base", {"matrix.yaml": MATRIX, ".gitignore": ".greenlane/\n"})
    (tmp_path / "server" / "o").mkdir(parents=True)
    git(tmp_path, "clone", "-q", "--bare", str(work), str(tmp_path / "server" / "o" / "r.git"))
    monkeypatch.setenv("GITHUB_SERVER_URL", f"file://{tmp_path}/server")
    github.run(RUN, made.heads["base"], event="push")
    upload(github, made, made.heads["base"])
    return made


def upload(github: GitHub, story: Story, commit: str, lane: str = "cpu") -> None:
    name, buffer = story.record(lane, commit), io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(f"{name}.json", story.ledger.raw(name))
    github.artifact(RUN, f"records-{lane}", buffer.getvalue())


def keep(story: Story) -> int:
    return cli.main(
        ["ci", "keep", "--matrix", str(story.repository / "matrix.yaml"), "--repo", "o/r", "--run", str(RUN)]
    )


def kept(tmp_path: Path) -> list[str]:
    server = tmp_path / "server" / "o" / "r.git"
    listed = git(server, "ls-tree", "-r", "--name-only", ref.REF, check=False).stdout.decode()
    return [Path(line).stem for line in listed.splitlines()]


def test_a_pushs_records_are_shared(story: Story, tmp_path: Path) -> None:
    assert keep(story) == 0
    assert len(kept(tmp_path)) == 1


def test_a_second_time_adds_nothing(story: Story, tmp_path: Path) -> None:
    keep(story)
    tip = git_text(tmp_path / "server" / "o" / "r.git", "rev-parse", ref.REF)
    assert keep(story) == 0
    assert git_text(tmp_path / "server" / "o" / "r.git", "rev-parse", ref.REF) == tip


def test_a_forks_are_not(story: Story, github: GitHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    github.run(RUN, story.heads["base"], event="push", fork="stranger/r")
    assert keep(story) == 0
    assert kept(tmp_path) == []
    assert "never a baseline" in capsys.readouterr().err


def test_a_record_of_a_commit_that_is_not_the_runs_is_refused(story: Story, github: GitHub, tmp_path: Path) -> None:
    story.branch("elsewhere", "main")
    elsewhere = story.commit("elsewhere", {"x": "1"})
    story.branch("main")
    upload(github, story, elsewhere, "rocm-gfx1100")
    assert keep(story) == 0
    assert len(kept(tmp_path)) == 1


def test_what_a_changes_run_says_of_the_base_is_no_baseline(story: Story, github: GitHub, tmp_path: Path) -> None:
    """Else one change could make main look red, and so excuse the next."""
    story.branch("topic", "main")
    head = story.commit("topic", {"x": "1"})
    story.branch("main")
    github.run(RUN, head)
    assert keep(story) == 0
    assert kept(tmp_path) == []


def test_what_another_run_pushed_meanwhile_is_not_lost(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = tmp_path / "server" / "o" / "r.git"
    others, pushed = Ledger(tmp_path / "others"), []
    others.put_bytes(story.ledger.raw(story.record("rocm-gfx1151", story.heads["base"])))
    real = history.push_ref

    def push(*arguments: object) -> None:
        if not pushed:
            pushed.append(ref.export(others, server))
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(history, "push_ref", push)
    assert keep(story) == 0
    assert len(kept(tmp_path)) == 2


def test_a_run_for_a_pull_request_keeps_the_records_of_its_head(story: Story, github: GitHub, tmp_path: Path) -> None:
    story.branch("topic", "main")
    head = story.commit("topic", {"x": "1"})
    story.branch("main")
    github.pull(4, head)
    github.run(RUN, story.heads["base"], event="workflow_dispatch", display_title="greenlane for #4")
    upload(github, story, head, "rocm-gfx1100")
    assert keep(story) == 0
    assert len(kept(tmp_path)) == 2


def test_it_needs_a_repository_and_a_run(story: Story) -> None:
    assert cli.main(["ci", "keep", "--matrix", str(story.repository / "matrix.yaml")]) == 2
