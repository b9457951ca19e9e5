"""The first error of a log. The logs are what the tools print; nothing here was made by the code under test."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenlane.lanes.first_error import first_error
from greenlane.matrix.model import Stage

LOGS = Path(__file__).parent / "logs"

CASES = [
    # log, stage, file, line, rule, part of the message
    ("gcc", Stage.BUILD, "csrc/a.cpp", 2, "compiler", "'pust' was not declared in this scope"),
    ("gcc-werror", Stage.BUILD, "csrc/b.cpp", 1, "-Wunused-function", "defined but not used"),
    ("clang", Stage.BUILD, "csrc/c.cpp", 3, "compiler", "no matching function for call to 'launch'"),
    ("hipcc", Stage.BUILD, "csrc/gpu/k.cu", 4, "compiler", "use of undeclared identifier 'blockIdxx'"),
    ("nvcc", Stage.BUILD, "csrc/gpu/k.cu", 4, "nvcc", 'identifier "blockIdxx" is undefined'),
    ("ptxas", Stage.BUILD, None, None, "ptxas", "uses too much shared data"),
    ("ld", Stage.BUILD, "main.cpp", None, "ld", "undefined reference to `helper(int)'"),
    ("lld", Stage.BUILD, "main.cpp", 3, "lld", "undefined symbol: helper(int)"),
    ("cmake", Stage.CONFIGURE, "CMakeLists.txt", 3, "cmake", "asked CMake to find a package configuration file"),
    ("ctest", Stage.TEST, None, None, "ctest", "test reduce_test failed"),
    ("pytest", Stage.TEST, "tests/test_a.py", 4, "pytest", "assert 3 == 4"),
    ("asan", Stage.TEST, "csrc/a.cpp", 5, "AddressSanitizer", "heap-buffer-overflow"),
    ("ubsan", Stage.TEST, "csrc/a.cpp", 7, "ubsan", "signed integer overflow"),
    ("tsan", Stage.TEST, "csrc/pool.cpp", 9, "ThreadSanitizer", "data race"),
    ("shell", Stage.TEST, None, None, "shell", "not found"),
]


@pytest.mark.parametrize(("log", "stage", "file", "line", "rule", "message"), CASES, ids=[case[0] for case in CASES])
def test_each_tools_first_error_is_found(
    log: str, stage: Stage, file: str | None, line: int | None, rule: str, message: str
) -> None:
    found = first_error((LOGS / f"{log}.txt").read_text().splitlines(), stage, "/greenlane/source", "/greenlane/build")
    assert found is not None
    assert (found.file, found.line, found.rule) == (file, line, rule)
    assert message in found.message
    assert found.fingerprint


def test_the_same_error_in_another_place_has_the_same_fingerprint() -> None:
    one = first_error(["/greenlane/source/csrc/a.cpp:2:13: error: 'x' was not declared"], Stage.BUILD)
    two = first_error(["/tmp/other/csrc/a.cpp:90:1: error: 'x' was not declared"], Stage.BUILD)
    assert one is not None and two is not None
    assert one.fingerprint == two.fingerprint


def test_warnings_and_counts_are_no_errors() -> None:
    lines = ["a.cpp:1:2: warning: unused variable 'x' [-Wunused]", "0 errors generated.", "a.cpp:5:1: error: real"]
    found = first_error(lines, Stage.BUILD)
    assert found is not None and found.line == 5


def test_colours_dont_hide_an_error() -> None:
    found = first_error(["\x1b[1ma.cpp:5:1: \x1b[31merror: \x1b[0mred"], Stage.BUILD)
    assert found is not None and (found.file, found.line, found.message) == ("a.cpp", 5, "red")


def test_a_log_that_no_tool_is_known_in_gives_its_last_words() -> None:
    found = first_error(["starting", "widget frobnicated badly", ""], Stage.TEST)
    assert found is not None and found.message == "widget frobnicated badly"


def test_an_empty_log_has_no_first_error() -> None:
    assert first_error([], Stage.BUILD) is None
