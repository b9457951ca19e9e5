"""What the machine did to a lane, told apart from what the lane did."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from greenlane.errors import EnvironmentMissing
from greenlane.images.build import OUTSIDE
from greenlane.lanes import infra
from greenlane.matrix.model import Stage
from greenlane.record.model import Outcome, StageResult

PLANNED = (Stage.CHECK, Stage.IMAGE, Stage.BUILD, Stage.TEST)
FULL = ["cc1plus: fatal error: error writing to /tmp/x.s: No space left on device"]


def passed(*stages: Stage) -> dict[Stage, StageResult]:
    return {stage: StageResult(stage=stage, outcome=Outcome.PASS) for stage in stages}


def test_the_stage_that_was_cut_says_why_and_the_rest_is_blocked() -> None:
    results = passed(Stage.CHECK, Stage.IMAGE)
    infra.cut(results, PLANNED, "the daemon went away", "lanes/cpu/logs/build.log")
    assert [results[stage].outcome for stage in PLANNED] == ["pass", "pass", "fail", "blocked"]
    error = results[Stage.BUILD].first_error
    assert error is not None and (error.rule, error.message, error.fingerprint) == ("infra", "the daemon went away", "")
    assert infra.prevented(results[Stage.BUILD]) and infra.prevented(results[Stage.TEST])
    assert not infra.prevented(results[Stage.CHECK])


def test_a_lane_that_never_had_a_place_was_cut_at_its_image() -> None:
    results: dict[Stage, StageResult] = {}
    infra.cut(results, PLANNED, "no daemon", None)
    assert [results[stage].outcome for stage in PLANNED] == ["blocked", "fail", "blocked", "blocked"]


def test_the_reason_names_the_file_and_what_to_do() -> None:
    assert infra.reason(EnvironmentMissing("no daemon")) == "no daemon"
    said = infra.reason(OSError(errno.ENOSPC, "No space left on device", "/x/log"))
    assert said == "/x/log: No space left on device; free space or mend the rights"


@pytest.mark.parametrize(("free", "full"), [(0, True), (2**40, False)])
def test_a_full_disk_is_believed_only_when_it_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, full: bool
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_bavail=free, f_frsize=1, f_favail=9))
    assert infra.disk_is_full(tmp_path, FULL) is full
    assert not infra.disk_is_full(tmp_path, ["error: 'x' was not declared"])


@pytest.mark.parametrize(
    ("line", "outside"),
    [
        ("#5 1.2 E: Failed to fetch http://a/InRelease  Temporary failure resolving 'a'", True),
        ("failed to solve: debian:forky: failed to do request: Head: dial tcp: lookup x: no such host", True),
        (
            "WARNING: Retrying: NewConnectionError: Failed to establish a new connection'",
            True,
        ),
        ("E: The repository has Hash Sum mismatch", True),
        ("write /var/lib/docker/tmp/x: no space left on device", True),
        ("E: Unable to locate package g++-99", False),
        ("ERROR: No matching distribution found for nonesuch==1", False),
        ("/bin/sh: 1: gcc: not found", False),
    ],
)
def test_a_builds_words_tell_the_network_from_the_dockerfile(line: str, outside: bool) -> None:
    assert bool(OUTSIDE.search(line)) is outside
