"""The same records for other readers."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from greenlane import cli
from greenlane.ledger import Ledger
from greenlane.matrix.model import Evidence, Stage
from greenlane.record.model import Digests, FirstError, Outcome, Record, StageResult

MATRIX = "backends: {cpu: {compiler: gcc}}\nlanes: {products: [{backend: cpu}]}\nstages: {build: [make]}\n"


def stored(folder: Path, started: str, *stages: StageResult) -> None:
    red = any(stage.outcome.is_red for stage in stages)
    record = Record(
        schema=1,
        lane="cpu",
        head="a" * 40,
        dirty=False,
        digests=Digests(matrix="m", lane="l", tree="t"),
        evidence=(Evidence.CHECKED,),
        stages=stages,
        outcome=Outcome.FAIL if red else Outcome.PASS,
        started=started,
    )
    Ledger(folder / ".greenlane" / "ledger").put(record)


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    error = FirstError(message="no <member> & `x` | y", fingerprint="f")
    stored(tmp_path, "2026-01-01", StageResult(stage=Stage.BUILD, outcome=Outcome.PASS))
    stored(
        tmp_path,
        "2026-01-02",
        StageResult(stage=Stage.BUILD, outcome=Outcome.FAIL, first_error=error),
        StageResult(stage=Stage.TEST, outcome=Outcome.BLOCKED, reason="build is red"),
    )
    return tmp_path / "matrix.yaml"


def report(matrix: Path, form: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["report", "--matrix", str(matrix), "--format", form]) == 0
    return capsys.readouterr().out


def test_json_holds_the_newest_record_of_each_lane(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [lane] = json.loads(report(matrix, "json", capsys))["lanes"]
    assert (lane["lane"], lane["outcome"], lane["started"]) == ("cpu", "fail", "2026-01-02")


def test_junit_tells_failures_from_what_was_not_run(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = ElementTree.fromstring(report(matrix, "junit", capsys)).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None and failure.get("message") == "no <member> & `x` | y"


def test_markdown_disarms_what_the_lane_said(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no \\<member\\> &amp; \\`x\\` \\| y" in report(matrix, "markdown", capsys)


def test_sarif_is_whole_without_findings(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(report(matrix, "sarif", capsys))
    assert (document["version"], document["runs"][0]["results"]) == ("2.1.0", [])


def test_a_report_can_be_written_to_a_file(matrix: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "report.json"
    assert cli.main(["report", "--matrix", str(matrix), "--format", "json", "--output", str(target)]) == 0
    assert json.loads(target.read_text())["lanes"]
