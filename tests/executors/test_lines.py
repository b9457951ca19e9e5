"""Bytes into lines."""

from __future__ import annotations

import pytest

from greenlane.executors import lines
from greenlane.executors.lines import Lines


def split(*chunks: bytes) -> list[str]:
    got: list[str] = []
    splitter = Lines(got.append)
    for chunk in chunks:
        splitter.feed(chunk)
    splitter.end()
    return got


def test_a_line_that_arrives_in_pieces_is_one_line() -> None:
    assert split(b"one\ntw", b"o\nthr", b"ee") == ["one", "two", "three"]


def test_a_character_cut_between_two_reads_is_whole() -> None:
    assert split("gr\u00fcn".encode()[:3], "gr\u00fcn".encode()[3:]) == ["gr\u00fcn"]


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert split(b"a\xffb\n") == ["a\ufffdb"]


def test_carriage_returns_at_the_end_go_away() -> None:
    assert split(b"dos\r\n") == ["dos"]


def test_a_line_that_never_ends_is_handed_on_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 4)
    assert split(b"abcdefghij") == ["abcd", "efgh", "ij"]
