"""A job's summary, the terminal, and measurements that have not the shape which they should have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from greenlane import cli
from greenlane.ledger import Ledger
from greenlane.matrix.model import Lane, Stage
from greenlane.record.git import git, git_text
from greenlane.record.model import Toolchain
from greenlane.report import page, summary, terminal
from greenlane.report.page import first_errors, gates
from greenlane.report.page.history import Past
from greenlane.report.page.lane import view
from greenlane.report.templates import Templates
from tests.report import gallery

LANE = Lane(id="cpu", backend="cpu")


def test_a_report_is_added_to_the_jobs_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = gallery.filled(tmp_path / "engine", gallery.SMALL, history=0)
    target = tmp_path / "summary.md"
    target.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(target))
    assert cli.main(["report", "--matrix", str(matrix), "--format", "markdown"]) == 0
    summary.after_run(matrix, ["cpu"])
    lines = target.read_text().splitlines()
    assert lines[0] == "before"
    assert [line[:9] for line in lines if line.startswith("| `cpu`")] == ["| `cpu` |"] * 2


def test_a_summary_that_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = gallery.filled(tmp_path / "engine", gallery.SMALL, history=0)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "none" / "summary.md"))
    assert cli.main(["report", "--matrix", str(matrix), "--format", "markdown"]) == 3
    assert "cannot be written" in capsys.readouterr().err


def test_a_summary_within_its_budget_keeps_the_red_lanes() -> None:
    records = [
        gallery.record(Lane(id=f"l{n}", backend="cpu"), n, red=Stage.BUILD if n == 450 else None, rich=False)
        for n in range(500)
    ]
    whole = summary.render(records, Templates())
    shown = summary.render(records, Templates(), budget=9_000)
    assert len(whole) > 9_000 >= len(shown.encode())
    assert "`l450`" in shown and "more lanes are left out" in shown


def test_the_terminal_shows_the_first_error_without_its_control_characters() -> None:
    record = gallery.record(LANE, 0, red=Stage.BUILD, rich=False, error="\x1b[31mred\x1b[0m \u202eback")
    lanes = [view(LANE, record, "f" * 64, None, Past())]
    shown = terminal.render(page.Page("engine", lanes), styled=True)
    assert shown.startswith("1 lane is red\n")
    assert "[31mred[0m back" in shown and "\x1b" not in shown and "\u202e" not in shown
    assert "greenlane reproduce ffffffffffff" in shown


@pytest.mark.parametrize(
    ("form", "begin"),
    [
        ("html", "<!doctype"),
        ("text", "The "),
        ("json", "{"),
        ("junit", "<?xml"),
        ("sarif", "{"),
        ("markdown", "| lane"),
    ],
)
def test_each_form_exists(form: str, begin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix = gallery.filled(tmp_path / "engine", gallery.SMALL, history=0)
    assert cli.main(["report", "--matrix", str(matrix), "--format", form]) == 0
    shown = capsys.readouterr().out.lstrip()
    assert shown.startswith(begin) or (form == "text" and shown.startswith("1 lane is green"))


STRANGE: list[Any] = [None, 1, "x", [], {}, [1, None, "x", [], {}], {"a": 1, "b": None}, 10**400, float("nan")]


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: str(value)[:20])
def test_measurements_of_any_shape_are_shown_or_left_out(value: Any) -> None:
    gates.comparisons({"comparisons": value})
    gates.comparisons({"comparisons": [{"divergences": value}, {"divergences": [{"context": value, "index": value}]}]})
    gates.counters({"on": value, "off": {"launches": value}})
    gates.counters({"on": {"launches": {"k": value}}})
    gates.metrics({"metrics": value, "samples": value})
    gates.metrics({"metrics": {"m": value}, "samples": [{"arm": "head", "values": {"m": value}}]})
    gates.metrics({"metrics": {"m": {"interval": value, "effect": value, "median": value}}, "samples": []})
    gates.metrics({"metrics": {"m": {"interval": [value, 1.0], "effect": 0.0, "margin": value}}})


def test_a_huge_record_makes_no_huge_page() -> None:
    huge = "x" * 1_000_000
    record = gallery.record(LANE, 0, red=Stage.BUILD, rich=True, error=huge)
    finding = gallery.finding("cpu", huge)
    record = record.model_copy(update={"findings": (finding,) * 500, "toolchain": Toolchain(compiler=huge)})
    made = page.render(page.Page("engine", [view(LANE, record, "f" * 64, None, Past())]), Templates())
    assert len(made) < 150_000


def test_lanes_that_failed_alike_stand_together() -> None:
    lanes = [Lane(id=f"l{n}", backend="cpu") for n in range(5)]
    errors = [Stage.BUILD, Stage.BUILD, None, Stage.TEST, Stage.BUILD]
    views = [
        view(lane, gallery.record(lane, 0, red=red, rich=False), None, None, Past())
        for lane, red in zip(lanes, errors, strict=True)
    ]
    assert [[lane.id for lane in cause] for cause in first_errors(views)] == [["l0", "l1", "l4"], ["l3"]]


def test_a_green_lane_below_its_requirement_is_not_shown_as_green() -> None:
    made = gallery.record(LANE, 0, red=None, rich=False)
    record = made.model_copy(update={"evidence": made.evidence[:1]})
    shown = view(LANE, record, None, None, Past())
    assert (shown.word, shown.family, shown.missing) == ("incomplete", "none", ("built",))


def test_a_page_says_which_gates_were_proven() -> None:
    proof = {"proven": True, "how": "faults/a.patch", "commit": "a" * 40}
    record = gallery.record(LANE, 0, red=None, rich=False).model_copy(update={"proven": {"exact": proof, "reach": 3}})
    told = dict(view(LANE, record, None, None, Past()).facts)["proven"]
    assert "exact went red when it was broken (faults/a.patch, aaaaaaaaaa)" in told
    assert "reach did not notice" in told


def test_damaged_records_are_passed_over(tmp_path: Path) -> None:
    matrix = gallery.filled(tmp_path / "engine", gallery.SMALL, history=1)
    ledger = Ledger(matrix.parent / ".greenlane" / "ledger")
    newest = ledger.rows()[0]
    next((matrix.parent / ".greenlane").rglob(f"{newest.id}.json")).write_text("{}")
    assert ledger.rows()[1].head[:10] in summary.render(_records(matrix), Templates())


def test_records_of_the_commit_that_is_checked_out_come_first(tmp_path: Path) -> None:
    matrix = gallery.filled(tmp_path / "engine", gallery.SMALL, history=0)
    git(matrix.parent, "init", "-q")
    git(matrix.parent, "add", "matrix.yaml")
    who = {f"GIT_{who}_{what}": "t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    git(matrix.parent, "commit", "-q", "-m", "m", env=who)
    head = git_text(matrix.parent, "rev-parse", "HEAD")
    older = gallery.record(LANE, 0, red=Stage.TEST, rich=False, age=9).model_copy(update={"head": head})
    Ledger(matrix.parent / ".greenlane" / "ledger").put(older)
    assert [record.head for record in _records(matrix)] == [head]


def _records(matrix: Path) -> Any:
    from greenlane.report.command import of_matrix

    return of_matrix(matrix)
