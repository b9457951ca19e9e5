"""Nothing that a stranger wrote can mention, link, close, open or hide anything in our comment."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenlane.report.markdown import block, code, plain, table, text

HOSTILE = [
    "@org/everyone look",
    "fixes #1, closes org/repo#2, GH-3",
    "<img src=x onerror=alert(1)>",
    "<!-- another bot's marker -->",
    "</details></td>",
    "[click](https://evil.example)",
    "![x](https://evil.example/beacon.png)",
    "https://evil.example www.evil.example",
    "a | b | c",
    "line one\nline two\r\n## heading",
    "``` \n </code>",
    "`code` ``more``",
    "\u202egnp.exe\u202c",
    "&lt;b&gt;",
    "\x1b[31mred\x1b[0m\x00",
    "**bold** _em_ ~~gone~~ $x$",
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_prose_is_disarmed(hostile: str) -> None:
    shown = text(hostile)
    assert "\n" not in shown
    assert not re.search(r"(?<!\\)[<>|`\[\]*_~$]", shown)
    assert not re.search(r"[@#](?=\w)", shown)
    assert not re.search(r"\bGH-\d|\bhttps?:|\bwww\.", shown)
    assert not re.search(r"[\x00-\x1f\u202a-\u202e]", shown)
    assert not re.search(r"&(?!amp;)", shown)


@given(st.text(max_size=400))
def test_any_text_makes_one_whole_code_span(anything: str) -> None:
    span = code(anything)
    fence = re.match(r"`+", span)
    assert fence
    inside = span[len(fence.group()) : -len(fence.group())]
    assert "\n" not in span
    assert fence.group() not in re.findall(r"`+", inside)
    assert not re.search(r"(?<!\\)\|", span)


@given(st.text(max_size=400))
def test_a_block_is_closed_by_its_own_fence_only(anything: str) -> None:
    lines = block(anything).split("\n")
    fence = lines[-1]
    assert set(fence) == {"`"}
    assert all(not line.strip().startswith(fence) for line in lines[1:-1])


@given(st.text(max_size=2000), st.integers(min_value=1, max_value=300))
def test_length_is_bounded(anything: str, limit: int) -> None:
    assert len(plain(anything, limit)) <= limit


def test_a_block_is_cut_in_both_directions() -> None:
    shown = block("x" * 10_000 + "\n" + "y\n" * 1000, lines=3, width=20).split("\n")
    assert len(shown) == 5
    assert max(len(line) for line in shown) == 20


def test_a_table_has_as_many_cells_as_its_head() -> None:
    shown = table(("a", "b"), [(text("x | y"), code("p | q"))])
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in shown.split("\n")] == [3, 3, 3]
