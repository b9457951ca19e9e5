"""The story of DESIGN.md section 1, told with real commits and lanes: what the reviewer reads at each step."""

from __future__ import annotations

import contextlib
import difflib
import io
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from greenlane.errors import LaneRed
from greenlane.lanes.worktree import of_merge
from tests.story.steps import STEPS, Comment, main_branch
from tests.story.telling import HERE, Telling, normalised

GOLDEN = HERE / "golden"
NEW = ("cpu", "cuda-sm_80", "cuda-sm_90", "rocm-gfx1100", "rocm-gfx1151", "rocm-gfx1201")
GPU, ROCM = NEW[1:], NEW[3:]

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the story's lanes are compiled by g++")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Telling, dict[str, Comment]]]:
    telling = Telling(tmp_path_factory.mktemp("story") / "engine")
    with contextlib.redirect_stdout(io.StringIO()):
        main_branch(telling)
        comments = {name: step(telling) for name, step in STEPS.items()}
    yield telling, comments


@pytest.fixture
def comments(told: tuple[Telling, dict[str, Comment]]) -> dict[str, Comment]:
    return told[1]


def lane(comment: Comment, name: str) -> str:
    """The row of a lane in the lane table."""
    [row] = re.findall(rf"^\| `{name}` \| .*[🟢🔴🟠🟤⚪].*$", comment.text, re.MULTILINE)
    return spaced(str(row))


def spaced(text: str) -> str:
    """With plain spaces behind the signs, where the comment has some that don't break."""
    return text.replace("\u00a0", " ")


def finding(comment: Comment, rule: str, place: str) -> str:
    lines = [line for line in comment.text.splitlines() if line.startswith("- ") and f"`{rule}` " in line]
    [line] = [line for line in lines if f"`{place}`" in line]
    return line


def lanes_in(line: str) -> list[str]:
    return re.findall(r"`([\w-]+)`", line.rpartition(" — in ")[2])


def claim(comment: Comment, start: str) -> str:
    [row] = [line for line in comment.text.splitlines() if line.startswith(f"| {start}")]
    return spaced(row)


@pytest.mark.parametrize("step", STEPS)
def test_a_reviewer_reads_what_was_approved(step: str, told: tuple[Telling, dict[str, Comment]]) -> None:
    telling, comments = told
    shown = normalised(comments[step].text, telling.commits)
    golden = (GOLDEN / f"{step}.md").read_text()
    lines = difflib.unified_diff(
        golden.splitlines(), shown.splitlines(), f"golden/{step}.md", "as told now", lineterm=""
    )
    assert shown == golden, "\n".join(("what is meant goes into the golden by hand:", *lines))


def test_1_a_wrapper_of_nine_parameters_is_red_in_every_lane_that_calls_it_with_twelve(
    comments: dict[str, Comment],
) -> None:
    for place in ("src/runner.cpp:45", "src/runner.cpp:51"):
        line = finding(comments["1-port"], "call-arity", place)
        assert "is given 12 arguments, but takes 9" in line
        assert lanes_in(line) == list(GPU)


def test_2_a_doubled_guard_lets_a_cuda_header_into_the_rocm_lanes(comments: dict[str, Comment]) -> None:
    assert lanes_in(finding(comments["1-port"], "guard-doubled", "src/runner.cpp:11")) == list(NEW)
    line = finding(comments["1-port"], "foreign-include", "src/runner.cpp:12")
    assert "cuda" in line and lanes_in(line) == list(ROCM)


def test_3_helpers_without_a_caller_are_red_on_the_cpu_alone(comments: dict[str, Comment]) -> None:
    for place in ("src/runner.cpp:22", "src/runner.cpp:24"):
        assert lanes_in(finding(comments["1-port"], "unused-function", place)) == ["cpu"]


def test_4_dead_code_that_passes_every_test_is_red_in_the_reach_gate(comments: dict[str, Comment]) -> None:
    assert "never reached here" in finding(comments["1-port"], "mirror-parity", "src/rocm/platform.cpp:27")
    half = comments["2-half-fix"]
    assert half.code == 1
    assert "`rocm-gfx1100`, `rocm-gfx1151`, `rocm-gfx1201`: new-red in reach" in half.text
    assert "never launched: dead code in this lane" in half.text
    for name in ROCM:
        assert "🔴 new-red" in lane(half, name) and "`built`" in lane(half, name)
    for name in ("cpu", "cuda-sm_80", "cuda-sm_90"):
        assert "🟢 green" in lane(half, name)


def test_5_claims_measured_on_an_older_head_certify_nothing_about_this_one(
    told: tuple[Telling, dict[str, Comment]],
) -> None:
    telling, comments = told
    early = telling.commits["early"][:10]
    for start in ("ON == OFF", "token\\-identical on sm\\_90"):
        row = claim(comments["1-port"], start)
        assert "⏳ stale" in row and f"proven for {early}, not for this commit" in row
    built = claim(comments["1-port"], "Builds clean")
    assert "❔ unproven" in built and f"sm\\_90: proven for {early}, not for this commit" in built
    assert "❔ unproven" in claim(comments["1-port"], "Performance is a wash")
    assert "⚠️ too early" in claim(comments["1-port"], "Closes")
    assert "✅ proven" in claim(comments["2-half-fix"], "Builds clean")


def test_6_new_reds_are_told_from_those_that_main_had_already(comments: dict[str, Comment]) -> None:
    port = comments["1-port"]
    assert "## 🔴 6 lanes are red by this change (2 more were red before it)" in port.text
    assert {name for name in (*NEW, "tools", "tools-static") if "🔴 new-red" in lane(port, name)} == set(NEW)
    assert "🟤 red-on-base" in lane(port, "tools")
    assert "🟤 known-red" in lane(port, "tools-static")
    assert "owned by grace" in port.text


def test_7_a_conflict_names_the_file_and_the_line_that_the_change_edits(
    told: tuple[Telling, dict[str, Comment]],
) -> None:
    telling, comments = told
    moved = comments["4-main-moves"]
    assert moved.code == 1
    assert "## 🔴 Conflicts with `main` in `src/runner.cpp`: the author has to rebase" in moved.text
    [number] = re.findall(r"- `src/runner\.cpp` line (\d+) of this change", moved.text)
    lines = telling.file_at("fix", "src/runner.cpp").splitlines()
    assert lines[int(number) - 2].startswith("void Runner::fill_input_ids(")
    assert not re.search(r"^\| `[\w-]+` \| 🟢", moved.text, re.MULTILINE), "no lane ran on a merge that is there now"
    assert "Conflicts with" not in comments["5-rebase"].text


def test_7_no_lane_runs_on_a_merge_that_there_is_not(told: tuple[Telling, dict[str, Comment]], tmp_path: Path) -> None:
    telling, _ = told
    telling.branch("again", telling.commits["fix"])
    with (
        pytest.raises(LaneRed, match=r"HEAD conflicts with .* in src/runner\.cpp"),
        of_merge(telling.root, tmp_path, telling.commits["moved"]),
    ):
        pass
    telling.branch("change")


def test_8_a_run_on_the_sibling_card_does_not_prove_the_target(comments: dict[str, Comment]) -> None:
    fix = comments["3-fix"]
    assert fix.code == 4
    assert "## ⚪ Nothing is red, but `rocm-gfx1100` is not proven: somebody has to run it" in fix.text
    assert "`ran-on-family` (`gfx1151`)" in lane(fix, "rocm-gfx1100")
    assert "needs `ran-on-target`" in lane(fix, "rocm-gfx1100")
    assert "🟢 green" in lane(fix, "rocm-gfx1151") and "`ran-on-target` (`gfx1151`)" in lane(fix, "rocm-gfx1151")
    assert "proven on another device" in claim(fix, "Token\\-exact on gfx1100")
    assert "✅ proven" in claim(fix, "Token\\-exact on gfx1151")
    end = comments["6-target"]
    assert end.code == 0
    assert "`ran-on-target` (`gfx1100`)" in lane(end, "rocm-gfx1100")
    assert "✅ proven" in claim(end, "Token\\-exact on gfx1100")


def test_9_a_campaign_label_is_no_row_of_the_matrix(comments: dict[str, Comment]) -> None:
    assert "Row names 'PERF\\-CAMPAIGN\\-3', which no lane of the matrix carries" in comments["1-port"].text
    assert "the field 'Tested on' is missing" in comments["1-port"].text
    assert "✅ proven" in claim(comments["3-fix"], "Row: PORT\\-ROCM")
    assert "The pull request's text" not in comments["3-fix"].text


def test_a_strangers_own_run_is_shown_and_proves_nothing(told: tuple[Telling, dict[str, Comment]]) -> None:
    telling, _ = told
    telling.branch("stranger", "main")
    (telling.root / "notes.txt").write_text("from another repository\n")
    telling.commit("stranger", "A note")
    with contextlib.redirect_stdout(io.StringIO()):
        assert telling.run("cpu", by="fork", merge=True) == 0
    shown = Comment(*telling.review("Builds clean on cpu.\n\nRow: PORT-CPU\nTested on: a desk\n"))
    telling.branch("change")
    assert shown.code == 4
    assert "⚪ not-run" in lane(shown, "cpu") and "_by the fork_" in lane(shown, "cpu")
    assert "only the fork's own run says so" in claim(shown, "Builds clean")
