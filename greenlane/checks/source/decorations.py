"""Macros that stand for attributes or nothing: blanked before parsing, for no grammar expects a word there."""

from __future__ import annotations

import re
from collections.abc import Iterable

_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)(\([^)\n]*\))?[ \t]*((?:[^\n\\]|\\\r?\n|\\.)*)", re.M)
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.S)
_ATTRIBUTE = rb"__attribute__\s*\(\(.*?\)\)|__declspec\s*\(.*?\)|\[\[.*?\]\]|_Pragma\s*\(.*?\)|extern(?:\s+\"C\")?|__restrict(?:__)?|__cdecl|__stdcall|noexcept"
_BARE = re.compile(rb"(?:(?:" + _ATTRIBUTE + rb")\s*)*", re.S)
_LOUD = re.compile(r"\b[A-Z][A-Z0-9_]{3,}\b", re.A)
_GUARD = re.compile(rb"_(?:H|HH|HPP|HXX|CUH|INCLUDED)_*$")
_SHORTEST = 4


class Decorations:
    """The decorations of a tree: every definition of such a macro, in any file, is an attribute or nothing."""

    def __init__(self, sources: Iterable[bytes]) -> None:
        plain: dict[bytes, bool] = {}
        for data in sources:
            for match in _DEFINE.finditer(data):
                name, call, body = match.groups()
                bare = _BARE.fullmatch(_COMMENT.sub(b"", body).replace(b"\\", b"").strip()) is not None
                plain[name] = plain.get(name, True) and bare and (call is None or bool(body.strip()))
        self.names: tuple[str, ...] = tuple(
            sorted(name.decode() for name, bare in plain.items() if bare and _is_loud(name))
        )

        self._set = frozenset(self.names)

    def blank(self, kept: str) -> str:
        present = sorted(self._set.intersection(_LOUD.findall(kept)))
        if not present:
            return kept
        pattern = re.compile(
            rf"\b(?:{'|'.join(map(re.escape, present))})\b(?:[ \t]*\((?:[^()\n]|\([^()\n]*\))*\))?(?!\s*[;=,)])"
        )
        return pattern.sub(lambda match: " " * len(match.group()), kept)


def _is_loud(name: bytes) -> bool:
    """Upper case, as such macros are; header guards have no place in code."""
    return len(name) >= _SHORTEST and name.upper() == name and not _GUARD.search(name)
