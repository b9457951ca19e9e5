"""`greenlane comment`: reviews a pull request and keeps its one comment; start reading at `command`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from greenlane.errors import EnvironmentMissing
from greenlane.github import account as accounts
from greenlane.github import artifacts, event, history, sticky, target, verdict
from greenlane.github.forge import Forge, connect
from greenlane.github.target import NoTarget, Target
from greenlane.ledger import Ledger, ref
from greenlane.record.git import commit_of, git, git_text
from greenlane.report import comment as text
from greenlane.report import summary, templates
from greenlane.review.model import Review
from greenlane.review.review import Asked, review

OTHERS = 20  # open pull requests that a change is tried to merge with


@dataclass(frozen=True, slots=True)
class Place:
    """Where the matrix and its records lie."""

    repository: Path
    matrix: str  # path inside the repository
    ledger: Ledger


def command(arguments: argparse.Namespace) -> int:
    repository = accounts.repository(arguments.repo)
    if event.is_of_fork(os.environ, event.read(os.environ)):
        return _in_its_place(arguments)
    forge = connect(accounts.account(os.environ), repository)
    author = sticky.author_of(forge, arguments.author, os.environ.get("GITHUB_ACTIONS") == "true")
    place = place_of(arguments.matrix)
    try:
        for found in _targets(forge, arguments):
            post(forge, place, found, author, with_verdict=arguments.verdict)
    except NoTarget as reason:
        say(str(reason))
    return 0


def place_of(matrix: Path) -> Place:
    folder = matrix.resolve().parent
    top = Path(git_text(folder, "rev-parse", "--show-toplevel"))
    return Place(top, str(matrix.resolve().relative_to(top)), Ledger(folder / ".greenlane" / "ledger"))


def _targets(forge: Forge, arguments: argparse.Namespace) -> list[Target]:
    return target.of_run(forge, arguments.run) if arguments.run else [Target(forge.pull(arguments.pr))]


def post(forge: Forge, place: Place, found: Target, author: str, *, with_verdict: bool) -> None:
    """Review one pull request and write what came of it. The head must still be the one that was reviewed."""
    tip = _fetched(forge, place, found)
    if found.run is not None:
        _take_records(forge, place, found, tip)
    told = reviewed(forge, place, found, tip)
    render = renderer(place, told)
    _still(forge, found)
    stamp = sticky.Stamp(found.pull.head, (found.run.id, found.run.attempt) if found.run else None)
    kept = sticky.keep(forge, found.pull.number, author, stamp, render)
    say(f"#{found.pull.number}: comment {kept.posted}: {kept.comment.url or kept.comment.id}")
    if kept.comment.author and kept.comment.author.lower() != author.lower():
        say(f"this token writes as {kept.comment.author}: give --author, else every run makes a new comment")
    if kept.duplicates:
        names = ", ".join(str(older.id) for older in kept.duplicates)
        say(f"#{found.pull.number}: older comments of ours are left as they are, delete them by hand: {names}")
    if with_verdict and kept.posted is not sticky.Posted.OUTRUN:
        say(f"#{found.pull.number}: {verdict.publish(forge, told, render(verdict.SUMMARY), kept.comment.url)}")


def _fetched(forge: Forge, place: Place, found: Target) -> str:
    """The base's tip, with both histories here."""
    try:
        return history.fetch(place.repository, forge.account, found.pull)
    except EnvironmentMissing:
        _still(forge, found)
        raise


def _take_records(forge: Forge, place: Place, found: Target, tip: str) -> None:
    """What the team's ledger knows, then what the run itself has uploaded."""
    assert found.run is not None, "only a run has artifacts"
    if history.fetch_ref(place.repository, forge.account, found.pull.clone_url, ref.REF):
        _, refused = ref.import_(place.ledger, place.repository)
        _warn(refused)
    speaks_for = spoken_for(place.repository, found, tip)
    taken = artifacts.take(forge, place.ledger, found.run.id, speaks_for, found.trust)
    say(f"#{found.pull.number}: {taken.records} records of run {found.run.id}, trusted as {found.trust}")
    _warn(taken.refused)


def spoken_for(repository: Path, found: Target, tip: str) -> Callable[[str], bool]:
    """The commits that a run may have records of: its head, and where it is trusted the base, which it reran."""

    def speaks_for(commit: str) -> bool:
        if commit == found.pull.head:
            return True
        known = found.trust == "runner" and commit_of(repository, commit) == commit
        return known and git(repository, "merge-base", "--is-ancestor", commit, tip, check=False).returncode == 0

    return speaks_for


def reviewed(forge: Forge, place: Place, found: Target, tip: str) -> Review:
    """The review, beside the other open pull requests onto the same branch, in the names that GitHub shows."""
    pull = found.pull
    numbers = [other.number for other in forge.open_pulls_onto(pull.base) if other.number != pull.number]
    others = history.fetch_others(place.repository, forge.account, pull, numbers[:OTHERS])
    asked = Asked(place.repository, place.matrix, tip, pull.head, pull.body, tuple(others))
    told = review(place.ledger, asked)
    conflicts = {others[ref]: files for ref, files in told.merge.others.items()}
    return replace(told, base_commit=pull.base, merge=replace(told.merge, others=conflicts))


def renderer(place: Place, told: Review) -> Callable[[int], str]:
    """The comment for a budget, in the words of the merge base's templates."""
    words = templates.of_commit(place.repository, told.merge.merge_base, place.matrix)
    return lambda budget: text.render(told, budget, words)


def _still(forge: Forge, found: Target) -> None:
    """A review of an older head must not stand over a newer one. GitHub says which head is the pull request's now:
    after a force-push neither dates nor ancestry can."""
    now = forge.pull(found.pull.number)
    if now.head != found.pull.head:
        raise EnvironmentMissing(
            f"#{now.number} moved from {found.pull.head[:10]} to {now.head[:10]} meanwhile, so this review of the "
            "older head is not posted; run it again for the new one"
        )


def _in_its_place(arguments: argparse.Namespace) -> int:
    """A fork's run can't comment: its step's summary gets the text, and greenlane-comment.yml follows."""
    say("this is a fork's run and its token may only read: the comment comes from greenlane-comment.yml")
    place = place_of(arguments.matrix)
    told = event.read(os.environ).get("pull_request") or {}
    base = str((told.get("base") or {}).get("sha") or "")
    head = str((told.get("head") or {}).get("sha") or "")
    if commit_of(place.repository, base) and commit_of(place.repository, head):
        body = str(told.get("body") or "")
        found = review(place.ledger, Asked(place.repository, place.matrix, base, head, body))
        summarize(renderer(place, found)(text.BUDGET))
    return 0


def summarize(content: str) -> None:
    """Into the step's summary in a workflow, else to standard output."""
    if os.environ.get(summary.VARIABLE):
        summary.publish(content)
    else:
        print(content, end="")


def say(line: str) -> None:
    print(f"greenlane: {line}", file=sys.stderr)


def _warn(refused: list[str]) -> None:
    for line in refused[:20]:
        say(f"refused: {line}")
    if len(refused) > 20:
        say(f"refused: {len(refused) - 20} more")
