"""The page's first line: what needs whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from greenlane.report.page.lane import LaneView
from greenlane.report.signs import Family
from greenlane.review.model import Review, Verdict

RED = (Family.BAD, Family.UNSURE)


def headline(lanes: Sequence[LaneView], review: Review | None) -> tuple[Family, str]:
    return _of_records(lanes) if review is None else _of_review(review)


def _of_review(review: Review) -> tuple[Family, str]:
    required = [lane for lane in review.lanes if lane.required]
    reds = sum(lane.blocks and lane.verdict is not Verdict.NOT_RUN for lane in required)
    missing = sum(lane.verdict is Verdict.NOT_RUN for lane in required)
    if review.merge.state == "conflict":
        return Family.BAD, f"Conflicts with {review.base_commit}: the author has to rebase"
    if reds:
        return Family.BAD, f"{_lanes(reds)} red: the author has to look"
    if missing:
        return Family.NONE, f"Nothing is red, but {_lanes(missing)} not proven: somebody has to run them"
    return Family.GOOD, f"All {len(required)} required lanes are proven at this commit"


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
