"""Read a source file as bytes that are never refused, and blank what is no code. One character is one byte."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 4_000_000  # beyond this a file is taken for generated: its names count, nothing in it is judged
MAX_LINES = 60_000

_LITERAL = re.compile(
    r"//(?:[^\n\\]|\\.)*"
    r"|/\*.*?(?:\*/|\Z)"
    r'|\bu?8?R"([^ ()\\\t\n]{0,16})\(.*?\)\1"'
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9a-fA-F'])'(?:[^'\\\n]|\\.)*'",
    re.S,
)
_VISIBLE = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class Text:
    """A file in two views of equal length: offsets and line numbers mean the same in both."""

    code: str  # comments and the insides of literals are blank
    kept: str  # comments alone are blank


class Unreadable(Exception):
    """The file can't be taken in at all; the message says why."""


def read(path: Path) -> bytes:
    """The bytes of a text file. Raises Unreadable for what is no text or can't be opened."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES * 8)
    except OSError as error:
        raise Unreadable(error.strerror or "cannot be read") from None
    if b"\0" in data[:8192]:
        raise Unreadable("binary")
    return data


def decode(data: bytes) -> str:
    return data.replace(b"\r\n", b" \n").decode("latin-1")


def blank(data: bytes) -> Text:
    raw = decode(data)
    code: list[str] = []
    kept: list[str] = []
    at = 0
    for match in _LITERAL.finditer(raw):
        start, end = match.span()
        between = raw[at:start]
        code.append(between)
        kept.append(between)
        token = raw[start:end]
        if token[0] == "/":
            empty = _spaces(token)
            code.append(empty)
            kept.append(empty)
        else:
            code.append(token[0] + _spaces(token[1:-1]) + token[-1])
            kept.append(token)
        at = end
    code.append(raw[at:])
    kept.append(raw[at:])
    return Text("".join(code), "".join(kept))


def _spaces(token: str) -> str:
    return _VISIBLE.sub(" ", token) if "\n" in token else " " * len(token)


def problem(data: bytes) -> str | None:
    """Why nothing in a file is judged."""
    if len(data) > MAX_BYTES:
        return f"larger than {MAX_BYTES // 1_000_000} MB"
    if data.count(b"\n") > MAX_LINES:
        return f"longer than {MAX_LINES} lines"
    return None


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def shown(text: str) -> str:
    """Text of a finding, as a person reads it."""
    return text if text.isascii() else text.encode("latin-1", "replace").decode("utf-8", "replace")
