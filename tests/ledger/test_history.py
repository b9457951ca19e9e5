"""Flakes, ages, last runs, series, and what may be forgotten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from greenlane.cli import main
from greenlane.errors import EnvironmentMissing
from greenlane.ledger import Ledger, history, retention
from greenlane.matrix.model import Evidence, Stage
from greenlane.record.model import FirstError, Outcome, Record, StageResult

Make = Callable[..., Record]


def stages(outcome: Outcome, fingerprint: str = "f1") -> dict[str, object]:
    error = None if outcome is Outcome.PASS else FirstError(message="m", fingerprint=fingerprint)
    return {"stages": (StageResult(stage=Stage.TEST, outcome=outcome, first_error=error),), "outcome": outcome}


def test_one_input_with_two_answers_is_a_flake(record: Make, ledger: Ledger) -> None:
    answers = {"a": [Outcome.PASS, Outcome.FAIL], "b": [Outcome.PASS, Outcome.PASS], "c": [Outcome.FAIL]}
    for head, outcomes in answers.items():
        for day, outcome in enumerate(outcomes, 1):
            ledger.put(record(head=head * 40, started=f"2026-01-0{day}T00:00:00Z", **stages(outcome)))
    assert history.flake_rate(ledger, "cpu", Stage.TEST) == history.FlakeRate(inputs=2, flaky=1)
    assert history.flake_rate(ledger, "cpu", Stage.TEST).rate == 0.5
    assert history.flake_rate(ledger, "cuda", Stage.TEST).rate == 0.0


def test_a_dirty_tree_says_nothing_about_flakes(record: Make, ledger: Ledger) -> None:
    for day, outcome in enumerate((Outcome.PASS, Outcome.FAIL), 1):
        ledger.put(record(started=f"2026-01-0{day}T00:00:00Z", dirty=True, **stages(outcome)))
    assert history.flake_rate(ledger, "cpu", Stage.TEST).inputs == 0


def test_the_age_of_a_red_is_that_of_its_first_record(record: Make, ledger: Ledger) -> None:
    for day in (3, 1, 2):
        ledger.put(record(head=str(day) * 40, started=f"2026-01-0{day}T00:00:00Z", **stages(Outcome.FAIL)))
    ledger.put(record(head="4" * 40, started="2025-12-01T00:00:00Z", trust="fork", **stages(Outcome.FAIL)))
    assert history.first_seen_of(ledger, {"f1", "other"}) == {("cpu", "test", "f1"): "2026-01-01T00:00:00Z"}
    assert history.first_seen_of(ledger, set()) == {}


def test_the_last_run_on_the_target_is_found_behind_newer_builds(record: Make, ledger: Ledger) -> None:
    ledger.put(record(head="1" * 40, started="2026-01-01T00:00:00Z", evidence=(Evidence.BUILT, Evidence.RAN_ON_TARGET)))
    ledger.put(record(head="2" * 40, started="2026-01-02T00:00:00Z", evidence=(Evidence.BUILT,)))
    found = history.last_with(ledger, "cpu", Evidence.RAN_ON_TARGET)
    assert found and found.head == "1" * 40
    assert history.last_with(ledger, "cpu", Evidence.EMULATED) is None


def test_a_benchmark_series_runs_from_old_to_new(record: Make, ledger: Ledger) -> None:
    for day, value in ((2, 50.0), (1, 40.0)):
        metrics = {"metrics": {"decode_tokens_per_s": {"median": value}}}
        bench = StageResult(stage=Stage.BENCH, outcome=Outcome.PASS, measurements=metrics)
        ledger.put(record(started=f"2026-01-0{day}T00:00:00Z", stages=(bench,)))
    assert [point.value for point in history.benchmark_series(ledger, "cpu", "decode_tokens_per_s")] == [40.0, 50.0]


def test_a_lanes_past_is_told_in_lines(
    record: Make, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = {"metrics": {"decode": {"median": 40.0}}}
    bench = StageResult(stage=Stage.BENCH, outcome=Outcome.PASS, measurements=metrics)
    error = FirstError(message="m", fingerprint="f1")
    red = StageResult(stage=Stage.TEST, outcome=Outcome.FAIL, first_error=error)
    green = StageResult(stage=Stage.TEST, outcome=Outcome.PASS)
    for day, test in enumerate((green, red, red), 1):
        ledger.put(record(started=f"2026-01-0{day}T00:00:00Z", evidence=(Evidence.BUILT,), stages=(test, bench)))
    monkeypatch.setattr("greenlane.ledger.command.Ledger", lambda _: ledger)
    assert main(["ledger", "history", "--matrix", str(tmp_path / "matrix.yaml")]) == 0
    lane, *lines = capsys.readouterr().out.splitlines()
    assert lane == "cpu"
    assert [" ".join(line.split()) for line in lines] == [
        "built last at aaaaaaaaaa, 2026-01-03",
        "test red since 2026-01-02",
        "test 1 of 1 repeated inputs gave two answers (100%)",
        "bench 0 of 1 repeated inputs gave two answers (0%)",
        "decode 40 40 40",
    ]


def test_records_far_from_every_branch_are_collected(
    record: Make, ledger: Ledger, repository: Path, commit: Callable[[str], str]
) -> None:
    commits = [commit(f"number {number}") for number in range(4)]
    old_run = ledger.put(record(head=commits[0], started="2026-01-01T00:00:00Z", evidence=(Evidence.RAN_ON_TARGET,)))
    origin = ledger.put(record(head=commits[0], started="2026-01-02T00:00:00Z"))
    doomed = ledger.put(record(head=commits[1], started="2026-01-03T00:00:00Z"))
    unknown = ledger.put(record(head="f" * 40, started="2026-01-04T00:00:00Z"))
    near = ledger.put(record(head=commits[3], started="2026-01-05T00:00:00Z", reused_from=origin))
    assert set(retention.collect(ledger, repository, keep=2)) == {doomed, unknown}
    assert set(ledger.ids()) == {row.id for row in ledger.rows()} == {old_run, origin, near}


def test_nothing_is_collected_outside_of_a_repository(record: Make, ledger: Ledger, tmp_path: Path) -> None:
    kept = ledger.put(record())
    with pytest.raises(EnvironmentMissing, match="not a git repository"):
        retention.collect(ledger, tmp_path)
    assert ledger.ids() == [kept]
