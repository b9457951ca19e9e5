"""Figures: what a sentence says in percent, and the interval that a benchmark measured."""

from __future__ import annotations

import re

PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s?%")
TIMES = re.compile(r"(\d+(?:\.\d+)?)\s?[x×]", re.IGNORECASE)


def figure(sentence: str) -> float | None:
    """The gain that a sentence states, as a fraction.

    >>> figure("+12 % decode"), figure("1.5x faster"), figure("faster")
    (0.12, 0.5, None)
    """
    if match := PERCENT.search(sentence):
        return float(match[1]) / 100
    if match := TIMES.search(sentence):
        return round(float(match[1]) - 1, 9)
    return None


def interval(metric: object) -> tuple[float, float] | None:
    """(low, high) of a metric of the bench stage, as fractions, more is better. None where none was measured."""
    ends = metric.get("interval") if isinstance(metric, dict) else None
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        return None
    low, high = ends
    if isinstance(low, bool | str) or not isinstance(low, int | float) or not isinstance(high, int | float):
        return None
    return float(low), float(high)
