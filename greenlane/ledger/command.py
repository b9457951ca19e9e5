"""`greenlane ledger ls|history|export|import|gc|reindex`."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from greenlane.errors import MatrixError
from greenlane.ledger import past, ref, retention
from greenlane.ledger.artifacts import take
from greenlane.ledger.store import Ledger
from greenlane.record.git import commit_of

STATE = ".greenlane"


def command(arguments: argparse.Namespace) -> int:
    root = arguments.matrix.parent
    ledger = Ledger(root / STATE / "ledger")
    return VERBS[arguments.action](ledger, root, arguments)


def ls(ledger: Ledger, root: Path, arguments: argparse.Namespace) -> int:
    where = {"lane": arguments.lane} if arguments.lane else {}
    for row in ledger.rows(**where):
        head = row.head[:10] + ("+" if row.dirty else " ")  # + marks a dirty tree
        print(f"{row.id[:12]}  {row.started:20}  {row.lane:24} {row.outcome:9} {head}  {' '.join(row.evidence)}")
    return 0


def history(ledger: Ledger, root: Path, arguments: argparse.Namespace) -> int:
    lanes = [arguments.lane] if arguments.lane else sorted({row.lane for row in ledger.rows()})
    for lane in lanes:
        print("\n  ".join((lane, *past.told(ledger, lane))))
    return 0


def export(ledger: Ledger, root: Path, arguments: argparse.Namespace) -> int:
    name = arguments.ref or ref.REF
    print(f"{ref.export(ledger, root, name)} records added to {name}; share them: git push REMOTE {name}")
    return 0


def import_(ledger: Ledger, root: Path, arguments: argparse.Namespace) -> int:
    if arguments.source:
        commits = frozenset(_commit(root, revision) for revision in arguments.commit) or None
        taken, refused = take(ledger, arguments.source, arguments.trust, commits)
    elif arguments.trust or arguments.commit:
        raise MatrixError("--trust and --commit go with --from DIR: records of a git ref keep the trust they carry")
    else:
        taken, refused = ref.import_(ledger, root, arguments.ref or ref.REF)
    return _told(f"{taken} records taken", refused)


def _commit(root: Path, revision: str) -> str:
    if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", revision):
        return revision  # the commit itself need not be here
    commit = commit_of(root, revision)
    if commit is None:
        raise MatrixError(f"--commit {revision}: no such commit here; fetch it, or give its full id")
    return commit


def gc(ledger: Ledger, root: Path, arguments: argparse.Namespace) -> int:
    gone = retention.collect(ledger, root, arguments.keep)
    print(f"{len(gone)} records removed; kept: the {arguments.keep} commits nearest to each branch, and newest runs")
    return 0


def reindex(ledger: Ledger, root: Path, arguments: argparse.Namespace) -> int:
    count, damaged = ledger.reindex()
    return _told(f"{count} records indexed", damaged)


def _told(done: str, refused: list[str]) -> int:
    print(f"{done}, {len(refused)} refused")
    for line in refused:
        print(f"greenlane: {line}", file=sys.stderr)
    return 1 if refused else 0


VERBS = {"ls": ls, "history": history, "export": export, "import": import_, "gc": gc, "reindex": reindex}
