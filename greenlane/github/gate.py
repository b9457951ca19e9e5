"""`greenlane ci gate`: the one job that a branch protection asks for. It fails unless every required lane is green."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from greenlane.errors import GreenlaneError, MatrixError
from greenlane.github import account as accounts
from greenlane.github import event as events
from greenlane.github import history
from greenlane.github.comment import Place, place_of, renderer, say
from greenlane.lanes.places import trust
from greenlane.ledger import artifacts, ref
from greenlane.record.git import commit_of, git
from greenlane.report import summary
from greenlane.report.comment import BUDGET
from greenlane.report.markdown import plain
from greenlane.review.model import LaneReview, Review, Verdict
from greenlane.review.review import Asked, review


def command(arguments: argparse.Namespace) -> int:
    if arguments.records is None:
        raise MatrixError("ci gate needs --records DIR, the folder of the records that the run's lanes have uploaded")
    place = place_of(arguments.matrix)
    _baseline(place)
    head = commit_of(place.repository, arguments.head)
    if head is None:
        raise MatrixError(f"--head {arguments.head}: no such commit here; check out with `fetch-depth: 0`")
    base = beside(place.repository, head, arguments.base)
    if arguments.records.is_dir():  # no artifact at all makes no folder
        _take(place, arguments.records, head, base)
    text = events.text_of(events.read(os.environ))
    told = review(place.ledger, Asked(place.repository, place.matrix, base, head, text))
    for line in lines(told):
        print(line)
    if os.environ.get(summary.VARIABLE):
        summary.publish(renderer(place, told)(BUDGET))
    return exit_code(told)


def beside(repository: Path, head: str, base: str | None) -> str:
    """The commit that the head is judged beside. A push has no base, so that is its parent: never itself, where its own
    red would be found to be older than the change."""
    found = commit_of(repository, base or f"{head}^")
    if found is None and base:
        raise MatrixError(f"--base {base}: no such commit here; check out with `fetch-depth: 0`")
    return found or head


def _take(place: Place, records: Path, head: str, base: str) -> None:
    """Records of the head, and of the base where the run is trusted, since a red reruns there."""
    trusted = trust()
    merge_base = git(place.repository, "merge-base", base, head, check=False).stdout.decode().strip()
    commits = {head} if trusted == "fork" else {head, base, merge_base}
    _, refused = artifacts.take(place.ledger, records, trusted, frozenset(commits))
    for line in refused[:20]:
        say(f"refused: {line}")


def exit_code(told: Review) -> int:
    """As of the review; a commit that was judged beside itself has no base to blame."""
    itself = told.base == told.head
    if itself and any(lane.required and lane.verdict is Verdict.RED_ON_BASE for lane in told.lanes):
        return 1
    return told.exit_code


def lines(told: Review) -> list[str]:
    """One line per required lane, those that block first."""
    required = sorted((lane for lane in told.lanes if lane.required), key=lambda lane: (not lane.blocks, lane.id))
    blocking = sum(lane.blocks for lane in required)
    shown = [_line(lane) for lane in required]
    shown[:0] = [f"BLOCKS  {why}" for why in _of_the_whole(told)]
    return [*shown, f"{len(required) - blocking} of {len(required)} required lanes do not block"]


def _of_the_whole(told: Review) -> Iterator[str]:
    """What blocks whatever the lanes say."""
    if told.broken:
        yield f"the matrix does not load: {plain(told.broken, 300)}"
    if told.merge.state != "clean":
        yield (
            "it does not merge with its base" if told.merge.state == "conflict" else "nobody can say whether it merges"
        )
    yield from (
        f"the pull request's text: {plain(problem.message, 300)}" for problem in told.text_problems if problem.blocks
    )


def _line(lane: LaneReview) -> str:
    proven = f" [{' '.join(lane.evidence)}]" if lane.evidence else ""
    sign = "BLOCKS " if lane.blocks else "ok     "
    return f"{sign} {plain(lane.id, 100)}: {lane.verdict}{proven}: {plain(lane.reason, 300)}"


def _baseline(place: Place) -> None:
    """The team's records, where they can be had; without them a red is nobody's but the change's."""
    server, repository = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    if not server or not repository:
        return
    try:
        found = history.fetch_ref(
            place.repository, accounts.account(os.environ), f"{server}/{accounts.repository(repository)}.git", ref.REF
        )
        if found:
            ref.import_(place.ledger, place.repository)
    except GreenlaneError as error:
        print(f"greenlane: no baseline: {error}", file=sys.stderr)
