"""What greenlane sends is what GitHub's own description asks for, to the last field; what it answers can be read.

Needs npm, which brings Prism and the description into a cache on the first run; without it these are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib import error, request

import pytest

from greenlane.github import sticky, verdict
from greenlane.github.account import Account
from greenlane.github.forge import Forge, connect
from greenlane.github.patience import Patience
from greenlane.github.refusal import Refused
from greenlane.report.comment import MARKER
from greenlane.review.model import LaneReview, MergeProbe, Review, Verdict
from tests.github import description

HEAD = "a" * 40


@pytest.fixture(scope="module")
def prism(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        with description.served(tmp_path_factory.mktemp("prism")) as url:
            yield url
    except description.NotToBeHad as reason:
        pytest.skip(f"no contract test: {reason}")


@pytest.fixture
def real(prism: str) -> Forge:
    account = Account(prism, "ghp_0123456789")
    return connect(account, "octocat/hello-world", Patience(account, between_writes_s=0, attempts=1))


def sent(prism: str, verb: str, path: str, body: dict[str, object]) -> int:
    """The status of a request as it stands."""
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Authorization": "Bearer t"}
    asked = request.Request(f"{prism}{path}", json.dumps(body).encode(), headers, method=verb)
    try:
        with request.urlopen(asked) as answer:
            return int(answer.status)
    except error.HTTPError as refused:
        return refused.code


def test_the_account_can_be_read(real: Forge) -> None:
    assert real.whoami() == "octocat"


def test_comments_can_be_listed_made_and_edited(real: Forge) -> None:
    (comment,) = real.comments(3)
    assert (comment.author, comment.body) == ("octocat", "Me too")
    assert real.create_comment(3, "text").id
    assert real.edit_comment(comment.id, "text").url.startswith("https://")


def test_the_sticky_comment_is_made_of_those(real: Forge) -> None:
    kept = sticky.keep(real, 3, "octocat", sticky.Stamp(HEAD, (1, 1)), lambda budget: MARKER)
    assert kept.posted is sticky.Posted.CREATED  # Prism's one comment has no marker


def test_a_pull_request_can_be_read_and_found(real: Forge) -> None:
    pull = real.pull(3)
    assert (pull.state, len(pull.head)) == ("open", 40)
    assert pull.clone_url.startswith("https://")
    assert all(found.number for found in real.open_pulls_of("octocat", "new-topic"))


def test_a_run_and_its_artifacts_can_be_read(real: Forge) -> None:
    run = real.run(30433642)
    assert (run.event, run.head_repository) == ("push", "octo-org/octo-repo")
    assert {artifact.name for artifact in real.artifacts(30433642, 100)} == {"Rails", "Test output"}


def test_a_check_run_with_annotations_is_what_github_asks_for(real: Forge) -> None:
    findings = tuple(
        {"rule": "r", "severity": severity, "file": "a.cpp", "line": line, "message": "m"}
        for line in range(1, 41)
        for severity in ("error", "warning", "note")
    )
    every = tuple(
        LaneReview(id=kind, verdict=kind, reason="", required=True, findings=findings if kind is Verdict.GREEN else ())
        for kind in Verdict
    )
    for lanes in (every, (every[0],), ()):
        told = Review(HEAD, HEAD, MergeProbe("clean"), lanes)
        assert "check run" in verdict.publish(real, told, "summary", "https://example.com/comment")


@pytest.mark.parametrize("state", verdict.STATE.values())
def test_a_status_is_what_github_asks_for(state: str, real: Forge) -> None:
    real.create_status(HEAD, {"state": state, "description": "d", "context": verdict.NAME, "target_url": "https://x"})


@pytest.mark.parametrize(
    ("verb", "path", "good", "extra"),
    [
        ("POST", "/issues/3/comments", {"body": "text"}, {"sticky": True}),
        ("PATCH", "/issues/comments/3", {"body": "text"}, {"author": "me"}),
        ("POST", f"/statuses/{HEAD}", {"state": "success"}, {"sha": HEAD}),
        ("POST", "/check-runs", {"name": "n", "head_sha": HEAD}, {"annotation": []}),
        ("PATCH", "/check-runs/3", {"name": "n"}, {"head": HEAD}),
    ],
)
def test_a_field_that_github_does_not_know_would_be_found(
    verb: str, path: str, good: dict[str, object], extra: dict[str, object], prism: str
) -> None:
    repository = "/repos/octocat/hello-world"
    assert sent(prism, verb, repository + path, good) in {200, 201}
    assert sent(prism, verb, repository + path, good | extra) == 422


def test_a_field_inside_of_an_annotation_would_be_found(real: Forge) -> None:
    place = {"path": "a", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "m"}
    for annotation, fits in (
        (place, True),
        (place | {"line": 1}, False),
        (place | {"annotation_level": "error"}, False),
    ):
        output = {"title": "t", "summary": "s", "annotations": [annotation]}
        asked = {"name": "n", "head_sha": HEAD, "output": output}
        if fits:
            assert real.create_check(asked)
        else:
            with pytest.raises(Refused, match="422"):
                real.create_check(asked)


def test_more_than_fifty_annotations_at_once_would_be_found(real: Forge) -> None:
    place = {"path": "a", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "m"}
    output = {"title": "t", "summary": "s", "annotations": [place] * (verdict.BATCH + 1)}
    with pytest.raises(Refused, match="422"):
        real.create_check({"name": "n", "head_sha": HEAD, "output": output})
