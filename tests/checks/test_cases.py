"""Every public fault of cases.jsonl: found where it is in scope, silence elsewhere, no word on the corrected files."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from greenlane.checks.check import run_checks
from greenlane.checks.report import Report


def _load_cases() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cases", Path(__file__).with_name("cases.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["cases"] = module
    spec.loader.exec_module(module)
    return module


cases = _load_cases()
ALL = cases.load()
IN_SCOPE = [case for case in ALL if case.scope == "in"]
OUT_OF_SCOPE = [case for case in ALL if case.scope == "out"]
# Findings that a fault brings along beside the expected one; each was looked at by hand and is true.
CONSEQUENCES = {
    ("guard-condition-11", "unused-parameter", "src/priority.cpp", 1),
    ("missing-include-03", "missing-include", "src/fill.cpp", 6),
}


def _is_met(expected: dict, report: Report) -> bool:
    return any(
        finding.rule == expected["rule"]
        and finding.file == expected["file"]
        and finding.line == expected["line"]
        and set(finding.lanes) == set(expected["lanes"])
        and all(word in finding.message for word in expected["message_has"])
        for finding in report.findings
    )


def test_the_file_holds_what_its_description_counts() -> None:
    assert (len(ALL), len(IN_SCOPE)) == (67, 58)


@pytest.mark.parametrize("case", IN_SCOPE, ids=lambda case: case.id)
def test_the_fault_is_found_with_rule_file_line_and_lanes(case, tmp_path: Path) -> None:
    case.write(tmp_path)
    report = run_checks(case.matrix(), tmp_path)
    assert [expected for expected in case.expect if not _is_met(expected, report)] == []
    places = {(entry["rule"], entry["file"], entry["line"]) for entry in case.expect}
    extra = {(case.id, f.rule, f.file, f.line) for f in report.findings if (f.rule, f.file, f.line) not in places}
    assert extra <= CONSEQUENCES
    assert report.unparsed == ()


@pytest.mark.parametrize("case", OUT_OF_SCOPE, ids=lambda case: case.id)
def test_what_the_files_do_not_hold_is_not_guessed(case, tmp_path: Path) -> None:
    case.write(tmp_path)
    assert run_checks(case.matrix(), tmp_path).findings == ()


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_the_corrected_files_are_clean_in_every_lane(case, tmp_path: Path) -> None:
    case.write(tmp_path, fixed=True)
    assert run_checks(case.matrix(), tmp_path).findings == ()


def test_the_command_line_says_the_same_as_json(tmp_path: Path) -> None:
    case = next(case for case in ALL if case.id == "unused-01")
    case.write(tmp_path)
    (tmp_path / "matrix.yaml").write_text(cases.matrix_yaml(case))
    words = [sys.executable, "-m", "greenlane", "check", "-C", str(tmp_path), "--format", "json"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    document = json.loads(ran.stdout)
    assert ran.returncode == 1
    assert document["lanes"] == ["cpu", "cuda", "rocm"]
    (finding,) = document["findings"]
    assert (finding["rule"], finding["file"], finding["line"]) == ("unused-function", "src/resize.cpp", 3)
    assert finding["lanes"] == ["cpu", "rocm"]
    assert [edit["text"] for edit in finding["suggestion"]["edits"]] == ["#ifdef HAVE_CUDA", "#endif"]
