"""The kinds of value that a matrix is written in: words, lists, durations, sizes, commands."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB)")
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SPAN = 366 * 86400.0  # the longest duration that makes sense, in seconds


def as_written(value: Any) -> Any:
    """A number or a truth value where a word is wanted: the word as it was written (`7.10`, not 7.1)."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return getattr(value, "text", str(value))
    return value


def listed(value: Any) -> Any:
    """One value where a list is wanted."""
    return value if isinstance(value, list | tuple) or value is None else [value]


def seconds(value: Any) -> float:
    """
    >>> seconds("1h30m"), seconds("90s"), seconds(5)
    (5400.0, 90.0, 5.0)
    """
    match = _DURATION.fullmatch(value) if isinstance(value, str) and value else None
    if match:
        hours, minutes, rest = (int(part[:9] or 0) for part in match.groups(default="0"))
        value = hours * 3600 + minutes * 60 + rest
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _SPAN:
        raise ValueError("a duration such as 90s, 20m or 1h30m is wanted")
    return float(value)


def size(value: Any) -> int:
    """
    >>> size("8GiB"), size("1.5MB")
    (8589934592, 1500000)
    """
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match and len(match.group(1)) < 16:
        value = int(float(match.group(1)) * _UNITS[match.group(2)])
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**60:
        raise ValueError("a size such as 512MiB or 8GiB is wanted")
    return int(value)


def inside(path: str) -> str:
    """A path that stays below the matrix's folder."""
    if path.startswith(("/", "~")) or ".." in path.split("/"):
        raise ValueError("a path below the matrix's folder is wanted")
    return path


def matching(pattern: str, wanted: str) -> Callable[[str], str]:
    """A validator for words of one form; `wanted` ends the message."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(f"{wanted} is wanted")
        return value

    return check


_WORD = {"type": ["string", "number", "boolean"]}
_WORDS = {"anyOf": [_WORD, {"type": "array", "items": _WORD}]}

Word = Annotated[str, BeforeValidator(as_written), Field(min_length=1, max_length=4096), WithJsonSchema(_WORD)]
Text = Annotated[str, BeforeValidator(as_written), Field(max_length=65536), WithJsonSchema(_WORD)]
Words = Annotated[tuple[Word, ...], BeforeValidator(listed), WithJsonSchema(_WORDS)]
OptionalWords = Annotated[
    tuple[Word | None, ...],
    BeforeValidator(listed),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [_WORD, {"type": "array", "items": {"anyOf": [_WORD, {"type": "null"}]}}]}),
]
Commands = Annotated[
    tuple[Text, ...],
    BeforeValidator(listed),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
Seconds = Annotated[
    float, BeforeValidator(seconds), WithJsonSchema({"type": ["string", "number"], "examples": ["20m"]})
]
Size = Annotated[int, BeforeValidator(size), WithJsonSchema({"type": ["string", "integer"], "examples": ["8GiB"]})]
