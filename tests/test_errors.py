"""Each way to fail has an exit code of its own, and the command line turns it into one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from greenlane import cli, errors

CLASSES = [errors.LaneRed, errors.MatrixError, errors.EnvironmentMissing, errors.EvidenceMissing]


def test_exit_codes_are_those_of_the_documentation_and_differ() -> None:
    assert [error.exit_code for error in CLASSES] == [1, 2, 3, 4]


@pytest.mark.parametrize("error", CLASSES)
def test_an_error_becomes_one_line_and_its_exit_code(
    error: type[errors.GreenlaneError], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> int:
        raise error("what, where, what to do")

    monkeypatch.setattr(cli, "list_lanes", fail)
    assert cli.main(["list"]) == error.exit_code
    assert capsys.readouterr().err == "greenlane: what, where, what to do\n"


def test_unknown_arguments_exit_with_2() -> None:
    for arguments in ([], ["lst"], ["list", "--jsn"]):
        ran = subprocess.run(
            [sys.executable, "-m", "greenlane", *arguments], capture_output=True, text=True, cwd=Path()
        )
        assert ran.returncode == 2
        assert "Traceback" not in ran.stderr
