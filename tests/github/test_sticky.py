"""One comment of ours per pull request, whatever else stands there."""

from __future__ import annotations

import pytest

from greenlane.github import sticky
from greenlane.github.forge import Forge
from greenlane.github.refusal import TooLong
from greenlane.github.sticky import Posted, Stamp
from greenlane.report.comment import MARKER
from tests.github.fake import BOT, GitHub

HEAD, OLDER = "a" * 40, "b" * 40
STAMP = Stamp(HEAD, (7, 1))


def body(text: str = "all green", stamp: Stamp = STAMP) -> str:
    return f"{MARKER}\n\n{text}\n{stamp.line()}"


def keep(forge: Forge, text: str = "all green", stamp: Stamp = STAMP) -> sticky.Kept:
    return sticky.keep(forge, 3, BOT, stamp, lambda budget: f"{MARKER}\n\n{text}\n"[:budget])


def test_a_first_comment_is_created(github: GitHub, forge: Forge) -> None:
    assert keep(forge).posted is Posted.CREATED
    assert github.bodies(3) == [body()]


def test_the_same_comment_is_not_written_again(github: GitHub, forge: Forge) -> None:
    keep(forge)
    assert keep(forge).posted is Posted.UNCHANGED
    assert len(github.writes()) == 1


def test_line_ends_that_github_changed_make_no_difference(github: GitHub, forge: Forge) -> None:
    keep(forge)
    github.comments[3][0]["body"] = github.comments[3][0]["body"].replace("\n", "\r\n").rstrip()
    assert keep(forge).posted is Posted.UNCHANGED


def test_new_text_updates_the_same_comment(github: GitHub, forge: Forge) -> None:
    keep(forge)
    assert keep(forge, "one red").posted is Posted.UPDATED
    assert github.bodies(3) == [body("one red")]


def test_a_comment_that_somebody_edited_is_put_right(github: GitHub, forge: Forge) -> None:
    keep(forge)
    github.comments[3][0]["body"] = f"{MARKER}\n\nI think this is fine"
    assert keep(forge).posted is Posted.UPDATED
    assert github.bodies(3) == [body()]


def test_it_is_found_on_the_third_page(github: GitHub, forge: Forge) -> None:
    for number in range(230):
        github.comment(3, f"talk {number}", "somebody")
    ours = github.comment(3, body("old"))
    for number in range(60):
        github.comment(3, f"more talk {number}", "somebody")
    kept = keep(forge)
    assert (kept.posted, kept.comment.id) == (Posted.UPDATED, ours)
    assert [request for request in github.asked if request.startswith("GET")] == [
        "GET /repos/o/r/issues/3/comments"
    ] * 3


def test_exactly_full_pages_end(github: GitHub, forge: Forge) -> None:
    for number in range(200):
        github.comment(3, f"talk {number}", "somebody")
    assert keep(forge).posted is Posted.CREATED


@pytest.mark.parametrize("author", ["mallory", "github-actions", "github-actions[bot]x", None])
def test_the_marker_of_another_author_is_left_alone(author: str | None, github: GitHub, forge: Forge) -> None:
    forged = body("all 12 lanes are green, merge me")
    github.comment(3, forged, author)
    assert keep(forge, "one red").posted is Posted.CREATED
    assert github.bodies(3) == [forged, body("one red")]


def test_a_quote_of_the_comment_is_not_the_comment(github: GitHub, forge: Forge) -> None:
    github.comment(3, f"> {MARKER}\n\nlook at this")
    assert keep(forge).posted is Posted.CREATED


def test_of_several_the_newest_is_kept_and_the_others_are_named(github: GitHub, forge: Forge) -> None:
    first, second = github.comment(3, body("old")), github.comment(3, body("older"))
    kept = keep(forge)
    assert kept.comment.id == second
    assert [duplicate.id for duplicate in kept.duplicates] == [first]
    assert github.bodies(3) == [body("old"), body()]


def test_a_run_that_began_earlier_does_not_write_over_a_later_one(github: GitHub, forge: Forge) -> None:
    keep(forge, "of the later run", Stamp(HEAD, (9, 1)))
    assert keep(forge, "of the earlier run", Stamp(HEAD, (8, 3))).posted is Posted.OUTRUN
    assert "of the later run" in github.bodies(3)[0]


def test_a_second_attempt_of_the_same_run_writes(github: GitHub, forge: Forge) -> None:
    keep(forge, "first", Stamp(HEAD, (9, 1)))
    assert keep(forge, "second", Stamp(HEAD, (9, 2))).posted is Posted.UPDATED


def test_a_later_run_of_an_older_head_is_no_reason_to_keep_its_words(github: GitHub, forge: Forge) -> None:
    keep(forge, "of the older head", Stamp(OLDER, (9, 1)))
    assert keep(forge, "of the head", Stamp(HEAD, (8, 1))).posted is Posted.UPDATED


def test_what_a_lane_printed_is_not_taken_for_the_stamp() -> None:
    forged = Stamp(OLDER, (10**9, 1)).line()
    assert sticky.stamp_of(f"{MARKER}\n{forged}\ntext\n{STAMP.line()}") == STAMP
    assert sticky.stamp_of(f"{MARKER}\n{forged}\nedited by hand") is None


def test_a_comment_that_is_too_long_after_all_is_sent_shorter(github: GitHub, forge: Forge) -> None:
    github.longest_body = 20_000
    assert keep(forge, "x" * 100_000).posted is Posted.CREATED
    assert 10_000 < len(github.bodies(3)[0]) <= 20_000


def test_a_comment_that_never_fits_is_an_error(github: GitHub, forge: Forge) -> None:
    github.longest_body = 10
    with pytest.raises(TooLong, match="Body is too long"):
        keep(forge, "x" * 100_000)
    assert github.bodies(3) == []


def test_a_comment_that_was_made_although_the_answer_was_lost_is_not_made_twice(github: GitHub, forge: Forge) -> None:
    github.lost.append("POST /repos/o/r/issues/3/comments")
    keep(forge)
    assert github.bodies(3) == [body()]


def test_a_comment_that_was_not_made_is_made_at_the_second_try(github: GitHub, forge: Forge) -> None:
    github.faults.append(("POST /repos/o/r/issues/3/comments", (502, {}, {"message": "Bad Gateway"})))
    keep(forge)
    assert github.bodies(3) == [body()]


def test_a_workflow_token_writes_as_the_actions_bot(forge: Forge) -> None:
    assert sticky.author_of(forge, None, in_actions=True) == BOT


def test_a_persons_token_writes_as_that_person(github: GitHub, forge: Forge) -> None:
    github.login = "maintainer"
    assert sticky.author_of(forge, None, in_actions=True) == "maintainer"


def test_another_apps_token_has_to_be_named(forge: Forge) -> None:
    assert sticky.author_of(forge, "my-app[bot]", in_actions=False) == "my-app[bot]"
    with pytest.raises(Exception, match="--author"):
        sticky.author_of(forge, None, in_actions=False)
