"""Somebody who controls a fork, its branch and its artifacts tries to get a green lane that nobody ran."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from greenlane.ledger import Ledger
from greenlane.ledger.artifacts import take
from greenlane.ledger.store import canonical
from greenlane.matrix.model import Evidence, Stage
from greenlane.record.fingerprint import fingerprint
from greenlane.record.git import git
from greenlane.record.model import Outcome, StageResult
from greenlane.report.comment import render
from greenlane.review.model import ClaimState, Verdict
from tests.review.conftest import MATRIX, NOW, Story

ERROR = "too few arguments to `device_combine`: expected 12, have 9"
TARGET = "{lanes: rocm-gfx1100, require: [checked, built, ran-on-target]}"
LANES = ("cpu", "rocm-gfx1100", "rocm-gfx1151")
EXACT = (Evidence.CHECKED, Evidence.BUILT, Evidence.RAN_ON_TARGET, Evidence.EXACT)
Edit = Callable[[str, str], str]


def run_all(story: Story, head: str, **changes: object) -> None:
    for lane in LANES:
        story.record(lane, head, **changes)  # type: ignore[arg-type]


def index_of(story: Story) -> sqlite3.Connection:
    return sqlite3.connect(story.ledger.index.path)


# ---- by records


def test_a_record_that_calls_itself_a_runners_is_a_forks_when_it_comes_from_one(story: Story, tmp_path: Path) -> None:
    run_all(story, story.heads["change"], trust="runner")
    forged = [canonical(record) for _, record in story.ledger.records()]
    story.ledger = Ledger(tmp_path / "other")
    (tmp_path / "artifact").mkdir()
    for number, content in enumerate(forged):
        (tmp_path / "artifact" / f"{number}.json").write_bytes(content)
    assert take(story.ledger, tmp_path / "artifact", None) == (3, [])
    told = story.review()
    assert {lane.verdict for lane in told.lanes} == {Verdict.NOT_RUN}
    assert told.exit_code == 4
    assert "🟢" not in render(told)


def test_an_artifact_speaks_for_its_own_commit_alone(story: Story, tmp_path: Path) -> None:
    run_all(story, story.heads["base"])
    (tmp_path / "artifact").mkdir()
    for number, (_, record) in enumerate(story.ledger.records()):
        (tmp_path / "artifact" / f"{number}.json").write_bytes(canonical(record))
    other = Ledger(tmp_path / "other")
    taken, refused = take(other, tmp_path / "artifact", "runner", frozenset({story.heads["change"]}))
    assert (taken, len(refused)) == (0, 3)
    assert "which this run was not to speak for" in refused[0]


@pytest.mark.parametrize("trick", ["red-on-base", "known-red"])
def test_a_forged_old_red_does_not_excuse_a_lane_that_nobody_ran(story: Story, edited: Edit, trick: str) -> None:
    dates = "owner: ann, since: 2026-03-01, expires: 2026-04-01"
    known = f"known_red: [{{lane: '*', stage: build, fingerprint: {fingerprint(ERROR)}, {dates}}}]\n"
    story.branch("main")
    base = story.commit("rules", {"matrix.yaml": edited("", "") + (known if trick == "known-red" else "")})
    story.branch("change", "main")
    head = story.commit("again", {"src/attn.cpp": "changed\n"})
    run_all(story, base, error=ERROR, file="src/norm.cpp")
    run_all(story, head, error=ERROR, file="src/norm.cpp", trust="fork")
    told = story.review()
    assert {lane.verdict for lane in told.lanes} == {Verdict.NOT_RUN}
    assert told.exit_code == 4
    assert trick in told.lanes[0].reason


def test_evidence_that_no_stage_shows_is_not_believed(story: Story) -> None:
    stages = (StageResult(stage=Stage.CHECK, outcome=Outcome.PASS),)
    story.record("cpu", story.heads["change"], stages=stages, evidence=EXACT)
    lane = story.lane("cpu")
    assert (lane.verdict, lane.evidence) == (Verdict.NOT_RUN, ("checked",))
    assert "none of its stages shows" in lane.reason


@pytest.mark.parametrize("outcome", [Outcome.NOT_RUN, Outcome.BLOCKED, Outcome.INERT, Outcome.FAIL])
def test_a_stage_that_did_not_pass_backs_no_evidence(story: Story, outcome: Outcome) -> None:
    stages = (StageResult(stage=Stage.CHECK, outcome=Outcome.PASS), StageResult(stage=Stage.BUILD, outcome=outcome))
    story.record("cpu", story.heads["change"], stages=stages, evidence=EXACT, outcome=Outcome.PASS)
    assert story.lane("cpu").verdict is not Verdict.GREEN


def test_a_record_whose_outcome_is_red_is_not_green_for_its_stages(story: Story) -> None:
    story.record("cpu", story.heads["change"], outcome=Outcome.FAIL)
    assert story.lane("cpu").verdict is Verdict.UNCLASSIFIED


def test_a_record_from_the_future_hides_no_red(story: Story) -> None:
    story.record("cpu", story.heads["base"])
    story.record("cpu", story.heads["change"], ERROR)
    story.record("cpu", story.heads["change"], started=(NOW + timedelta(days=9)).isoformat())
    assert story.lane("cpu").verdict is Verdict.NEW_RED
    story.record("rocm-gfx1100", story.heads["change"], started="9999-12-31T23:59:59Z")
    lane = story.lane("rocm-gfx1100")
    assert lane.verdict is Verdict.NOT_RUN
    assert "a clock is wrong" in lane.reason


def test_another_time_zone_is_no_later_start(story: Story) -> None:
    story.record("cpu", story.heads["change"], started="2026-03-09T23:00:00+14:00")
    story.record("cpu", story.heads["change"], ERROR, started="2026-03-09T20:00:00+00:00")
    assert story.lane("cpu").verdict is not Verdict.GREEN


def test_a_claim_is_not_proven_by_the_forks_own_word(story: Story) -> None:
    story.record("rocm-gfx1100", story.heads["change"], evidence=EXACT, trust="fork")
    [claim] = story.review(body="Token-exact on gfx1100").claims
    assert claim.state is ClaimState.UNPROVEN
    assert "only the fork's own run says so" in claim.reason
    story.commit("newer")
    [claim] = story.review(body="Token-exact on gfx1100").claims
    assert claim.state is ClaimState.UNPROVEN


def test_a_run_on_the_sibling_does_not_prove_a_claim_about_the_target(story: Story) -> None:
    evidence = (Evidence.CHECKED, Evidence.BUILT, Evidence.RAN_ON_FAMILY, Evidence.EXACT)
    story.record("rocm-gfx1100", story.heads["change"], evidence=evidence)
    [claim] = story.review(body="Token-exact on gfx1100").claims
    assert claim.state is ClaimState.OTHER_DEVICE


def test_a_forks_run_is_not_the_last_one_on_the_target(story: Story) -> None:
    story.record("rocm-gfx1100", story.heads["change"], evidence=EXACT, trust="fork")
    story.commit("newer")
    assert story.lane("rocm-gfx1100").last_run is None


def test_many_large_records_of_one_lane_are_not_all_read(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(60):
        story.record("cpu", story.heads["change"], trust="fork", duration_s=float(number))
    story.record("cpu", story.heads["change"])
    read, honest = [], story.ledger.get
    monkeypatch.setattr(story.ledger, "get", lambda name: (read.append(name), honest(name))[1])
    assert story.lane("cpu").verdict is Verdict.GREEN
    assert len(read) <= 20


# ---- by the content of records


HOSTILE = [
    {"comparisons": 5},
    {"comparisons": [1, None, {"name": None, "positions": "many"}]},
    {"metrics": [1, 2]},
    {"metrics": {"decode": {"interval": ["a", None], "median": "x"}}},
    {"metrics": {"decode": {"interval": [True, False], "verdict": {"a": 1}}}},
    {"metrics": {"<b>|`@all": {"median": 1e308, "unit": "|\n|"}}},
]


@pytest.mark.parametrize("measurements", HOSTILE)
@pytest.mark.parametrize("stage", [Stage.EXACT, Stage.BENCH])
def test_measurements_of_any_shape_are_rendered(story: Story, stage: Stage, measurements: dict[str, object]) -> None:
    result = StageResult(stage=stage, outcome=Outcome.PASS, measurements=measurements)
    stages = (StageResult(stage=Stage.CHECK, outcome=Outcome.PASS), result)
    story.record(
        "rocm-gfx1100",
        story.heads["change"],
        stages=stages,
        evidence=(Evidence.CHECKED, Evidence.EXACT, Evidence.BENCHED),
    )
    told = story.review(body="ON == OFF on gfx1100, +12 % on gfx1100, a wash on gfx1100")
    shown = render(told)
    assert "<b>" not in shown.replace("<b\\>", "")
    json.dumps(told.to_json(), allow_nan=False)


def test_a_red_of_a_strange_age_is_told_without_one(story: Story) -> None:
    for commit in ("base", "change"):
        story.record("cpu", story.heads[commit], ERROR, file="src/norm.cpp", started="")
    assert story.lane("cpu").age_days is None


# ---- by the index


@pytest.mark.parametrize(
    "edit",
    [
        "update records set head = '{head}'",
        "update records set head = '{head}', trust = 'runner', dirty = 0",
        "update records set started = '2026-03-10T00:00:00Z', head = '{head}', lane_digest = lane_digest",
        "update records set evidence = 'checked built tested', head = '{head}'",
    ],
)
def test_an_index_edited_by_hand_makes_nothing_green(story: Story, edit: str) -> None:
    run_all(story, story.heads["base"])
    with index_of(story) as connection:
        connection.execute(edit.format(head=story.heads["change"]))
    told = story.review()
    assert {lane.verdict for lane in told.lanes} == {Verdict.NOT_RUN}
    assert "ledger reindex" in told.lanes[0].reason


@pytest.mark.parametrize("table", ["records", "stages"])
def test_a_red_taken_out_of_the_index_comes_back(story: Story, table: str) -> None:
    story.record("cpu", story.heads["base"])
    story.record("cpu", story.heads["change"])
    red = story.record("cpu", story.heads["change"], ERROR)
    column = "id" if table == "records" else "record"
    with index_of(story) as connection:
        connection.execute(f"delete from {table} where {column} = ?", (red,))
    assert story.lane("cpu").verdict is not Verdict.GREEN


def test_a_base_red_invented_in_the_index_excuses_nothing(story: Story) -> None:
    green = story.record("cpu", story.heads["base"])
    story.record("cpu", story.heads["change"], ERROR, file="src/norm.cpp")
    with index_of(story) as connection:
        connection.execute(
            "update stages set outcome = 'fail', fingerprint = ? where record = ?", (fingerprint(ERROR), green)
        )
    assert story.lane("cpu").verdict.blocks


def test_words_that_no_stage_ends_with_are_no_sighting(story: Story) -> None:
    story.record("cpu", story.heads["base"], ERROR, file="src/norm.cpp")
    story.record("cpu", story.heads["change"], ERROR, file="src/norm.cpp")
    with index_of(story) as connection:
        connection.execute("update stages set outcome = 'great' where head = ?", (story.heads["base"],))
    assert story.lane("cpu").verdict is Verdict.UNCLASSIFIED


def test_a_damaged_index_is_made_again_from_the_files(story: Story) -> None:
    story.record("cpu", story.heads["change"])
    with index_of(story) as connection:
        connection.execute("drop table stages")
    assert story.lane("cpu").verdict is Verdict.GREEN


def test_a_record_in_the_files_that_the_index_lost_is_found(story: Story) -> None:
    name = story.record("cpu", story.heads["change"])
    story.ledger.index.remove([name])
    assert story.lane("cpu").verdict is Verdict.GREEN


# ---- by history


def test_a_change_without_a_common_history_is_judged_by_the_bases_rules(story: Story) -> None:
    git(story.repository, "checkout", "-q", "--orphan", "island")
    lax = MATRIX.replace("require: [checked, built]", "require: [checked]").replace("[gfx1100, gfx1151]", "[gfx1100]")
    head = story.commit("island", {"matrix.yaml": lax})
    for lane in ("cpu", "rocm-gfx1100"):
        story.record(lane, head, evidence=(Evidence.CHECKED,))
    told = story.review(head="island")
    assert told.merge.state == "unknown"
    assert {lane.id: lane.required for lane in told.lanes} == dict.fromkeys(LANES, True)
    assert all(lane.missing for lane in told.lanes)
    assert told.exit_code == 3
    assert "🟢 All" not in render(told)


def test_green_lanes_do_not_make_an_unknown_merge_green(story: Story) -> None:
    git(story.repository, "checkout", "-q", "--orphan", "island")
    run_all(story, story.commit("island", {"matrix.yaml": MATRIX}))
    told = story.review(head="island")
    assert {lane.verdict for lane in told.lanes} == {Verdict.GREEN}
    assert told.exit_code == 3
    assert render(told).splitlines()[2].startswith("## ⚪ Nobody can say whether this merges")


def test_a_force_push_leaves_the_old_heads_records_behind(story: Story) -> None:
    run_all(story, story.heads["change"])
    story.branch("change", "main")
    story.commit("forced", {"src/attn.cpp": "another\n"})
    told = story.review()
    assert {(lane.verdict, lane.stale, lane.commit) for lane in told.lanes} == {
        (Verdict.NOT_RUN, True, story.heads["change"])
    }


def test_a_deleted_branch_is_still_reviewed_by_its_commit(story: Story) -> None:
    run_all(story, story.heads["change"])
    story.branch("main")
    git(story.repository, "branch", "-q", "-D", "change")
    assert story.review(head=story.heads["change"]).exit_code == 0


def test_a_shallow_clone_says_that_it_has_not_seen_everything(story: Story, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=2", "--no-single-branch", story.repository.as_uri(), str(clone))
    git(clone, "branch", "-q", "main", "origin/main")
    story.repository = clone
    told = story.review()
    assert told.merge.state == "clean"
    assert any("shallow" in note for note in told.notes)


def test_a_red_that_the_base_has_mended_is_not_the_bases(story: Story) -> None:
    """A change that brings an old fault back is not excused by commits before the repair."""
    story.branch("main")
    for name in ("first", "second"):
        story.record("cpu", story.commit(name), ERROR, file="src/norm.cpp")
    story.record("cpu", story.commit("mended"))
    story.branch("change", "main")
    story.record("cpu", story.commit("again", {"src/attn.cpp": "changed\n"}), ERROR, file="src/norm.cpp")
    lane = story.lane("cpu")
    assert lane.verdict is Verdict.NEW_RED


# ---- by the matrix


def test_a_change_that_breaks_its_matrix_is_told_so_and_no_lane_is_green(story: Story) -> None:
    run_all(story, story.heads["change"])
    head = story.commit("broken", {"matrix.yaml": "lanes: [\n"})
    old = [record for _, record in story.ledger.records(head=story.heads["change"])]
    for record in old:
        story.ledger.put(record.model_copy(update={"head": head}))
    told = story.review()
    assert told.exit_code == 2
    assert {lane.verdict for lane in told.lanes} == {Verdict.NOT_RUN}
    assert "The matrix cannot be read" in render(told)


def test_a_change_that_deletes_its_matrix_is_told_so(story: Story) -> None:
    (story.repository / "matrix.yaml").unlink()
    story.commit("gone")
    told = story.review()
    assert (told.exit_code, told.broken is not None) == (2, True)


def test_a_change_that_brings_the_first_matrix_is_not_its_own_judge_in_silence(story: Story) -> None:
    story.branch("main")
    (story.repository / "matrix.yaml").unlink()
    story.commit("without a matrix")
    story.branch("change", "main")
    head = story.commit("first", {"matrix.yaml": MATRIX})
    run_all(story, head)
    told = story.review()
    assert told.exit_code == 0
    assert render(told).splitlines()[2].startswith("## 🟠 All 3 required lanes")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("compiler: hipcc, device: amd,", "compiler: hipcc,"),
        ("vendors: [hip]}", "vendors: [hip], archs: {gfx1100: {targets: [gfx1151]}}}"),
    ],
)
def test_a_change_that_moves_its_target_has_not_run_on_it(story: Story, edited: Edit, before: str, after: str) -> None:
    story.branch("main")
    story.commit(
        "rules",
        {
            "matrix.yaml": edited(
                "arch: [gfx1100, gfx1151]}",
                f"arch: [gfx1100, gfx1151]}}\n  overrides:\n    - {TARGET}",
            )
        },
    )
    story.branch("change", "main")
    moved = (story.repository / "matrix.yaml").read_text().replace(before, after)
    head = story.commit("moved", {"matrix.yaml": moved})
    story.record("rocm-gfx1100", head, evidence=(*EXACT[:3], Evidence.TESTED))
    lane = story.lane("rocm-gfx1100")
    assert lane.verdict is Verdict.NOT_RUN
    assert "target" in lane.reason
    assert any("rocm" in change.what and change.loosens for change in story.review().policy_changes)


def test_a_change_of_the_commands_is_told_in_the_first_line(story: Story, edited: Edit) -> None:
    head = story.commit("lax", {"matrix.yaml": edited("test: [ctest]", "test: ['true']")})
    run_all(story, head)
    told = story.review()
    assert any("stages.test" in change.what for change in told.policy_changes)
    title = render(told).splitlines()[2]
    assert title.startswith("## 🟠 All 3 required lanes are proven at this commit")
    assert title.endswith("this change sets or loosens its own rules, which a maintainer has to agree to")


def test_a_change_that_turns_a_check_off_is_not_checked_by_its_own_rules(story: Story, edited: Edit) -> None:
    head = story.commit("off", {"matrix.yaml": edited("", "") + "checks: {off: [call-arity]}\n"})
    story.record("cpu", head)
    lane = story.lane("cpu")
    assert (lane.verdict, lane.missing) == (Verdict.NOT_RUN, ("checked",))
    assert "run it with --base" in lane.reason
    story.record("cpu", head, base=story.heads["base"])
    assert story.lane("cpu").verdict is Verdict.GREEN


def test_an_edit_of_many_lanes_is_one_line(story: Story, edited: Edit) -> None:
    story.commit("lax", {"matrix.yaml": edited("test: [ctest]", "test: ['true']")})
    [change] = [change for change in story.review().policy_changes if "stages.test" in change.what]
    assert change.what.startswith("cpu, rocm-gfx1100, rocm-gfx1151: ")


# ---- by names


def test_a_file_name_that_is_no_text_is_shown_and_printed(story: Story) -> None:
    name = b"src/\xff\n@all`|.cpp".decode("utf-8", "surrogateescape")
    for branch, text in (("main", "one\n"), ("change", "two\n")):
        story.branch(branch)
        (story.repository / name).write_text(text)
        story.commit(f"odd on {branch}")
    told = story.review()
    assert told.merge.state == "conflict"
    json.dumps(told.to_json(), ensure_ascii=False).encode()
    assert "@all" not in render(told).replace("`", "").replace("@\u200ball", "") or "``" in render(told)


def test_a_ledger_that_is_gone_is_no_ledger_of_greens(story: Story) -> None:
    run_all(story, story.heads["change"])
    shutil.rmtree(story.ledger.root / "records")
    assert {lane.verdict for lane in story.review().lanes} == {Verdict.NOT_RUN}


def test_records_of_a_lane_that_differ_in_the_merge_do_not_speak(story: Story) -> None:
    run_all(story, story.heads["change"], merge_tree="f" * 40)
    for lane in story.review().lanes:
        assert lane.verdict is Verdict.NOT_RUN
        assert "the merge with" in lane.reason
