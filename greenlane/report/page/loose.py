"""Reading measurements of a record: any JSON may stand there, so what has not the expected shape is left out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def number(value: object) -> float | None:
    """A finite number, or nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def numbers(value: object) -> list[float]:
    found = [number(entry) for entry in value] if isinstance(value, list | tuple) else []
    return [entry for entry in found if entry is not None]


def mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list | tuple) else []


def word(value: object, limit: int = 400) -> str:
    """Text of bounded length: a record may be megabytes long, and a page holds many."""
    text = value if isinstance(value, str) else "" if value is None else str(value)[:80]
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def figure(value: float) -> str:
    """Four digits that matter, thousands set apart by a thin space.

    >>> [figure(1867.6), figure(201433088), figure(0.0412), figure(3)]
    ['1\u2009868', '201.4\u2009M', '0.0412', '3']
    """
    for limit, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(value) >= limit:
            return f"{value / limit:.4g}\u2009{letter}"
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", "\u2009")
    return f"{value:.4g}"


def duration(seconds: float) -> str:
    """
    >>> [duration(0), duration(0.04), duration(94.3), duration(4200)]
    ['', '0.0 s', '1:34', '1:10:00']
    """
    if seconds <= 0:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"
