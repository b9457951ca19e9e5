"""Records and repositories that the ledger's tests share."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from greenlane.ledger import Ledger
from greenlane.matrix.model import Evidence, Stage
from greenlane.record.model import Digests, FirstError, Outcome, Record, StageResult


def make_record(
    lane: str = "cpu", head: str = "a" * 40, started: str = "2026-01-01T00:00:00Z", **changes: object
) -> Record:
    stage = StageResult(
        stage=Stage.BUILD,
        outcome=Outcome.FAIL,
        first_error=FirstError(message="too few arguments", fingerprint="f1", file="a.cpp", line=3),
    )
    fields = {
        "lane": lane,
        "head": head,
        "dirty": False,
        "digests": Digests(matrix="m", lane="l", tree="t"),
        "evidence": (Evidence.CHECKED,),
        "stages": (stage,),
        "outcome": Outcome.FAIL,
        "started": started,
    }
    return Record(**(fields | changes))  # type: ignore[arg-type]


@pytest.fixture
def record() -> Callable[..., Record]:
    return make_record


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    return path


def git(repository: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    ran = subprocess.run(["git", "-C", str(repository), *identity, *arguments], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@pytest.fixture
def commit(repository: Path) -> Callable[[str], str]:
    def make(message: str) -> str:
        git(repository, "commit", "-q", "--allow-empty", "-m", message)
        return git(repository, "rev-parse", "HEAD")

    return make


@pytest.fixture
def run_git(repository: Path) -> Callable[..., str]:
    return lambda *arguments: git(repository, *arguments)
