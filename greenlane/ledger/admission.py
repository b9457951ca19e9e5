"""What a record must be, beyond its schema, to enter the store: values that no reader stumbles over."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from datetime import UTC, datetime

from greenlane.record.model import Record

MAX_DEPTH = 24  # of nested values
LARGEST = 2**63
# Half a surrogate pair; NaN and its like; an exponent; more digits than 64 bits hold.
SUSPICIOUS = re.compile(rb"\\u[dD][89a-fA-F]|NaN|Infinity|[:\[,]\s*-?\d+(?:\.\d+)?[eE]|[:\[,]\s*-?\d{18}")
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
LANE = re.compile(r"[^\s/\\\x00-\x1f\x7f]{1,200}")


def unfit(content: bytes, document: object) -> str | None:
    """Why the JSON in these bytes is not fit to be stored and shown, or None. Values are looked at one by one only
    where the bytes hold something that may be a number out of bounds or half a character."""
    if SUSPICIOUS.search(content):
        return problem(document)
    return None if _depth(document) <= MAX_DEPTH else f"nested more than {MAX_DEPTH} deep"


def _depth(document: object) -> int:
    level: list[object] = [document]
    for depth in range(MAX_DEPTH + 1):
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
            if isinstance(inner, dict | list)
        ]
        if not level:
            return depth
    return MAX_DEPTH + 1


def problem(document: object, depth: int = 0) -> str | None:
    """Why decoded JSON is not fit to be stored and shown: too deep, no finite number, no whole text. None if it is."""
    if depth > MAX_DEPTH:
        return f"nested more than {MAX_DEPTH} deep"
    values: Collection[object] = (document,)
    if isinstance(document, dict):
        values = (*document, *document.values())
    elif isinstance(document, list):
        values = document
    for value in values:
        found = problem(value, depth + 1) if isinstance(value, dict | list) else _unfit(value)
        if found is not None:
            return found
    return None


def _unfit(value: object) -> str | None:
    if isinstance(value, str):
        return None if value.isascii() or _is_whole(value) else "half a surrogate pair in a text"
    if isinstance(value, float):
        return None if math.isfinite(value) else "a number that is not finite"
    if isinstance(value, int):
        return None if -LARGEST <= value < LARGEST else "a number of more than 64 bits"
    return None


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def objection(record: Record) -> str | None:
    """Why a record that fits the schema is refused all the same, or None."""
    for name, value in (("head", record.head), ("base", record.base), ("merge_tree", record.merge_tree)):
        if value is not None and not COMMIT.fullmatch(value):
            return f"{name}: not a full commit id"
    if not LANE.fullmatch(record.lane):
        return "lane: not the id of a lane"
    if record.started and instant(record.started) is None:
        return "started: not a date and time in ISO 8601"
    return None


def instant(text: str) -> datetime | None:
    """The moment that an ISO 8601 text names, in UTC; None for a text that names none."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def sortable(started: str) -> str:
    """The start of a record as the index orders it: UTC, whole seconds; "" for an unknown one, which sorts last.

    >>> sortable("2026-01-01T02:00:00+02:00")
    '2026-01-01T00:00:00Z'
    """
    moment = instant(started)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""
