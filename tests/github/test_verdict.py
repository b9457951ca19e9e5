"""The verdict on the head: a check run whose annotations go in batches of fifty."""

from __future__ import annotations

from typing import Any

import pytest

from greenlane.github import verdict
from greenlane.github.forge import Forge
from greenlane.github.refusal import Refused
from greenlane.record.model import Outcome
from greenlane.review.model import LaneReview, MergeProbe, Review, StageView, Verdict
from tests.github.fake import GitHub

HEAD = "a" * 40


def finding(number: int = 1, **changes: Any) -> dict[str, Any]:
    base = {"rule": "call-arity", "severity": "error", "file": "src/a.cpp", "line": number, "column": 1, "message": "m"}
    return base | changes


def lane(name: str = "cpu", outcome: Verdict = Verdict.GREEN, **changes: Any) -> LaneReview:
    return LaneReview(id=name, verdict=outcome, reason="because", required=True, **changes)


def reviewed(*lanes: LaneReview, state: str = "clean") -> Review:
    return Review(HEAD, "b" * 40, MergeProbe(state), lanes)


def test_more_than_fifty_annotations_go_in_several_requests(github: GitHub, forge: Forge) -> None:
    findings = tuple(finding(number) for number in range(1, 121))
    told = verdict.publish(forge, reviewed(lane(findings=findings)), "summary")
    ((first, *more),) = github.checks.values()
    assert [len(request["output"]["annotations"]) for request in (first, *more)] == [50, 50, 20]
    assert first["conclusion"] == "success"
    assert all(set(request) == {"output"} for request in more)
    assert told == "check run 'greenlane verdict': success, 120 annotations"


def test_what_is_left_out_is_counted(github: GitHub, forge: Forge) -> None:
    findings = tuple(finding(number) for number in range(1, 601))
    assert verdict.publish(forge, reviewed(lane(findings=findings)), "").endswith("500 annotations, 100 more left out")
    ((*requests,),) = github.checks.values()
    assert len(requests) == 10


def test_a_finding_that_lanes_share_is_told_once() -> None:
    assert len(list(verdict.places(reviewed(lane("a", findings=(finding(),)), lane("b", findings=(finding(),)))))) == 1


@pytest.mark.parametrize("file", ["/etc/passwd", "../x.cpp", "a/../../x", "", "a\nb", None, 7, "x" * 2_000])
def test_a_place_outside_of_the_repository_is_no_annotation(file: Any) -> None:
    assert list(verdict.places(reviewed(lane(findings=(finding(file=file),))))) == []


@pytest.mark.parametrize("line", [0, -3, 2**40, None, "7"])
def test_a_line_that_does_not_exist_is_the_first(line: Any) -> None:
    (place,) = verdict.places(reviewed(lane(findings=(finding(line=line),))))
    assert (place["start_line"], place["end_line"]) == (1, 1)


def test_a_red_that_blocks_is_annotated_and_an_old_one_is_not() -> None:
    stage = StageView("build", Outcome.FAIL, message="error: no\x1b[31m", file="src/a.cpp", line=3)  # type: ignore[arg-type]
    new, old = lane("a", Verdict.NEW_RED, stages=(stage,)), lane("b", Verdict.RED_ON_BASE, stages=(stage,))
    (place,) = verdict.places(reviewed(new, old))
    assert (place["title"], place["annotation_level"]) == ("a: new-red", "failure")
    assert place["message"].isprintable()


@pytest.mark.parametrize(
    ("told", "conclusion", "state"),
    [
        (reviewed(lane()), "success", "success"),
        (reviewed(lane(outcome=Verdict.NEW_RED)), "failure", "failure"),
        (reviewed(lane(outcome=Verdict.NOT_RUN)), "action_required", "pending"),
        (reviewed(lane(), state="conflict"), "failure", "failure"),
        (reviewed(lane(), state="unknown"), "action_required", "pending"),
    ],
)
def test_the_conclusion_is_the_reviews(told: Review, conclusion: str, state: str, github: GitHub, forge: Forge) -> None:
    verdict.publish(forge, told, "")
    github.may_make_checks = False
    verdict.publish(forge, told, "")
    ((check,),) = github.checks.values()
    (status,) = github.statuses
    assert (check["conclusion"], status["state"]) == (conclusion, state)


def test_a_lanes_name_adds_no_line_and_no_length(github: GitHub, forge: Forge) -> None:
    github.may_make_checks = False
    verdict.publish(forge, reviewed(lane("x\n" * 300, outcome=Verdict.NEW_RED)), "")
    (status,) = github.statuses
    assert len(status["description"]) <= 140
    assert status["description"].isprintable()


def test_a_token_of_no_app_sets_a_status(github: GitHub, forge: Forge) -> None:
    github.may_make_checks = False
    assert "commit status" in verdict.publish(forge, reviewed(lane(outcome=Verdict.NEW_RED)), "")
    assert [status["state"] for status in github.statuses] == ["failure"]


def test_a_job_without_the_right_to_write_checks_is_told_so(github: GitHub, forge: Forge) -> None:
    denied = {"message": "Resource not accessible by integration"}
    github.faults.append(("POST /repos/o/r/check-runs", (403, {}, denied)))
    with pytest.raises(Refused, match="checks: write"):
        verdict.publish(forge, reviewed(lane()), "")
    assert github.statuses == []
