"""Stop strings, cut into pieces in every way."""

from __future__ import annotations

import doctest

from hypothesis import given
from hypothesis import strategies as st

from engine import stop_strings
from engine.stop_strings import StopMatcher

TEXT = st.text(alphabet="ab", max_size=30)


def stream(matcher: StopMatcher, pieces: list[str]) -> str:
    shown = ""
    for piece in pieces:
        shown += matcher.push(piece)
        if matcher.stopped_by is not None:
            return shown
    return shown + matcher.finish()


@given(pieces=st.lists(TEXT, max_size=8), stops=st.lists(st.text(alphabet="ab", min_size=1, max_size=5), max_size=3))
def test_text_ends_before_the_first_stop_string_however_it_is_cut(pieces: list[str], stops: list[str]) -> None:
    matcher = StopMatcher(stops)
    shown = stream(matcher, pieces)
    text = "".join(pieces)
    # A stop string that ends earlier is seen earlier, even where a longer one began before it.
    ends = {text.find(stop) + len(stop) for stop in stops if stop in text}
    if not ends:
        assert shown == text and matcher.stopped_by is None
    else:
        assert matcher.stopped_by in stops and text.startswith(shown + matcher.stopped_by)
        assert not any(stop in shown for stop in stops)


@given(text=TEXT, stop=st.text(alphabet="ab", min_size=1, max_size=5))
def test_one_character_at_a_time_gives_the_same_as_all_at_once(text: str, stop: str) -> None:
    assert stream(StopMatcher([stop]), list(text)) == stream(StopMatcher([stop]), [text])


def test_nothing_is_shown_that_may_still_become_a_stop_string() -> None:
    matcher = StopMatcher(["END"])
    assert [matcher.push(piece) for piece in ("one E", "N", "x E", "ND")] == ["one ", "", "ENx ", ""]
    assert matcher.stopped_by == "END"


def test_the_stop_string_is_kept_where_asked_for() -> None:
    assert stream(StopMatcher(["END"], include_stop=True), ["a E", "ND b"]) == "a END"


def test_the_examples_hold() -> None:
    assert doctest.testmod(stop_strings).failed == 0
