"""The first line says what needs whom, and is green only when nothing is left to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from greenlane.record.model import Outcome
from greenlane.report.comment import BUDGET, render
from greenlane.report.headline import headline
from greenlane.review.model import (
    Conflict,
    LaneReview,
    MergeProbe,
    PolicyChange,
    Review,
    StageView,
    TextProblem,
    Verdict,
)

CLEAN = MergeProbe(state="clean", tree="t" * 40, merge_base="b" * 40)


def lanes(*verdicts: Verdict, **more: object) -> tuple[LaneReview, ...]:
    return tuple(
        LaneReview(f"lane-{at}", verdict, "because", required=True, **more)  # type: ignore[arg-type]
        for at, verdict in enumerate(verdicts)
    )


def review(*verdicts: Verdict, **more: object) -> Review:
    made = Review("a" * 40, "b" * 40, CLEAN, lanes(*verdicts), base_commit="main")
    return replace(made, **more)  # type: ignore[arg-type]


GREEN, NEW, OLD, KNOWN = Verdict.GREEN, Verdict.NEW_RED, Verdict.RED_ON_BASE, Verdict.KNOWN_RED


@pytest.mark.parametrize(
    ("verdicts", "sign", "told"),
    [
        ((GREEN, GREEN), "🟢", "All 2 required lanes are proven at this commit"),
        ((GREEN, OLD, KNOWN), "🟢", "1 required lane is proven at this commit; 2 were red before it"),
        ((NEW,), "🔴", "lane-0 is red by this change: the author has to look"),
        ((NEW, NEW, OLD), "🔴", "lane-0 and lane-1 are red by this change (1 more was red before it): the author"),
        ((NEW, Verdict.OVERLAP_RED, NEW), "🔴", "3 lanes are red by this change: the author has to look"),
        ((Verdict.UNCLASSIFIED,), "🔴", "lane-0 is red, and nobody knows since when: it has to run on the base"),
        (
            (Verdict.INFRA, Verdict.INFRA),
            "🟠",
            "lane-0 and lane-1 are cut by the infrastructure: somebody has to run them",
        ),
        ((Verdict.VOID, GREEN), "🟠", "lane-0 is not measured: somebody has to run it again"),
        ((Verdict.FLAKY,), "🟠", "lane-0 is flaky: somebody has to find out why"),
        ((NEW, Verdict.INFRA), "🔴", "lane-0 is red by this change: the author has to look; lane-1 is cut by"),
        ((Verdict.NOT_RUN, GREEN), "⚪", "Nothing is red, but lane-0 is not proven: somebody has to run it"),
    ],
)
def test_the_first_line_says_what_needs_whom(verdicts: tuple[Verdict, ...], sign: str, told: str) -> None:
    found = headline(review(*verdicts))
    assert found[0] == sign
    assert found[1].startswith(told)


def test_a_conflict_comes_before_everything_but_a_broken_matrix() -> None:
    merge = replace(CLEAN, state="conflict", tree=None, conflicts=(Conflict("a.cpp"),))
    assert headline(review(NEW, merge=merge)) == ("🔴", "Conflicts with main in a.cpp: the author has to rebase")
    assert headline(review(NEW, merge=merge, broken="x"))[1].startswith("The matrix cannot be read")


@pytest.mark.parametrize(
    "more",
    [
        {"merge": MergeProbe(state="unknown", reason="shallow")},
        {"policy_changes": (PolicyChange("gates", "a", "b", loosens=True),)},
        {"text_problems": (TextProblem(1, "a field is missing"),)},
        {"broken": "matrix.yaml:1:1: nonsense"},
    ],
)
def test_green_lanes_alone_make_no_green_line(more: dict[str, object]) -> None:
    assert headline(review(GREEN, GREEN, **more))[0] != "🟢"


def test_a_lane_that_the_fork_alone_has_run_is_said_to_be_so() -> None:
    told = review()
    told = replace(told, lanes=lanes(Verdict.NOT_RUN, trust="fork"))
    assert headline(told)[1] == "lane-0 is run by the fork alone: somebody who is trusted has to run it too"


def test_no_required_lane_is_nothing_proven() -> None:
    assert headline(review())[0] == "⚪"


def test_an_optional_red_does_not_colour_the_line() -> None:
    told = review(GREEN)
    optional = replace(told.lanes[0], id="nightly", verdict=NEW, required=False)
    assert headline(replace(told, lanes=(*told.lanes, optional)))[0] == "🟢"


def test_a_thousand_hostile_lanes_stay_within_the_budget() -> None:
    stage = StageView("build", Outcome.FAIL, message="@all <b>|`" * 200, file="x" * 300, line=3)
    many = [
        LaneReview(
            f"lane-{at}-{'x' * 60}", NEW, "because " * 50, required=True, stages=(stage,), fingerprint=str(at),
            commit="a" * 40, missing=("checked", "built"),
        )
        for at in range(1000)
    ]  # fmt: skip
    shown = render(replace(review(), lanes=tuple(many)))
    assert len(shown) <= BUDGET
    assert "1000 lanes are red by this change" in shown.splitlines()[2]
    assert "990 more red lanes" in shown
    assert "<b>" not in shown.replace("\\<b\\>", "").split("```")[0]
