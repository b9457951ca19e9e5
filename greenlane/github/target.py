"""Which pull request a run belongs to, and how far it is to be trusted: GitHub's word for both, never the run's own."""

from __future__ import annotations

import re
from dataclasses import dataclass

from greenlane.github.forge import Forge, Pull, Run
from greenlane.ledger.artifacts import Trust

# How greenlane.yml names a run that a maintainer has started for a pull request.
TITLE = re.compile(r"greenlane for #([1-9]\d{0,9})")


@dataclass(frozen=True, slots=True)
class Target:
    """A pull request that is to be commented, and the run whose records speak."""

    pull: Pull
    run: Run | None = None
    trust: Trust = "runner"


class NoTarget(Exception):
    """There is no pull request to comment, and nothing is wrong with that."""


def of_run(forge: Forge, run_id: int) -> list[Target]:
    """The open pull requests that the run was made for. Raises NoTarget, saying why there is none."""
    run = forge.run(run_id)
    trust = trust_of(forge, run)
    if run.event == "pull_request":
        return [Target(pull, run, trust) for pull in _by_head(forge, run)]
    if run.event == "workflow_dispatch" and trust == "runner":
        return [Target(_by_title(forge, run), run, trust)]
    raise NoTarget(f"run {run.id} is of event {run.event!r}, which has no pull request to comment")


def trust_of(forge: Forge, run: Run) -> Trust:
    """A run of this repository's own branches is a runner's; of any other, and of one that is gone, a fork's."""
    own = run.head_repository is not None and run.head_repository.lower() == forge.repository.lower()
    return "runner" if own else "fork"


def _by_head(forge: Forge, run: Run) -> list[Pull]:
    """By owner, branch and commit: a fork's run names no pull request, and its artifacts could name any."""
    if run.head_repository is None or not run.head_branch:
        raise NoTarget(f"run {run.id}: its fork or branch is gone, so there is nothing to comment")
    owner = run.head_repository.partition("/")[0]
    pulls = forge.open_pulls_of(owner, run.head_branch)
    found = [
        p for p in pulls if p.head == run.head and (p.head_repository or "").lower() == run.head_repository.lower()
    ]
    if not found:
        raise NoTarget(
            f"run {run.id}: no open pull request stands at its head {run.head[:10]}: it has moved on, was closed, or "
            "its branch is gone; the run of the newer head comments"
        )
    return found


def _by_title(forge: Forge, run: Run) -> Pull:
    named = TITLE.fullmatch(run.title)
    if named is None:
        raise NoTarget(f"run {run.id} was started by hand for no pull request")
    return forge.pull(int(named[1]))
