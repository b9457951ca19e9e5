"""`greenlane ci keep`: the records of a trusted run go into the team's ledger, the git ref that everybody fetches."""

from __future__ import annotations

import argparse
import os

from greenlane.errors import EnvironmentMissing, MatrixError
from greenlane.github import account as accounts
from greenlane.github import artifacts, history, target
from greenlane.github.comment import Place, place_of, say
from greenlane.github.forge import Forge, Run, connect
from greenlane.ledger import ref
from greenlane.record.git import commit_of

ATTEMPTS = 5


def command(arguments: argparse.Namespace) -> int:
    if not arguments.repo or not arguments.run:
        raise MatrixError("ci keep needs --repo O/R and --run ID")
    forge = connect(accounts.account(os.environ), accounts.repository(arguments.repo))
    run = forge.run(arguments.run)
    if target.trust_of(forge, run) != "runner":
        say(f"run {run.id} is a fork's: its records are never a baseline, so none is kept")
        return 0
    place = place_of(arguments.matrix)
    taken = artifacts.take(forge, place.ledger, run.id, heads_of(forge, run).__contains__, "runner")
    for line in taken.refused[:20]:
        say(f"refused: {line}")
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    share(place, forge, f"{server}/{forge.repository}.git")
    say(f"{taken.records} records of run {run.id} kept in {ref.REF}")
    return 0


def heads_of(forge: Forge, run: Run) -> frozenset[str]:
    """The run's own head; for one that was started by hand for a pull request, that one's. Never the base's, although a
    red reruns there: what a change's run says of the base may excuse that change, and no other."""
    named = target.TITLE.fullmatch(run.title) if run.event == "workflow_dispatch" else None
    return frozenset({run.head, *([forge.pull(int(named[1])).head] if named else [])})


def share(place: Place, forge: Forge, address: str) -> None:
    """Add what the ref lacks and push it; where another run was quicker, add to what that one pushed."""
    for attempt in range(1, ATTEMPTS + 1):
        if history.fetch_ref(place.repository, forge.account, address, ref.REF):
            ref.import_(place.ledger, place.repository)
        ref.export(place.ledger, place.repository)
        if commit_of(place.repository, ref.REF) is None:
            return  # nothing has ever been kept, and there is nothing to keep
        try:
            history.push_ref(place.repository, forge.account, address, ref.REF)
            return
        except EnvironmentMissing:
            if attempt == ATTEMPTS:
                raise
