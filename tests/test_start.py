"""What runs no lane starts on any system; what runs one says in a line that it wants Linux."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from greenlane import cli

ROOT = Path(__file__).parent.parent
WINDOWS_LACKS = ("fcntl", "grp", "pwd", "resource", "termios")
PROGRAM = f"""\
import sys
sys.modules |= dict.fromkeys({WINDOWS_LACKS!r})
from greenlane import cli
sys.exit(cli.main(sys.argv[1:]))
"""
MATRIX = """\
stages: {build: [make]}
backends: {cpu: {compiler: gcc}}
lanes: {products: [{backend: cpu}]}
"""


def started(folder: Path, verb: str) -> subprocess.CompletedProcess[str]:
    (folder / "matrix.yaml").write_text(MATRIX)
    command = [sys.executable, "-c", PROGRAM, *verb.split()]
    return subprocess.run(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )


@pytest.mark.parametrize("verb", ["list", "explain cpu", "schema", "check", "doctor", "init -C new", "ci render"])
def test_what_runs_no_lane_needs_nothing_that_windows_lacks(verb: str, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    done = started(tmp_path, verb)
    assert done.returncode == 0, done.stderr


def test_a_ledger_without_file_locks_is_one_line(tmp_path: Path) -> None:
    done = started(tmp_path, "ledger ls")
    assert done.returncode == 3
    assert "no POSIX file locks" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "verb", ["run cpu", "shell cpu", "reproduce x", "images ls", "anchors capture cpu", "emulate -- x"]
)
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_what_runs_lanes_says_that_it_wants_linux(
    verb: str, system: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli.sys, "platform", system)
    assert cli.main(verb.split()) == 3
    assert f"lanes run on Linux, and this is {system}" in capsys.readouterr().err
