"""The story replayed on tests/fixtures/port: clean in every lane, and each faulty variant as expected.json says."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from greenlane.checks.check import run_checks
from greenlane.checks.report import Report
from greenlane.matrix import load

PORT = Path(__file__).parent.parent / "fixtures" / "port"
EXPECTED = json.loads((PORT / "expected.json").read_text())


def _check(root: Path) -> Report:
    return run_checks(load(root / "matrix.yaml"), root)


def _copy(to: Path, variant: str | None = None) -> Path:
    shutil.copytree(PORT, to, ignore=shutil.ignore_patterns("variants"))
    if variant is not None:
        shutil.copytree(PORT / "variants" / variant, to, dirs_exist_ok=True)
    return to


def test_the_engine_is_clean_in_every_lane(tmp_path: Path) -> None:
    report = _check(_copy(tmp_path / "port"))
    assert report.lanes == ("cpu", "cuda-sm_90", "rocm-gfx1100", "rocm-gfx1151")
    assert (report.findings, report.unparsed) == ((), ())


def test_every_variant_has_its_row() -> None:
    assert {path.name for path in (PORT / "variants").iterdir()} == set(EXPECTED)


@pytest.mark.parametrize("variant", sorted(EXPECTED))
def test_a_variant_is_found_with_rule_file_line_and_lanes(variant: str, tmp_path: Path) -> None:
    report = _check(_copy(tmp_path / "port", variant))
    found = [{"rule": f.rule, "file": f.file, "line": f.line, "lanes": list(f.lanes)} for f in report.findings]
    order = [(entry["file"], entry["line"]) for entry in EXPECTED[variant]]
    assert sorted(found, key=str) == sorted(EXPECTED[variant], key=str), order


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ to build the CPU lane with")
@pytest.mark.parametrize("variant", [None, "nine-parameters", "doubled-guard", "never-reached"])
def test_the_cpu_lane_sees_nothing_of_the_gpu_faults(variant: str | None, tmp_path: Path) -> None:
    root = _copy(tmp_path / "port", variant)
    units = ["src/main.cpp", "src/runner.cpp", "src/cpu/platform.cpp"]
    words = ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Iinclude", *units, "-o", "port"]
    assert subprocess.run(words, cwd=root, capture_output=True, text=True, check=False).stderr == ""
    printed = json.loads(subprocess.run(["./port"], cwd=root, capture_output=True, text=True, check=True).stdout)
    assert [len(request["token_ids"]) for request in printed["requests"]] == [8, 8]


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ to build the CPU lane with")
def test_unused_helpers_break_the_cpu_lane_and_the_compiler_names_one_of_the_two(tmp_path: Path) -> None:
    root = _copy(tmp_path / "port", "unused-helpers")
    words = ["g++", "-std=c++20", "-Wall", "-Werror", "-Iinclude", "-c", "src/runner.cpp", "-o", "runner.o"]
    said = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False).stderr
    assert "has_mirror_rows" in said and "defined but not used" in said
    assert len(EXPECTED["unused-helpers"]) == 2
