"""Starting stays light: what `greenlane list` and a noxfile import, and that sessions are made, run and never skip."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
NOXFILE = 'from greenlane.nox import lanes\n\nlanes("matrix.yaml")\n'

# With a warm cache, `greenlane list` may import these of its own and nothing from outside the standard library.
MAY_IMPORT = {
    "greenlane", "greenlane.cli", "greenlane.errors", "greenlane.matrix", "greenlane.matrix.content",
    "greenlane.matrix.export", "greenlane.matrix.rows",
}  # fmt: skip
HEAVY = {
    "asyncio",
    "inspect",
    "dataclasses",
    "unittest",
    "http",
    "email",
    "xml",
    "concurrent",
    "multiprocessing",
    "difflib",
}
LIST = """
import json, sys
before = set(sys.modules)
from greenlane.cli import main
code = main(["list", "--github", "--matrix", sys.argv[1]])
print(json.dumps([code, sorted(set(sys.modules) - before)]), file=sys.stderr)
"""


def run(*command: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=check)


@pytest.fixture
def project(tmp_path: Path, small: str) -> Path:
    (tmp_path / "matrix.yaml").write_text(small)
    (tmp_path / "noxfile.py").write_text(NOXFILE)
    return tmp_path


def test_list_imports_only_what_it_may(project: Path) -> None:
    for _ in range(2):  # the first call fills the cache
        done = run(sys.executable, "-c", LIST, "matrix.yaml", cwd=project)
    code, modules = json.loads(done.stderr)
    assert code == 0
    assert {name for name in modules if name.split(".")[0] == "greenlane"} == MAY_IMPORT
    tops = {name.split(".")[0] for name in modules} - {"greenlane"}
    assert tops - set(sys.stdlib_module_names) == set()
    assert tops & HEAVY == set()


def test_three_lines_give_a_session_per_lane_with_tags(project: Path) -> None:
    out = run(sys.executable, "-m", "nox", "-l", cwd=project).stdout
    for lane in ("cpu", "cpu-clang", "cpu-sanitize", "rocm-gfx1100", "rocm-gfx1100-6.4", "rocm-gfx942"):
        assert f"- {lane} [" in out
    tagged = run(sys.executable, "-m", "nox", "-l", "-t", "rocm", cwd=project).stdout
    assert "* rocm-gfx942 [rocm]" in tagged
    assert "- cpu [cpu]" in tagged


def test_a_session_passes_posargs_on_and_a_failure_is_no_skip(project: Path) -> None:
    done = run(sys.executable, "-m", "nox", "-s", "cpu-clang", "--", "--no-such-option", cwd=project, check=False)
    assert done.returncode == 1
    assert "unrecognized arguments: --no-such-option" in done.stderr + done.stdout
    assert "was skipped" not in done.stderr


def test_a_mistake_in_the_matrix_ends_nox_with_every_problem(project: Path) -> None:
    (project / "matrix.yaml").write_text("version: 3\nbackends: {cpu: {}}\nlanes: {productz: []}\n")
    done = run(sys.executable, "-m", "nox", "-l", cwd=project, check=False)
    assert done.returncode != 0
    assert "matrix.yaml:1:10: version: 3 is not one of 1" in done.stderr + done.stdout
    assert "matrix.yaml:3:9: unknown key 'productz'; did you mean 'products'?" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
