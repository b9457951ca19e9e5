"""The page's first line: what needs whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from greenlane.report.headline import headline as of_review
from greenlane.report.page.lane import LaneView
from greenlane.report.signs import Family
from greenlane.review.model import Review

FAMILIES = {"🔴": Family.BAD, "🟠": Family.UNSURE, "⚪": Family.NONE, "🟢": Family.GOOD}
RED = (Family.BAD, Family.UNSURE)


def headline(lanes: Sequence[LaneView], review: Review | None) -> tuple[Family, str]:
    return _of_records(lanes) if review is None else _of_review(review)


def _of_review(review: Review) -> tuple[Family, str]:
    sign, told = of_review(review)
    return FAMILIES.get(sign, Family.UNSURE), told


def _of_records(lanes: Sequence[LaneView]) -> tuple[Family, str]:
    counts = Counter(lane.family for lane in lanes)
    red = sum(counts[family] for family in RED)
    if red:
        every = f"{_lanes(red)} red" if red == len(lanes) else f"{red} of {len(lanes)} lanes {_are(red)} red"
        return Family.BAD, every
    if counts[Family.NONE]:
        bare = counts[Family.NONE]
        return Family.NONE, f"Nothing is red, but {bare} of {len(lanes)} lanes {_are(bare)} not proven"
    return Family.GOOD, f"{_lanes(len(lanes))} green"


def _lanes(count: int) -> str:
    return f"{count} lane{'s' if count != 1 else ''} {_are(count)}"


def _are(count: int) -> str:
    return "are" if count != 1 else "is"
