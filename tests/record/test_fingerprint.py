"""The same failure keeps its fingerprint from run to run; different failures and empty words do not share one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenlane.record.fingerprint import fingerprint, is_specific, normalised

SAME = [
    (
        "/home/a/eng/csrc/attn.cpp:12:3: error: no member `x`",
        "/build/7f3a9c1/csrc/attn.cpp:340:17: error: no member `x`",
    ),
    ("csrc/attn.cpp(12): error: no member `x`", "csrc/attn.cpp(99): error: no member `x`"),
    ("FAILED test_combine - AssertionError after 1.2s", "FAILED test_combine - AssertionError after 33 ms"),
    ("illegal access at 0x7f00aa in combine_kernel", "illegal access at 0x1 in combine_kernel"),
    ("\x1b[31merror:\x1b[0m bad row 3", "error: bad row 3"),
    ("2026-01-02T03:04:05Z combine failed: shape", "2025-12-31 23:59:59.123 combine failed: shape"),
    ("commit 3f2a9b7c broke combine", "commit 0a1b2c3d4e5f broke combine"),
    ("C:\\w\\a\\attn.cpp:3: error: no member", "D:\\other\\attn.cpp:9: error: no member"),
    ("ERROR: worker thread 12 lost combine", "ERROR: worker thread 3 lost combine"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_what_varies_from_run_to_run_is_stripped(first: str, second: str) -> None:
    assert normalised(first) == normalised(second)
    assert fingerprint(first) == fingerprint(second) != ""


DIFFERENT = [
    ("too few arguments to `combine`: expected 12, have 9", "too few arguments to `combine`: expected 12, have 11"),
    ("undefined reference to `combine`", "undefined reference to `scatter`"),
    ("attn.cpp: error: no member", "norm.cpp: error: no member"),
]


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_different_failures_keep_apart(first: str, second: str) -> None:
    assert fingerprint(first) != fingerprint(second)


def test_rule_and_target_are_part_of_the_identity() -> None:
    message = "no member `x`"
    prints = {fingerprint(message), fingerprint(message, rule="gcc"), fingerprint(message, rule="gcc", target="a.o")}
    assert len(prints) == 3


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Error: Process completed with exit code 1.",
        "The operation was canceled.",
        "make: *** [Makefile:12: all] Error 2",
        "ninja: build stopped: subcommand failed.",
        "FAILED",
        "1 error",
        "Killed",
        "exit 137",
    ],
)
def test_a_message_that_identifies_nothing_has_no_fingerprint(message: str) -> None:
    assert fingerprint(message) == ""


@given(st.text(max_size=300))
def test_any_text_is_taken_and_normalising_again_changes_nothing_that_counts(text: str) -> None:
    assert isinstance(is_specific(normalised(text)), bool)
    assert fingerprint(text) == fingerprint(text)
