"""--confirm on device code: how a unit is read, from whose commands, and what is said where no toolkit is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from greenlane.checks.check import run_checks
from greenlane.checks.confirm import confirm
from greenlane.checks.formats import text
from greenlane.checks.report import Report
from greenlane.matrix.model import Lane, Matrix

ROCM = Lane(
    id="rocm-gfx1100", backend="rocm", arch="gfx1100", archs=("gfx1100",), vendors=("hip",), macros={"USE_HIP": "1"},
    sources=("src/*",),
)  # fmt: skip
MATRIX = Matrix("m", (ROCM,), ())
SOURCE = """#include <hip/hip_runtime.h>
__global__ void scale(float* x, float by) { x[0] *= by; }
void launch(float* x) { scale<<<1, 64>>>(x); }
"""
COMPLAINT = "src/a.hip:3:25: error: no matching function for call to 'scale'"
NO_HEADER = "src/a.hip:1:10: fatal error: 'hip/hip_runtime.h' file not found"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tree" / "src").mkdir(parents=True)
    (tmp_path / "tree" / "src" / "a.hip").write_text(SOURCE)
    return tmp_path / "tree"


def _compiler(folder: Path, monkeypatch: pytest.MonkeyPatch, says: str, code: int) -> Path:
    """A clang++ that notes its words and says one thing."""
    folder.mkdir()
    notes = folder / "notes"
    (folder / "clang++").write_text(
        f'#!/bin/sh\necho "$@" >> {notes}\n[ -z "{says}" ] || echo "{says}" >&2\nexit {code}\n'
    )
    (folder / "clang++").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return notes


def _confirmed(project: Path) -> Report:
    report = run_checks(MATRIX, project)
    assert [finding.rule for finding in report.findings] == ["launch-arity"]
    return confirm(report, MATRIX, project)


def test_a_device_unit_is_read_for_the_lanes_target_and_confirmed(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = _compiler(tmp_path / "bin", monkeypatch, COMPLAINT, 1)
    (finding,) = _confirmed(project).findings
    assert finding.layer == "compiler"
    (words,) = notes.read_text().splitlines()
    assert "-fsyntax-only" in words
    assert "-x hip -nogpulib --offload-arch=gfx1100" in words
    assert words.endswith("-DUSE_HIP=1 src/a.hip")


def test_a_finding_that_the_compiler_denies_is_withdrawn(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _compiler(tmp_path / "bin", monkeypatch, "", 0)
    report = _confirmed(project)
    assert (report.findings, report.withdrawn) == ((), 1)


def test_without_a_toolkit_the_finding_says_that_the_source_alone_stands_behind_it(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = _compiler(tmp_path / "bin", monkeypatch, NO_HEADER, 1)
    report = _confirmed(project)
    assert [finding.layer for finding in report.findings] == ["source"]
    assert "[launch-arity] (by the source alone, no compiler confirmed it)" in text.render(report, project)
    assert ["-nogpuinc" in words for words in notes.read_text().splitlines()] == [False, True]


def test_the_commands_of_the_lanes_own_build_are_used_wherever_its_tree_lay(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = project / ".greenlane" / "lanes" / "rocm-gfx1100" / "artifacts"
    kept.mkdir(parents=True)
    command = (
        "/usr/bin/clang++-21 -x hip -I/greenlane/source/include -DFROM_BUILD=2 --offload-arch=gfx1101 -O3 -std=gnu++20 "
        "-fplugin=/tmp/evil.so -o a.o -c /greenlane/source/src/a.hip"
    )
    entry = {"directory": "/greenlane/build", "command": command, "file": "/greenlane/source/src/a.hip"}
    (kept / "compile_commands.json").write_text(json.dumps([entry]))
    notes = _compiler(tmp_path / "bin", monkeypatch, COMPLAINT, 1)
    _confirmed(project)
    (words,) = notes.read_text().splitlines()
    assert f"-I{project}/include -DFROM_BUILD=2 --offload-arch=gfx1101 -std=gnu++20" in words
    assert "gfx1100" not in words
    assert "evil" not in words and " -o " not in words


def test_silence_about_what_a_linker_has_to_say_proves_nothing(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "src" / "a.hip").unlink()
    (project / "src" / "a.cpp").write_text("int far(int);\nint near() { return far(1); }\n")
    (project / "far.cpp").write_text("int far(int value) { return value; }\n")
    other = Lane(id="all", backend="cpu", sources=("src/*", "far.cpp"))
    matrix = Matrix("m", (ROCM, other), ())
    _compiler(tmp_path / "bin", monkeypatch, "", 0)
    report = confirm(run_checks(matrix, project), matrix, project)
    assert [(finding.rule, finding.layer) for finding in report.findings] == [("link-presence", "source")]
