"""Macros that stand for attributes, `inline` or nothing: replaced before parsing, where no grammar wants a word."""

from __future__ import annotations

import re
from collections.abc import Iterable

_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)(\([^)\n]*\))?[ \t]*((?:[^\n\\]|\\\r?\n|\\.)*)", re.M)
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.S)
_INLINE = (
    rb"\b(?:inline|constexpr|consteval|__forceinline__|__forceinline|__inline__|__inline|__host__|__device__"
    rb"|__noinline__)\b"
)
_ATTRIBUTE = (
    rb"__attribute__\s*\(\(.*?\)\)|__declspec\s*\(.*?\)|\[\[.*?\]\]|_Pragma\s*\(.*?\)|extern(?:\s+\"C\")?"
    rb"|__restrict(?:__)?|__cdecl|__stdcall|noexcept"
)
_BARE = re.compile(rb"(?:(?:" + _ATTRIBUTE + rb"|" + _INLINE + rb")\s*)*", re.S)
_SOME_INLINE = re.compile(_INLINE)
_LOUD = re.compile(r"\b[A-Z][A-Z0-9_]{3,}\b", re.A)
_GUARD = re.compile(rb"_(?:H|HH|HPP|HXX|CUH|INCLUDED)_*$")
_SHORTEST = 4


class Decorations:
    """The decorations of a tree: each definition of such a macro, in any file, is an attribute, `inline` or nothing."""

    def __init__(self, sources: Iterable[bytes]) -> None:
        plain: dict[bytes, bool] = {}
        inline: set[str] = set()
        for data in sources:
            for match in _DEFINE.finditer(data):
                name, call, body = match.groups()
                text = _COMMENT.sub(b"", body).replace(b"\\", b"").strip()
                plain[name] = plain.get(name, True) and bool(_BARE.fullmatch(text)) and (call is None or bool(text))
                if plain[name] and _SOME_INLINE.search(text):
                    inline.add(name.decode())
        self.names: tuple[str, ...] = tuple(
            sorted(name.decode() for name, bare in plain.items() if bare and _is_loud(name))
        )
        self._inline = inline
        self._set = frozenset(self.names)

    def blank(self, kept: str) -> str:
        present = sorted(self._set.intersection(_LOUD.findall(kept)))
        if not present:
            return kept
        names = "|".join(map(re.escape, present))
        pattern = re.compile(rf"\b({names})\b(?:[ \t]*\((?:[^()\n]|\([^()\n]*\))*\))?(?!\s*[;=,)])")
        return pattern.sub(self._stand_in, kept)

    def _stand_in(self, match: re.Match[str]) -> str:
        """As long as what it replaces, so that columns stay true."""
        width = len(match.group())
        return "inline".ljust(width) if match.group(1) in self._inline and width >= len("inline") else " " * width


def _is_loud(name: bytes) -> bool:
    """Upper case, as such macros are; header guards have no place in code."""
    return len(name) >= _SHORTEST and name.upper() == name and not _GUARD.search(name)
