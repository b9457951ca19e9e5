"""The preprocessor lines of a file and the conditional chains that they form. Nothing is evaluated here."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from greenlane.checks.source.text import Text

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*([A-Za-z_]+)((?:[^\n\\]|\\[ \t]*\n|\\.)*)", re.M)
_CONTINUED = re.compile(r"\\[ \t]*\n")
_DEFINE = re.compile(r"\s*([A-Za-z_]\w*)(\(([^)]*)\))?(.*)", re.S)
_INCLUDE = re.compile(r'\s*(?:"([^"\n]+)"|<([^>\n]+)>|([A-Za-z_]\w*))')

OPENERS = frozenset({"if", "ifdef", "ifndef"})
MIDDLES = frozenset({"elif", "else", "elifdef", "elifndef"})


class Directive(NamedTuple):
    line: int  # one-based
    last: int  # last line, continuation lines included
    kind: str
    argument: str  # on one line, comments blanked, literals kept


class Define(NamedTuple):
    name: str
    params: tuple[str, ...] | None  # None: an object-like macro
    body: str
    line: int

    @property
    def variadic(self) -> bool:
        return bool(self.params) and self.params[-1].endswith("...")  # type: ignore[index]


class Include(NamedTuple):
    target: str
    quoted: bool
    line: int


class Arm(NamedTuple):
    """One arm of a chain: the lines between two of its directives."""

    directive: int  # index into the file's directives
    condition: str  # as an #if expression; "1" for #else
    first: int  # first line inside
    last: int  # last line inside; less than `first` when empty


class Chain(NamedTuple):
    """#if ... #elif ... #else ... #endif."""

    arms: tuple[Arm, ...]
    first: int  # line of the #if
    last: int  # line of the #endif
    parent: int  # index of the enclosing chain, -1 at the top
    parent_arm: int

    @property
    def has_else(self) -> bool:
        return self.arms[-1].condition == "1" and len(self.arms) > 1


class Stray(NamedTuple):
    """A directive that no chain holds, or a chain that nothing closes."""

    line: int
    kind: str
    closed: int  # line of the #endif that came too early; 0 where there is none


class Structure(NamedTuple):
    directives: tuple[Directive, ...]
    chains: tuple[Chain, ...]
    strays: tuple[Stray, ...]
    lines: int


def structure(text: Text) -> Structure:
    directives = tuple(_directives(text))
    lines = text.code.count("\n") + 1
    chains, strays = _chains(directives, lines)
    return Structure(directives, chains, strays, lines)


def _directives(text: Text) -> Iterator[Directive]:
    starts = line_starts(text.code)
    for match in _DIRECTIVE.finditer(text.code):
        begin, end = match.span()
        argument = text.kept[match.start(2) : end]
        if "\\" in argument:
            argument = _CONTINUED.sub("  ", argument)
        yield Directive(line_at(starts, begin), line_at(starts, max(begin, end - 1)), match.group(1), argument.strip())


def line_starts(code: str) -> list[int]:
    starts = [0]
    find = code.find
    at = find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = find("\n", at + 1)
    return starts


def line_at(starts: list[int], offset: int) -> int:
    return bisect_right(starts, offset)


def condition(directive: Directive) -> str:
    name = directive.argument.split(None, 1)[0] if directive.argument else ""
    if directive.kind in {"ifdef", "elifdef"}:
        return f"defined({name})"
    if directive.kind in {"ifndef", "elifndef"}:
        return f"!defined({name})"
    return "1" if directive.kind == "else" else directive.argument


def _chains(directives: tuple[Directive, ...], lines: int) -> tuple[tuple[Chain, ...], tuple[Stray, ...]]:
    chains: list[Chain | None] = []
    strays: list[Stray] = []
    open_chains: list[tuple[int, list[int]]] = []  # index into chains, directives so far
    last_endif = 0
    for index, directive in enumerate(directives):
        if directive.kind in OPENERS:
            open_chains.append((len(chains), [index]))
            chains.append(None)
        elif directive.kind in MIDDLES:
            if open_chains:
                open_chains[-1][1].append(index)
            else:
                strays.append(Stray(directive.line, directive.kind, last_endif))
        elif directive.kind == "endif":
            if open_chains:
                _close(chains, open_chains, directives, directive.line)
                last_endif = directive.line
            else:
                strays.append(Stray(directive.line, directive.kind, last_endif))
    while open_chains:
        opener = directives[open_chains[-1][1][0]]
        strays.append(Stray(opener.line, opener.kind, 0))
        _close(chains, open_chains, directives, lines + 1)
    return tuple(chain for chain in chains if chain is not None), tuple(strays)


def _close(
    chains: list[Chain | None], open_chains: list[tuple[int, list[int]]], directives: tuple[Directive, ...], last: int
) -> None:
    index, members = open_chains.pop()
    ends = [directives[member].line for member in members[1:]] + [last]
    arms = tuple(
        Arm(member, condition(directives[member]), directives[member].last + 1, end - 1)
        for member, end in zip(members, ends, strict=True)
    )
    parent, parent_arm = -1, 0
    if open_chains:
        parent, parent_arm = open_chains[-1][0], len(open_chains[-1][1]) - 1
    chains[index] = Chain(arms, directives[members[0]].line, last, parent, parent_arm)


def parse_define(directive: Directive) -> Define | None:
    match = _DEFINE.match(directive.argument)
    if not match:
        return None
    name, call, params, body = match.groups()
    names = None if call is None else tuple(part.strip() for part in (params or "").split(",") if part.strip())
    return Define(name, names, body.strip(), directive.line)


def parse_include(directive: Directive) -> Include | None:
    match = _INCLUDE.match(directive.argument)
    if not match or match.group(3):
        return None
    return Include(match.group(1) or match.group(2), match.group(1) is not None, directive.line)
