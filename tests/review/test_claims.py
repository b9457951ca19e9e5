"""A sentence of the pull request is proven by a record of this commit, or it is shown as what it is."""

from __future__ import annotations

import pytest

from greenlane.matrix.model import Evidence, Stage
from greenlane.record.model import Outcome, StageResult
from greenlane.report.comment import render
from greenlane.review.model import Claim, ClaimState
from greenlane.review.sentences import kind_of, lines
from tests.review.conftest import Story

BUILT = (Evidence.CHECKED, Evidence.BUILT)
EXACT = (*BUILT, Evidence.RAN_ON_TARGET, Evidence.EXACT)


def one(story: Story, body: str) -> Claim:
    [claim] = story.review(body=body).claims
    return claim


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Builds clean on ROCm 7.x", "built"),
        ("compiles without warnings", "built"),
        ("a clean build", "built"),
        ("token-exact", "exact"),
        ("Token identical to the CPU lane", "exact"),
        ("bit-identical output", "exact"),
        ("ON == OFF for 256 tokens", "mirror-exact"),
        ("ON/OFF are token-identical", "mirror-exact"),
        ("performance is a wash", "wash"),
        ("no measurable difference", "wash"),
        ("+12 % decode", "win"),
        ("1.4x faster prefill", "win"),
        ("30 % less memory", "win"),
        ("3 % slower prefill", "loss"),
        ("-3 % decode", "loss"),
        ("perf-neutral", "wash"),
        ("all tests pass", "tested"),
        ("the kernels are reached", "reached"),
        ("not token-exact yet", None),
        ("should build clean", None),
        ("untested: builds clean", None),
        ("Adds a combine kernel", None),
        ("C++12 % of nothing", None),
    ],
)
def test_sentences_are_told_apart(sentence: str, kind: str | None) -> None:
    found = kind_of(sentence)
    assert (found.name if found else None) == kind


def test_comments_code_quotations_and_open_boxes_claim_nothing() -> None:
    body = "<!-- token-exact -->\n```\ntoken-exact\n```\n> token-exact\n- [ ] token-exact\n- [x] token-exact\n"
    assert [number for number, line in lines(body) if kind_of(line)] == [7]


def test_a_claim_is_proven_by_a_record_of_this_commit(story: Story) -> None:
    story.record("rocm-gfx1100", story.heads["change"])
    claim = one(story, "Builds clean on gfx1100.")
    assert (claim.kind, claim.state, claim.lanes) == ("built", ClaimState.PROVEN, ("rocm-gfx1100",))


def test_a_claim_measured_on_an_older_head_is_stale_and_names_it(story: Story) -> None:
    story.record("rocm-gfx1100", story.heads["change"])
    story.commit("newer")
    claim = one(story, "Builds clean on gfx1100.")
    assert (claim.state, claim.commit) == (ClaimState.STALE, story.heads["change"])


def test_a_siblings_run_does_not_speak_for_the_target(story: Story) -> None:
    story.record("rocm-gfx1151", story.heads["change"], evidence=EXACT)
    claim = one(story, "Token-exact on gfx1100.")
    assert claim.state is ClaimState.OTHER_DEVICE
    assert "gfx1151" in claim.reason


def test_a_claim_without_any_record_is_unproven(story: Story) -> None:
    assert one(story, "Token-exact.").state is ClaimState.UNPROVEN


def test_a_claim_about_everything_is_as_good_as_its_worst_lane(story: Story) -> None:
    story.record("cpu", story.heads["change"])
    story.record("rocm-gfx1100", story.heads["change"])
    claim = one(story, "Builds clean.")
    assert (claim.state, claim.lanes) == (ClaimState.OTHER_DEVICE, ("rocm-gfx1151",))


def test_a_red_record_contradicts(story: Story) -> None:
    story.record("rocm-gfx1100", story.heads["change"], "too few arguments to combine")
    assert one(story, "Builds clean on gfx1100").state is ClaimState.CONTRADICTED


def test_a_benchmark_claim_needs_the_verdict_not_only_the_run(story: Story) -> None:
    bench = StageResult(stage=Stage.BENCH, outcome=Outcome.UNDECIDED)
    story.record("cpu", story.heads["change"], stages=(bench,), evidence=(*EXACT, Evidence.BENCHED))
    assert one(story, "Performance on cpu is a wash").state is ClaimState.UNPROVEN
    bench = StageResult(stage=Stage.BENCH, outcome=Outcome.WASH)
    story.record("cpu", story.heads["change"], stages=(bench,), evidence=(*EXACT, Evidence.BENCHED))
    assert one(story, "Performance on cpu is a wash").state is ClaimState.PROVEN


def test_on_against_off_needs_the_mirror_to_have_been_compared(story: Story) -> None:
    for name, state in (("fast", ClaimState.UNPROVEN), ("mirror", ClaimState.PROVEN)):
        exact = StageResult(stage=Stage.EXACT, outcome=Outcome.PASS, measurements={"comparisons": [{"name": name}]})
        story.record("rocm-gfx1100", story.heads["change"], stages=(exact,), evidence=EXACT)
        assert one(story, "ON == OFF on gfx1100").state is state


def test_emulation_is_called_emulation(story: Story) -> None:
    exact = StageResult(stage=Stage.EXACT, outcome=Outcome.PASS)
    proven = (*BUILT, Evidence.EMULATED, Evidence.EXACT)
    story.record("rocm-gfx1100", story.heads["change"], stages=(exact,), evidence=proven)
    claim = one(story, "Token-exact on gfx1100")
    assert claim.state is ClaimState.PROVEN
    assert "in emulation, not on a card" in claim.reason


def test_a_campaign_label_is_no_row(story: Story) -> None:
    claim = one(story, "Row: PERF-CAMPAIGN-3")
    assert claim.state is ClaimState.CONTRADICTED
    assert "BACKEND-CPU, BACKEND-ROCM" in claim.reason
    assert one(story, "**Row:** `BACKEND-ROCM`").state is ClaimState.PROVEN


def test_a_closing_keyword_beside_an_unproven_claim_is_pointed_out(story: Story) -> None:
    claims = story.review(body="Token-exact on gfx1100.\n\nCloses #12").claims
    assert [(claim.kind, claim.state) for claim in claims][1] == ("closes", ClaimState.UNPROVEN)


def test_a_hostile_body_is_read_in_bounds(story: Story) -> None:
    body = "token-exact. " * 50_000 + "<!--" * 10_000 + "```" * 10_000 + "\n" * 10_000
    assert 0 < len(story.review(body=body).claims) <= 65


def bench_of(outcome: Outcome, *interval: float) -> tuple[StageResult, ...]:
    metrics = {"metrics": {"decode": {"interval": list(interval), "verdict": str(outcome)}}}
    return (StageResult(stage=Stage.BENCH, outcome=outcome, measurements=metrics),)


@pytest.mark.parametrize(
    ("sentence", "state"),
    [
        ("+12 % decode on cpu", ClaimState.PROVEN),
        ("+10 % on cpu", ClaimState.PROVEN),
        ("+14.4 % on cpu", ClaimState.PROVEN),
        ("+30 % decode on cpu", ClaimState.CONTRADICTED),
        ("1.5x faster on cpu", ClaimState.CONTRADICTED),
        ("performance on cpu is a wash", ClaimState.CONTRADICTED),
        ("3 % slower on cpu", ClaimState.CONTRADICTED),
    ],
)
def test_a_figure_is_held_against_the_measured_interval(story: Story, sentence: str, state: ClaimState) -> None:
    stages = bench_of(Outcome.WIN, 0.11, 0.14)
    story.record("cpu", story.heads["change"], stages=stages, evidence=(*EXACT, Evidence.BENCHED))
    claim = one(story, sentence)
    assert claim.state is state
    if "30" in sentence:
        assert "decode +11.0 to +14.0 %" in claim.reason


def test_a_wash_of_an_older_head_is_stale(story: Story) -> None:
    evidence = (*EXACT, Evidence.BENCHED)
    story.record("cpu", story.heads["change"], stages=bench_of(Outcome.WASH, -0.01, 0.01), evidence=evidence)
    story.commit("newer")
    claim = one(story, "Performance on cpu is a wash")
    assert (claim.state, claim.commit) == (ClaimState.STALE, story.heads["change"])


def test_what_the_base_could_do_is_no_older_proof_of_the_change(story: Story) -> None:
    story.record("rocm-gfx1100", story.heads["base"])
    assert one(story, "Builds clean on gfx1100").state is ClaimState.UNPROVEN


def test_a_claim_goes_on_behind_and(story: Story) -> None:
    story.record("rocm-gfx1100", story.heads["change"])
    claim = one(story, "- Builds clean on gfx1100 and gfx1151.")
    assert claim.text == "Builds clean on gfx1100 and gfx1151."
    assert claim.lanes == ("rocm-gfx1151",)


def test_lanes_and_backends_may_be_named_together(story: Story) -> None:
    for lane in ("cpu", "rocm-gfx1100"):
        story.record(lane, story.heads["change"])
    assert one(story, "Builds clean on gfx1100 and on cpu").state is ClaimState.PROVEN
    assert one(story, "Builds clean on ROCm and on cpu").lanes == ("rocm-gfx1151",)


@pytest.mark.parametrize("sentence", ["Token-exact on gfx1030", "token-exact on gfx1100 and gfx1030"])
def test_a_device_without_a_lane_proves_nothing(story: Story, sentence: str) -> None:
    for lane in ("cpu", "rocm-gfx1100", "rocm-gfx1151"):
        story.record(lane, story.heads["change"], evidence=EXACT)
    claim = one(story, sentence)
    assert claim.state is ClaimState.UNPROVEN
    assert "no lane for gfx1030" in claim.reason


@pytest.mark.parametrize("keyword", ["Closes #12", "fixes org/repo#12", "Resolves https://example.org/o/r/issues/12"])
def test_every_form_of_a_closing_keyword_is_seen(story: Story, keyword: str) -> None:
    claims = story.review(body=f"Token-exact on gfx1100.\n\n{keyword}").claims
    assert [claim.kind for claim in claims] == ["exact", "closes"]


def test_a_closing_keyword_beside_proven_claims_is_nobodys_business(story: Story) -> None:
    story.record("rocm-gfx1100", story.heads["change"], evidence=EXACT)
    assert [claim.kind for claim in story.review(body="Token-exact on gfx1100.\n\nCloses #12").claims] == ["exact"]


def test_fields_that_the_base_asks_for_are_missed_and_block(story: Story) -> None:
    story.branch("main")
    asking = (
        story.repository / "matrix.yaml"
    ).read_text() + "checks: {record: {fields: [Row, Tested on], row_field: Row}}\n"
    story.commit("asking", {"matrix.yaml": asking})
    story.branch("change", "main")
    head = story.commit("again", {"src/attn.cpp": "changed\n"})
    for lane in ("cpu", "rocm-gfx1100", "rocm-gfx1151"):
        story.record(lane, head)
    told = story.review(body="Row: BACKEND-NONE\n")
    assert [problem.message.split(",")[0] for problem in told.text_problems] == [
        "the field 'Tested on' is missing",
        "Row names 'BACKEND-NONE'",
    ]
    assert told.exit_code == 1
    assert "the text lacks what the matrix asks for" in render(told).splitlines()[2]
    assert story.review(body="Row: BACKEND-CPU\nTested on: a desk\n").exit_code == 0
