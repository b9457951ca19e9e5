"""A sentence of the pull request is proven by a record of this commit, or it is shown as what it is."""

from __future__ import annotations

import pytest

from greenlane.matrix.model import Evidence, Stage
from greenlane.record.model import Outcome, StageResult
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
