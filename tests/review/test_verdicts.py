"""Whose red is it? Innocence needs evidence; everything else blocks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from greenlane.ledger.store import Ledger
from greenlane.matrix.model import Evidence, Stage
from greenlane.record.model import Finding, FirstError, Outcome, StageResult
from greenlane.report.comment import render
from greenlane.review.model import Verdict
from tests.review.conftest import NOW, Story

ERROR = "too few arguments to `device_combine`: expected 12, have 9"
Edit = Callable[[str, str], str]


def test_a_lane_that_reached_what_it_requires_is_green(story: Story) -> None:
    story.record("cpu", story.heads["change"])
    lane = story.lane("cpu")
    assert (lane.verdict, lane.evidence, lane.missing) == (Verdict.GREEN, ("checked", "built", "tested"), ())


def test_a_lane_nobody_ran_is_not_green(story: Story) -> None:
    lane = story.lane("cpu")
    assert (lane.verdict, lane.missing) == (Verdict.NOT_RUN, ("checked", "built"))
    assert lane.blocks


def test_evidence_short_of_what_is_required_is_not_green(story: Story) -> None:
    story.record("cpu", story.heads["change"], evidence=(Evidence.CHECKED,))
    lane = story.lane("cpu")
    assert (lane.verdict, lane.missing) == (Verdict.NOT_RUN, ("built",))


def test_a_record_of_an_older_head_is_shown_with_its_commit_and_certifies_nothing(story: Story) -> None:
    story.record("cpu", story.heads["change"])
    newer = story.commit("newer", {"src/attn.cpp": "changed\n"})
    lane = story.lane("cpu")
    assert (lane.verdict, lane.stale, lane.commit) == (Verdict.NOT_RUN, True, story.heads["change"])
    assert lane.commit != newer


@pytest.mark.parametrize("how", [{"dirty": True}, {"merge_tree": "f" * 40}])
def test_a_record_of_another_tree_certifies_nothing(story: Story, how: dict[str, object]) -> None:
    story.record("cpu", story.heads["change"], **how)  # type: ignore[arg-type]
    assert story.lane("cpu").verdict is Verdict.NOT_RUN


def test_a_record_from_before_the_lane_changed_certifies_nothing(story: Story, edited: Edit) -> None:
    story.record("cpu", story.heads["change"])
    changed = edited("{row: BACKEND-CPU, compiler: gcc}", "{row: BACKEND-CPU, compiler: gcc, defines: {FAST: '1'}}")
    head = story.commit("matrix", {"matrix.yaml": changed})
    old = next(story.ledger.records(head=story.heads["change"]))[1]
    story.ledger.put(old.model_copy(update={"head": head}))
    assert story.lane("cpu").verdict is Verdict.NOT_RUN


def test_a_red_that_is_green_on_the_base_is_new(story: Story) -> None:
    story.record("cpu", story.heads["base"])
    story.record("cpu", story.heads["change"], ERROR)
    assert story.lane("cpu").verdict is Verdict.NEW_RED


def test_a_red_without_evidence_from_the_base_is_never_innocent(story: Story) -> None:
    story.record("cpu", story.heads["change"], ERROR)
    assert story.lane("cpu").verdict is Verdict.UNCLASSIFIED


def test_the_same_red_on_the_merge_base_is_older_than_the_change(story: Story) -> None:
    story.record("cpu", story.heads["base"], ERROR, file="src/norm.cpp")
    story.record("cpu", story.heads["change"], ERROR, file="src/norm.cpp")
    lane = story.lane("cpu")
    assert lane.verdict is Verdict.RED_ON_BASE
    assert not lane.blocks
    assert lane.age_days == 0


def test_a_red_on_base_in_code_that_the_change_touches_is_not_excused(story: Story) -> None:
    for commit in ("base", "change"):
        story.record("cpu", story.heads[commit], ERROR, file="src/attn.cpp", line=5)
    lane = story.lane("cpu")
    assert lane.verdict is Verdict.OVERLAP_RED
    assert lane.blocks


def test_the_same_file_far_from_the_change_is_excused(story: Story) -> None:
    for commit in ("base", "change"):
        story.record("cpu", story.heads[commit], ERROR, file="src/attn.cpp", line=190)
    assert story.lane("cpu").verdict is Verdict.RED_ON_BASE


def test_another_error_on_the_base_excuses_nothing(story: Story) -> None:
    story.record("cpu", story.heads["base"], "undefined reference to `scatter`", file="src/norm.cpp")
    story.record("cpu", story.heads["change"], ERROR, file="src/norm.cpp")
    assert story.lane("cpu").verdict is Verdict.UNCLASSIFIED


def test_one_older_base_commit_is_not_enough_and_two_are(story: Story) -> None:
    story.record("cpu", story.heads["older"], ERROR, file="src/norm.cpp")
    story.record("cpu", story.heads["change"], ERROR, file="src/norm.cpp")
    assert story.lane("cpu").verdict is Verdict.UNCLASSIFIED
    story.branch("main")
    story.commit("middle")
    story.record("cpu", story.heads["middle"], ERROR, file="src/norm.cpp")
    story.commit("tip")
    story.branch("change", "main")
    story.commit("again", {"src/attn.cpp": "changed\n"})
    story.record("cpu", story.heads["again"], ERROR, file="src/norm.cpp")
    assert story.lane("cpu").verdict is Verdict.RED_ON_BASE


def test_sightings_older_than_72_hours_excuse_nothing(story: Story) -> None:
    story.branch("main")
    for number in range(2):
        commit = story.commit(f"old {number}", when=NOW - timedelta(hours=80))
        story.record("cpu", commit, ERROR, file="src/norm.cpp")
    story.commit("tip")
    story.branch("change", "main")
    story.commit("again", {"src/attn.cpp": "changed\n"})
    story.record("cpu", story.heads["again"], ERROR, file="src/norm.cpp")
    assert story.lane("cpu").verdict is Verdict.UNCLASSIFIED


def test_a_forks_record_is_never_a_baseline(story: Story) -> None:
    story.record("cpu", story.heads["base"], ERROR, file="src/norm.cpp", trust="fork")
    story.record("cpu", story.heads["change"], ERROR, file="src/norm.cpp")
    assert story.lane("cpu").verdict is Verdict.UNCLASSIFIED


def test_a_forks_own_green_is_shown_but_not_enough(story: Story) -> None:
    story.record("cpu", story.heads["change"], trust="fork")
    lane = story.lane("cpu")
    assert (lane.verdict, lane.trust) == (Verdict.NOT_RUN, "fork")
    assert "built" in lane.evidence


def test_a_forks_later_green_never_hides_a_runners_red(story: Story) -> None:
    story.record("cpu", story.heads["base"])
    story.record("cpu", story.heads["change"], ERROR)
    story.record("cpu", story.heads["change"], trust="fork")
    assert story.lane("cpu").verdict is Verdict.NEW_RED


def test_a_generic_message_identifies_nothing_and_excuses_nothing(story: Story) -> None:
    for commit in ("base", "change"):
        story.record("cpu", story.heads[commit], "Error: Process completed with exit code 1.", file=None)
    assert story.lane("cpu").verdict is Verdict.UNCLASSIFIED


def test_a_pass_after_a_failure_of_the_same_inputs_is_flaky(story: Story) -> None:
    story.record("cpu", story.heads["change"], ERROR)
    story.record("cpu", story.heads["change"])
    lane = story.lane("cpu")
    assert lane.verdict is Verdict.FLAKY
    assert lane.blocks


def test_void_and_infrastructure_are_words_of_their_own_and_block(story: Story) -> None:
    void = StageResult(stage=Stage.EXACT, outcome=Outcome.VOID, reason="identical arms")
    story.record("cpu", story.heads["change"], stages=(void,))
    assert story.lane("cpu").verdict is Verdict.VOID
    lost = FirstError(message="the daemon went away", fingerprint="x", rule="infra")
    infra = StageResult(stage=Stage.BUILD, outcome=Outcome.FAIL, first_error=lost)
    story.record("rocm-gfx1100", story.heads["change"], stages=(infra,))
    assert story.lane("rocm-gfx1100").verdict is Verdict.INFRA


def known_red(expires: str, fingerprint: str) -> str:
    entry = f"lane: cpu, stage: build, fingerprint: {fingerprint!r}, owner: ann, since: 2026-03-01, expires: {expires}"
    return f"known_red: [{{{entry}}}]\n"


@pytest.mark.parametrize(("expires", "verdict"), [("2026-04-01", Verdict.KNOWN_RED), ("2026-03-09", Verdict.NEW_RED)])
def test_a_known_red_is_excused_until_it_expires(story: Story, edited: Edit, expires: str, verdict: Verdict) -> None:
    from greenlane.record.fingerprint import fingerprint

    _with_base_matrix(story, edited("", "") + known_red(expires, fingerprint(ERROR)))
    story.record("cpu", story.heads["again"], ERROR)
    lane = story.lane("cpu")
    assert (lane.verdict, lane.owner) == (verdict, "ann")


def test_a_known_red_that_passes_is_red(story: Story, edited: Edit) -> None:
    _with_base_matrix(story, edited("", "") + known_red("2026-04-01", "0123456789abcdef"))
    story.record("cpu", story.heads["again"])
    lane = story.lane("cpu")
    assert lane.verdict is Verdict.NEW_RED
    assert "remove the entry" in lane.reason


def test_each_lane_of_a_glob_is_asked_whether_it_still_fails(story: Story, edited: Edit) -> None:
    from greenlane.record.fingerprint import fingerprint

    entry = known_red("2026-04-01", fingerprint(ERROR)).replace("lane: cpu", "lane: 'rocm-*'")
    _with_base_matrix(story, edited("", "") + entry)
    story.record("rocm-gfx1100", story.heads["again"], ERROR)
    story.record("rocm-gfx1151", story.heads["again"])
    assert story.lane("rocm-gfx1100").verdict is Verdict.KNOWN_RED
    passing = story.lane("rocm-gfx1151")
    assert (passing.verdict, passing.owner) == (Verdict.NEW_RED, "ann")
    assert "take rocm-gfx1151 out of 'rocm-*'" in passing.reason


def test_a_known_red_excuses_one_stage_and_one_error(story: Story, edited: Edit) -> None:
    from greenlane.record.fingerprint import fingerprint

    _with_base_matrix(story, edited("", "") + known_red("2026-04-01", fingerprint(ERROR)))
    story.record("cpu", story.heads["again"], "undefined reference to `scatter`")
    assert story.lane("cpu").verdict is Verdict.UNCLASSIFIED
    story.record("cpu", story.heads["again"], ERROR, stage=Stage.TEST)
    assert story.lane("cpu").verdict.blocks


@pytest.mark.parametrize(("error", "verdict"), [(None, Verdict.GREEN), (ERROR, Verdict.NEW_RED)])
def test_a_known_red_that_the_change_takes_out_is_judged_as_mended(
    story: Story, edited: Edit, error: str | None, verdict: Verdict
) -> None:
    from greenlane.record.fingerprint import fingerprint

    _with_base_matrix(story, edited("", "") + known_red("2026-04-01", fingerprint(ERROR)))
    head = story.commit("mended", {"matrix.yaml": edited("", "")})
    story.record("cpu", head, error)
    assert story.lane("cpu").verdict is verdict


def test_a_known_red_cannot_be_prolonged_by_the_change_itself(story: Story, edited: Edit) -> None:
    from greenlane.record.fingerprint import fingerprint

    _with_base_matrix(story, edited("", "") + known_red("2026-03-09", fingerprint(ERROR)))
    head = story.commit("longer", {"matrix.yaml": edited("", "") + known_red("2027-03-09", fingerprint(ERROR))})
    story.record("cpu", head, ERROR)
    assert story.lane("cpu").verdict is Verdict.NEW_RED


def finding(message: str, line: int = 5, rule: str = "call-arity") -> Finding:
    return Finding(
        rule=rule, severity="error", file="src/attn.cpp", line=line, column=1, lanes=("cpu",), message=message
    )


CHECK_RED = (StageResult(stage=Stage.CHECK, outcome=Outcome.FAIL, reason="findings"),)


def check_red(story: Story, commit: str, *findings: Finding) -> None:
    story.record("cpu", story.heads[commit], stages=CHECK_RED, findings=findings)


def test_a_finding_that_the_base_lacks_makes_the_check_new_red(story: Story) -> None:
    check_red(story, "base", finding("takes 9", 150))
    check_red(story, "change", finding("takes 9", 160), finding("unused", 1, "unused-function"))
    told = story.review()
    lane = told.lanes[0]
    assert lane.verdict is Verdict.NEW_RED
    assert "1 of its 2 findings are not on base commit" in lane.reason
    assert {found.message: bool(found.new_in) for found in told.findings} == {"takes 9": False, "unused": True}


def test_findings_that_the_base_has_too_are_older_than_the_change(story: Story) -> None:
    check_red(story, "base", finding("takes 9", 150), finding("unused", 151))
    check_red(story, "change", finding("takes 9", 160))
    assert story.lane("cpu").verdict is Verdict.RED_ON_BASE


def test_a_finding_in_code_that_the_change_touches_is_not_excused(story: Story) -> None:
    check_red(story, "base", finding("takes 9"))
    check_red(story, "change", finding("takes 9"))
    assert story.lane("cpu").verdict is Verdict.OVERLAP_RED


def test_findings_without_a_record_of_the_base_are_nobodys(story: Story) -> None:
    check_red(story, "change", finding("takes 9"))
    assert story.lane("cpu").verdict is Verdict.UNCLASSIFIED


def test_a_failure_after_a_pass_of_the_same_inputs_is_flaky(story: Story) -> None:
    story.record("cpu", story.heads["base"])
    story.record("cpu", story.heads["change"])
    story.record("cpu", story.heads["change"], ERROR)
    assert story.lane("cpu").verdict is Verdict.FLAKY


def test_a_stage_that_was_blocked_without_a_red_in_its_record_is_blocked(story: Story) -> None:
    stages = (
        StageResult(stage=Stage.CHECK, outcome=Outcome.PASS),
        StageResult(stage=Stage.BUILD, outcome=Outcome.BLOCKED, reason="check is red"),
    )
    story.record("cpu", story.heads["change"], stages=stages)
    assert story.lane("cpu").verdict is Verdict.BLOCKED


def test_a_merge_with_a_base_that_moved_is_cleared_by_the_bases_tip(story: Story) -> None:
    story.branch("main")
    tip = story.commit("tip", {"src/norm.cpp": "broken\n"})
    story.record("cpu", tip, ERROR, file="src/norm.cpp")
    tree = story.review().merge.tree
    story.record("cpu", story.heads["change"], ERROR, file="src/norm.cpp", merge_tree=tree, base=tip)
    assert story.lane("cpu").verdict is Verdict.RED_ON_BASE
    story.record("rocm-gfx1100", tip, ERROR, file="src/norm.cpp")
    story.record("rocm-gfx1100", story.heads["change"], ERROR, file="src/norm.cpp")
    assert story.lane("rocm-gfx1100").verdict is Verdict.UNCLASSIFIED, "its own tree holds nothing of the tip"


@pytest.mark.parametrize("where", ["lane", "gate"])
def test_undecided_is_not_measured_where_a_verdict_is_required(story: Story, edited: Edit, where: str) -> None:
    outcome = Outcome.UNDECIDED if where == "lane" else Outcome.VOID  # the gate itself says void
    bench = (StageResult(stage=Stage.CHECK, outcome=Outcome.PASS), StageResult(stage=Stage.BENCH, outcome=outcome))
    story.record("cpu", story.heads["change"], stages=bench)
    assert story.lane("cpu").verdict is (Verdict.NOT_RUN if where == "lane" else Verdict.VOID)


def test_inert_is_green_and_proves_nothing_of_reach(story: Story) -> None:
    stages = (
        StageResult(stage=Stage.CHECK, outcome=Outcome.PASS),
        StageResult(stage=Stage.BUILD, outcome=Outcome.PASS),
        StageResult(stage=Stage.REACH, outcome=Outcome.INERT, reason="compiled, but no run reaches combine"),
    )
    story.record("cpu", story.heads["change"], stages=stages, evidence=(Evidence.CHECKED, Evidence.BUILT))
    told = story.review()
    assert told.lanes[0].verdict is Verdict.GREEN
    assert "inert" in render(told)


def _with_base_matrix(story: Story, matrix: str) -> None:
    story.branch("main")
    story.commit("rules", {"matrix.yaml": matrix})
    story.branch("change", "main")
    story.commit("again", {"src/attn.cpp": "changed\n"})


def test_a_change_is_judged_by_the_merge_bases_rules_and_its_own_are_listed(story: Story, edited: Edit) -> None:
    loosened = edited("require: [checked, built]", "require: [checked]")
    story.commit("loosen", {"matrix.yaml": loosened})
    story.record("cpu", story.heads["loosen"], evidence=(Evidence.CHECKED,))
    told = story.review()
    lane = next(lane for lane in told.lanes if lane.id == "cpu")
    assert (lane.verdict, lane.missing) == (Verdict.NOT_RUN, ("built",))
    change = next(change for change in told.policy_changes if change.what == "cpu, rocm-gfx1100, rocm-gfx1151: require")
    assert (change.before, change.after, change.loosens) == ("built", "removed", True)


def test_a_change_cannot_excuse_itself_with_a_known_red(story: Story, edited: Edit) -> None:
    from greenlane.record.fingerprint import fingerprint

    story.commit("excuse", {"matrix.yaml": edited("", "") + known_red("2026-04-01", fingerprint(ERROR))})
    story.record("cpu", story.heads["base"])
    story.record("cpu", story.heads["excuse"], ERROR)
    told = story.review()
    assert next(lane for lane in told.lanes if lane.id == "cpu").verdict is Verdict.NEW_RED
    assert any(change.what == "known reds" and change.loosens for change in told.policy_changes)


def test_a_lane_that_the_change_removes_stays_required(story: Story, edited: Edit) -> None:
    story.commit("drop", {"matrix.yaml": edited(", gfx1151]", "]")})
    told = story.review()
    assert any(change.what == "rocm-gfx1151: lane" and change.loosens for change in told.policy_changes)
    lanes = {lane.id: lane for lane in told.lanes}
    assert lanes["rocm-gfx1151"].required
    assert lanes["rocm-gfx1151"].verdict is Verdict.NOT_RUN
    assert told.exit_code == 4 or lanes["cpu"].verdict is Verdict.NOT_RUN


def test_a_damaged_record_is_as_good_as_none(story: Story) -> None:
    record_id = story.record("cpu", story.heads["change"])
    path = story.ledger.root / "records" / record_id[:2] / f"{record_id}.json"
    path.write_bytes(path.read_bytes()[:-20])
    assert story.lane("cpu").verdict is Verdict.NOT_RUN
    assert Ledger(story.ledger.root).reindex()[0] == 0


def test_exit_codes_tell_red_from_missing(story: Story) -> None:
    assert story.review().exit_code == 4
    for lane in ("cpu", "rocm-gfx1100", "rocm-gfx1151"):
        story.record(lane, story.heads["change"])
    assert story.review().exit_code == 0
    story.commit("red")
    story.record("cpu", story.heads["red"], ERROR)
    assert story.review().exit_code == 1


def test_a_fingerprint_in_many_lanes_is_one_event(story: Story, edited: Edit) -> None:
    many = edited("[gfx1100, gfx1151]", "[gfx1100, gfx1101, gfx1102, gfx1150, gfx1151, gfx1200, gfx1201]")
    head = story.commit("many", {"matrix.yaml": many})
    lanes = [f"rocm-{arch}" for arch in ("gfx1100", "gfx1101", "gfx1102", "gfx1150", "gfx1151", "gfx1200")]
    for lane in lanes:
        story.record(lane, head, ERROR)
    [event] = story.review().systemic
    assert (event.message, sorted(event.lanes)) == (ERROR, lanes)
