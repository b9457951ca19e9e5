"""The gate fails unless every required lane is green, and is itself tried by taking away what it needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from greenlane import cli
from greenlane.ledger import Ledger, ref
from greenlane.matrix.model import Evidence
from greenlane.record.git import git
from tests.review.conftest import MATRIX, Story

PROVEN = (Evidence.CHECKED, Evidence.BUILT)
ERROR = "error: no matching function for call to device_combine"


@dataclass
class Run:
    """A run's job: a clone at the change's head, and the records that its lanes have uploaded."""

    story: Story
    records: Path
    environment: Callable[..., None]

    def record(self, lane: str, commit: str = "change", error: str | None = None, **changes: object) -> None:
        name = self.story.record(lane, self.story.heads[commit], error, **changes)  # type: ignore[arg-type]
        folder = self.records / f"records-{lane}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_bytes(self.story.ledger.raw(name))

    def gate(self, *more: str, base: str | None = "main") -> int:
        matrix = self.story.repository / "matrix.yaml"
        judged = ("--base", base) if base else ()
        return cli.main(["ci", "gate", "--matrix", str(matrix), "--records", str(self.records), *judged, *more])

    def is_a(self, event: str, **content: object) -> None:
        path = self.records.parent / "event.json"
        path.write_text(json.dumps(content))
        self.environment(GITHUB_ACTIONS="true", GITHUB_EVENT_NAME=event, GITHUB_EVENT_PATH=str(path))


@pytest.fixture
def run(tmp_path: Path, environment: Callable[..., None]) -> Run:
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    story = Story(repository, Ledger(tmp_path / "elsewhere"))
    story.commit("base", {"matrix.yaml": MATRIX, "src/attn.cpp": "one\n", ".gitignore": ".greenlane/\n"})
    story.branch("change", "main")
    story.commit("change", {"src/attn.cpp": "two\n"})
    made = Run(story, tmp_path / "records", environment)
    made.is_a("push")
    return made


LANES = ("cpu", "rocm-gfx1100", "rocm-gfx1151")


def test_it_passes_when_every_required_lane_reached_what_it_requires(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    for lane in LANES:
        run.record(lane)
    assert run.gate() == 0
    assert "3 of 3 required lanes do not block" in capsys.readouterr().out


@pytest.mark.parametrize("missing", LANES)
def test_it_fails_when_a_lane_left_no_record(missing: str, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for lane in LANES:
        if lane != missing:
            run.record(lane)
    assert run.gate() == 4
    assert f"BLOCKS  {missing}: not-run" in capsys.readouterr().out


def test_it_fails_when_there_is_no_record_at_all(run: Run) -> None:
    assert run.gate() == 4


def test_it_fails_when_a_lane_is_red(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for lane in LANES:
        run.record(lane, error=ERROR if lane == "cpu" else None)
    assert run.gate() == 1
    assert capsys.readouterr().out.startswith("BLOCKS  cpu: ")


def test_it_fails_when_a_lane_did_not_reach_what_it_requires(run: Run) -> None:
    for lane in LANES:
        run.record(lane, evidence=PROVEN[: 1 if lane == "cpu" else 2])
    assert run.gate() == 4


def test_it_fails_on_a_record_of_another_commit(run: Run) -> None:
    for lane in LANES:
        run.record(lane, commit="base" if lane == "cpu" else "change")
    assert run.gate() == 4


def test_a_red_of_the_base_that_the_run_itself_reran_excuses_it(run: Run) -> None:
    for lane in LANES:
        run.record(lane, error=ERROR if lane == "cpu" else None, file="src/norm.cpp")
    run.record("cpu", commit="base", error=ERROR, file="src/norm.cpp")
    assert run.gate() == 0


def test_records_of_any_other_commit_are_refused(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run.story.branch("elsewhere", "main")
    run.story.commit("elsewhere", {"src/attn.cpp": "three\n"})
    run.story.branch("change")
    run.record("cpu", commit="elsewhere")
    assert run.gate() == 4
    assert "refused: " in capsys.readouterr().err


def test_it_fails_on_a_forks_own_word(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for lane in LANES:
        run.record(lane)
    repo = {"full_name": "stranger/r"}
    run.is_a("pull_request", pull_request={"head": {"repo": repo}, "base": {"repo": {"full_name": "o/r"}}})
    assert run.gate() == 4
    assert "a trusted run has to confirm it" in capsys.readouterr().out


def test_a_change_that_frees_its_own_lane_is_still_judged_by_the_base(run: Run) -> None:
    loose = MATRIX.replace("require: [checked, built]", "require: [checked]") + "required: [rocm-gfx1151]\n"
    run.story.commit("loosened", {"matrix.yaml": loose})
    run.story.heads["change"] = run.story.heads["loosened"]
    run.record("rocm-gfx1151")
    assert run.gate() == 4


def test_a_lane_that_the_change_removes_is_still_required(run: Run) -> None:
    run.story.commit("removed", {"matrix.yaml": MATRIX.replace("arch: [gfx1100, gfx1151]", "arch: [gfx1100]")})
    run.story.heads["change"] = run.story.heads["removed"]
    for lane in LANES[:2]:
        run.record(lane)
    assert run.gate() != 0


def test_a_matrix_that_does_not_load_is_never_a_pass(run: Run) -> None:
    run.story.commit("broken", {"matrix.yaml": "lanes: [\n"})
    assert run.gate() != 0


def test_a_push_is_not_excused_by_its_own_red(run: Run) -> None:
    for lane in LANES:
        run.record(lane, error=ERROR if lane == "cpu" else None)
    assert run.gate(base=None) == 1


def test_the_first_commit_of_all_is_not_excused_by_its_own_red(run: Run) -> None:
    run.story.branch("main")
    for lane in LANES:
        run.record(lane, commit="base", error=ERROR if lane == "cpu" else None)
    assert run.gate(base=None) == 1


def test_a_red_that_the_teams_records_know_of_the_base_does_not_block(
    run: Run, environment: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = Ledger(tmp_path / "teams")
    known.put_bytes(run.story.ledger.raw(run.story.record("cpu", run.story.heads["base"], ERROR)))
    server = tmp_path / "server" / "o"
    server.mkdir(parents=True)
    git(tmp_path, "clone", "-q", "--bare", str(run.story.repository), str(server / "r.git"))
    ref.export(known, server / "r.git")
    for lane in LANES:
        run.record(lane, error=ERROR if lane == "cpu" else None, file="src/norm.cpp")
    environment(GITHUB_TOKEN="t", GITHUB_SERVER_URL=f"file://{tmp_path}/server", GITHUB_REPOSITORY="o/r")
    assert run.gate() == 0
    assert "cpu: red-on-base" in capsys.readouterr().out


def test_without_a_reachable_ledger_a_red_is_the_changes_own(run: Run, environment: Callable[..., None]) -> None:
    for lane in LANES:
        run.record(lane, error=ERROR if lane == "cpu" else None)
    environment(GITHUB_TOKEN="t", GITHUB_SERVER_URL="file:///nowhere", GITHUB_REPOSITORY="o/r")
    assert run.gate() == 1


def test_a_text_that_lacks_what_the_base_asks_for_blocks_a_pull_request_and_no_push(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run.story.branch("main")
    run.story.commit("asks", {"matrix.yaml": MATRIX + "checks: {record: {fields: [Row]}}\n"})
    run.story.branch("change", "main")
    run.story.commit("change", {"src/attn.cpp": "three\n"})
    for lane in LANES:
        run.record(lane)
    assert run.gate(base=None) == 0
    repo = {"full_name": "o/r"}
    pull = {"body": "ported", "head": {"repo": repo}, "base": {"repo": repo}}
    run.is_a("pull_request", pull_request=pull)
    assert run.gate() == 1
    assert "BLOCKS  the pull request's text: " in capsys.readouterr().out
    run.is_a("pull_request", pull_request=pull | {"body": "Row: BACKEND-CPU, BACKEND-ROCM"})
    assert run.gate() == 0


def test_it_needs_a_folder_and_a_commit(run: Run) -> None:
    matrix = str(run.story.repository / "matrix.yaml")
    assert cli.main(["ci", "gate", "--matrix", matrix]) == 2
    assert run.gate("--head", "nowhere") == 2
    assert run.gate(base="nowhere") == 2
