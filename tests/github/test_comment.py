"""`greenlane comment` from end to end: a repository, a server of its refs, and the fake GitHub."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from greenlane import cli
from greenlane.ledger import Ledger
from greenlane.record.git import git, git_text
from greenlane.report.comment import MARKER
from tests.github.fake import BOT, TOKEN, GitHub
from tests.review.conftest import MATRIX, Story

RUN, PR = 77, 12


@dataclass
class Scene:
    """The clone that greenlane runs in, the server's repository, and the records that lanes made elsewhere."""

    github: GitHub
    clone: Path
    server: Path
    story: Story
    output: Path

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.clone / ".greenlane" / "ledger")

    def head(self) -> str:
        return self.story.heads["change"]

    def archive(self, *ids: str, edit: Callable[[dict[str, object]], object] = lambda record: None) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name in ids:
                record = json.loads(self.story.ledger.raw(name))
                edit(record)
                archive.writestr(f"records/{name[:2]}/{name}.json", json.dumps(record))
        return buffer.getvalue()

    def comment(self, *more: str, run: bool = True) -> int:
        which = ("--run", str(RUN)) if run else ("--pr", str(PR))
        return cli.main(["comment", "--matrix", str(self.clone / "matrix.yaml"), "--repo", "o/r", *which, *more])

    def said(self) -> str:
        (body,) = self.github.bodies(PR)
        return body


@pytest.fixture
def scene(github: GitHub, tmp_path: Path, environment: Callable[..., None]) -> Scene:
    work, server, clone = tmp_path / "work", tmp_path / "server.git", tmp_path / "clone"
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    story = Story(work, Ledger(tmp_path / "ledger"))
    story.commit("base", {"matrix.yaml": MATRIX, "src/attn.cpp": "one\ntwo\nthree\n", ".gitignore": ".greenlane/\n"})
    git(tmp_path, "clone", "-q", "--bare", str(work), str(server))
    git(tmp_path, "clone", "-q", str(server), str(clone))
    story.branch("change", "main")
    story.commit("change", {"src/attn.cpp": "one\ntwo\n3\n"})
    git(work, "push", "-q", str(server), f"HEAD:refs/pull/{PR}/head")
    github.pull(PR, story.heads["change"], fork="stranger/r")
    github.pulls[PR]["base"]["repo"]["clone_url"] = f"file://{server}"
    github.run(RUN, story.heads["change"], fork="stranger/r")
    return Scene(github, clone, server, story, tmp_path)


def own(scene: Scene) -> None:
    """The same pull request, from a branch of the repository itself."""
    for entry in (scene.github.pulls[PR]["head"]["repo"], scene.github.runs[RUN]["head_repository"]):
        entry["full_name"] = "o/r"
    scene.github.pulls[PR]["head"]["label"] = "o:topic"


def test_the_records_of_a_run_become_the_comment(scene: Scene) -> None:
    own(scene)
    record = scene.story.record("cpu", scene.head())
    scene.github.artifact(RUN, "records-cpu", scene.archive(record))
    assert scene.comment() == 0
    assert scene.said().startswith(MARKER)
    assert f"head={scene.head()} run={RUN}.1" in scene.said()
    assert [row.trust for row in scene.ledger.rows()] == ["runner"]


def test_a_forks_record_that_calls_itself_a_runners_is_a_forks(scene: Scene) -> None:
    record = scene.story.record("cpu", scene.head())
    assert json.loads(scene.story.ledger.raw(record))["trust"] == "runner"
    scene.github.artifact(RUN, "records-cpu", scene.archive(record))
    assert scene.comment() == 0
    assert [row.trust for row in scene.ledger.rows()] == ["fork"]
    assert "a trusted run has to confirm it" in scene.said()


def test_a_forks_record_of_another_commit_is_refused(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    record = scene.story.record("cpu", scene.story.heads["base"])
    scene.github.artifact(RUN, "records-cpu", scene.archive(record))
    assert scene.comment() == 0
    assert scene.ledger.rows() == []
    assert "for which this run can't speak" in capsys.readouterr().err


def test_a_trusted_run_may_speak_for_the_base_that_it_reran_and_for_nothing_else(scene: Scene) -> None:
    own(scene)
    ids = [scene.story.record("cpu", commit) for commit in (scene.story.heads["base"], scene.head(), "e" * 40)[:2]]
    stranger = scene.archive(ids[0], edit=lambda record: record.update(head="e" * 40))
    scene.github.artifact(RUN, "records-cpu", scene.archive(*ids))
    scene.github.artifact(RUN, "records-more", stranger)
    assert scene.comment() == 0
    assert {row.head for row in scene.ledger.rows()} == {scene.story.heads["base"], scene.head()}


def test_nothing_of_the_change_is_checked_out(scene: Scene) -> None:
    before = git_text(scene.clone, "rev-parse", "HEAD")
    assert scene.comment() == 0
    assert git_text(scene.clone, "rev-parse", "HEAD") == before
    assert git_text(scene.clone, "status", "--porcelain") == ""
    assert (scene.clone / "src" / "attn.cpp").read_text() == "one\ntwo\nthree\n"


def test_a_head_that_moved_before_the_run_ended_gets_no_comment(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.github.pulls[PR]["head"]["sha"] = "f" * 40
    assert scene.comment() == 0
    assert scene.github.writes() == []
    assert "it has moved on, was closed, or its branch is gone" in capsys.readouterr().err


def test_a_head_that_is_no_longer_to_be_fetched_has_moved(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.github.pull(PR, "d" * 40, fork="stranger/r")
    scene.github.pulls[PR]["base"]["repo"]["clone_url"] = f"file://{scene.server}"
    scene.github.runs[RUN]["head_sha"] = "d" * 40
    scene.github.before = lambda request: (
        scene.github.pulls[PR]["head"].update(sha=scene.head()) if request.endswith(f"pulls/{PR}") else None
    )
    assert scene.comment() == 3
    assert f"moved from dddddddddd to {scene.head()[:10]}" in capsys.readouterr().err


def test_a_token_of_another_app_is_told_to_name_itself(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    real = scene.github.comment
    scene.github.comment = lambda number, body, author=None: real(number, body, "my-app[bot]")  # type: ignore[method-assign]
    assert scene.comment() == 0
    assert "this token writes as my-app[bot]: give --author" in capsys.readouterr().err


def test_a_head_that_is_forced_away_while_the_review_is_made_gets_no_comment(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    def push(request: str) -> None:
        if request == f"GET /repos/o/r/pulls/{PR}":  # the last question before anything is written
            scene.github.pulls[PR]["head"]["sha"] = "f" * 40

    scene.github.before = push
    assert scene.comment() == 3
    assert scene.github.writes() == []
    assert f"moved from {scene.head()[:10]} to ffffffffff" in capsys.readouterr().err


@pytest.mark.parametrize("fork", ["stranger/r", None])
def test_a_closed_pull_request_or_a_deleted_fork_is_left_alone(fork: str | None, scene: Scene) -> None:
    scene.github.pull(PR, scene.head(), fork=fork, state="closed")
    scene.github.runs[RUN]["head_repository"] = {"full_name": fork} if fork else None
    assert scene.comment() == 0
    assert scene.github.writes() == []


def test_a_run_of_another_branch_with_the_same_commit_is_not_this_pull_requests(scene: Scene) -> None:
    scene.github.runs[RUN]["head_repository"] = {"full_name": "mallory/r"}
    scene.github.pulls[PR]["head"]["label"] = "mallory:topic"  # what a server that ignored the filter would answer
    assert scene.comment() == 0
    assert scene.github.writes() == []


@pytest.mark.parametrize("branch", ["a&state=closed", "x#y", "$(touch pwned)", "ünï", "a b;c", "../../x", "-q", "%2e"])
def test_a_branch_name_is_only_a_name(branch: str, scene: Scene) -> None:
    scene.github.pulls[PR]["head"]["label"] = f"stranger:{branch}"
    scene.github.runs[RUN]["head_branch"] = branch
    assert scene.comment() == 0
    assert scene.said().startswith(MARKER)


def test_a_run_by_hand_speaks_for_the_pull_request_in_its_title(scene: Scene) -> None:
    scene.github.run(RUN, "9" * 40, event="workflow_dispatch", display_title=f"greenlane for #{PR}")
    record = scene.story.record("cpu", scene.head())
    scene.github.artifact(RUN, "records-cpu", scene.archive(record))
    assert scene.comment() == 0
    assert [row.trust for row in scene.ledger.rows()] == ["runner"]
    assert scene.said().startswith(MARKER)


@pytest.mark.parametrize("title", ["greenlane", "for #12", "greenlane for #12 and #13", "greenlane for #0"])
def test_a_run_by_hand_for_no_pull_request_comments_nowhere(title: str, scene: Scene) -> None:
    scene.github.run(RUN, "9" * 40, event="workflow_dispatch", display_title=title)
    assert scene.comment() == 0
    assert scene.github.writes() == []


def test_a_forks_run_by_hand_is_not_believed(scene: Scene) -> None:
    scene.github.run(RUN, "9" * 40, event="workflow_dispatch", fork="stranger/r", display_title=f"greenlane for #{PR}")
    assert scene.comment() == 0
    assert scene.github.writes() == []


def test_the_title_of_a_pull_request_names_no_other(scene: Scene) -> None:
    scene.github.pull(99, "9" * 40)
    scene.github.runs[RUN]["display_title"] = "greenlane for #99"
    assert scene.comment() == 0
    assert list(scene.github.comments) == [PR]


def test_by_number_it_reviews_with_the_records_that_are_here(scene: Scene) -> None:
    assert scene.comment(run=False) == 0
    assert scene.said().startswith(MARKER)
    assert scene.comment(run=False) == 0
    assert len([request for request in scene.github.writes() if "comments" in request]) == 1


def test_records_of_the_teams_ref_are_the_baseline(scene: Scene) -> None:
    own(scene)
    scene.story.record("cpu", scene.story.heads["base"], "error: expected ';' after device_combine")
    from greenlane.ledger import ref

    ref.export(scene.story.ledger, scene.story.repository)
    git(scene.story.repository, "push", "-q", str(scene.server), ref.REF)
    red = scene.story.record("cpu", scene.head(), "error: expected ';' after device_combine", line=90)
    scene.github.artifact(RUN, "records-cpu", scene.archive(red))
    assert scene.comment() == 0
    assert "fails alike" in scene.said()


def test_another_open_pull_request_that_conflicts_is_named_by_its_number(scene: Scene) -> None:
    own(scene)
    story = scene.story
    story.branch("rival", "main")
    rival = story.commit("rival", {"src/attn.cpp": "one\ntwo\nIII\n"})
    git(story.repository, "push", "-q", str(scene.server), "HEAD:refs/pull/13/head")
    scene.github.pull(13, rival, branch="rival")
    assert scene.comment() == 0
    assert "`#13`, another open change, conflicts with this one in `src/attn.cpp`" in scene.said()
    assert "onto `main` `" in scene.said()


def test_another_pull_request_that_can_not_be_had_stops_nothing(scene: Scene) -> None:
    scene.github.pull(14, "c" * 40, branch="gone")
    assert scene.comment() == 0
    assert scene.said().startswith(MARKER)


def test_the_verdict_becomes_a_check_run(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    own(scene)
    red = scene.story.record("cpu", scene.head(), "error: expected 12 arguments, have 9")
    scene.github.artifact(RUN, "records-cpu", scene.archive(red))
    assert scene.comment("--verdict") == 0
    ((check,),) = scene.github.checks.values()
    assert (check["head_sha"], check["conclusion"], check["status"]) == (scene.head(), "failure", "completed")
    assert [(a["path"], a["start_line"], a["annotation_level"]) for a in check["output"]["annotations"]] == [
        ("src/attn.cpp", 3, "failure")
    ]
    assert check["details_url"] == scene.github.comments[PR][0]["html_url"]
    assert "check run 'greenlane verdict': failure" in capsys.readouterr().err


def test_a_persons_token_leaves_a_commit_status(scene: Scene) -> None:
    scene.github.may_make_checks = False
    assert scene.comment("--verdict") == 0
    (status,) = scene.github.statuses
    assert status["context"] == "greenlane verdict"
    assert status["sha"] == scene.head()
    assert status["state"] == "pending"  # nothing is red, and nothing is proven
    assert len(status["description"]) <= 140


def test_in_a_forks_own_run_the_comment_goes_to_the_summary(
    scene: Scene, environment: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(scene.clone, "fetch", "-q", "origin", f"refs/pull/{PR}/head:refs/pull/{PR}")
    pull = {
        "body": "", "head": {"sha": scene.head(), "repo": {"full_name": "stranger/r"}},
        "base": {"sha": scene.story.heads["base"], "repo": {"full_name": "o/r"}},
    }  # fmt: skip
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": pull}))
    environment(
        GITHUB_EVENT_NAME="pull_request", GITHUB_EVENT_PATH=str(tmp_path / "event.json"),
        GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"), GITHUB_TOKEN=TOKEN, GITHUB_API_URL=scene.github.url,
    )  # fmt: skip
    assert scene.comment(run=False) == 0
    assert scene.github.asked == []
    assert (tmp_path / "summary.md").read_text().startswith(MARKER)
    assert "its token may only read" in capsys.readouterr().err


def test_a_change_that_does_not_load_still_gets_a_comment(scene: Scene) -> None:
    scene.story.commit("broken", {"matrix.yaml": "lanes: [\n"})
    git(scene.story.repository, "push", "-qf", str(scene.server), f"HEAD:refs/pull/{PR}/head")
    broken = scene.story.heads["broken"]
    scene.github.pulls[PR]["head"]["sha"] = scene.github.runs[RUN]["head_sha"] = broken
    assert scene.comment("--verdict") == 0
    assert scene.said().startswith(MARKER)
    ((check,),) = scene.github.checks.values()
    assert check["conclusion"] == "failure"


def test_an_unreachable_repository_is_one_line(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.github.pulls[PR]["base"]["repo"]["clone_url"] = "file:///nowhere/at/all.git"
    assert scene.comment() == 3
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("address", ["ext::sh -c touch% pwned", "http://example.com/r.git", "--upload-pack=x", ""])
def test_an_address_that_is_not_https_is_not_fetched_from(
    address: str, scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.github.pulls[PR]["base"]["repo"]["clone_url"] = address
    assert scene.comment() == 3
    assert "not https" in capsys.readouterr().err


def test_neither_screen_nor_repository_holds_the_token(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.comment("--verdict")
    shown = capsys.readouterr()
    assert TOKEN not in shown.out + shown.err
    assert TOKEN not in (scene.clone / ".git" / "config").read_text()
    assert [token for path, token in scene.github.tokens if path.startswith("/blob/")] == []


def test_the_store_of_artifacts_gets_no_token(scene: Scene) -> None:
    scene.github.artifact(RUN, "records-cpu", scene.archive(scene.story.record("cpu", scene.head())))
    scene.comment()
    assert [token for path, token in scene.github.tokens if path.startswith("/blob/")] == [""]


def test_the_author_is_the_workflows_bot(scene: Scene) -> None:
    scene.comment()
    assert scene.github.comments[PR][0]["user"]["login"] == BOT
