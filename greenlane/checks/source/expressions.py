"""Expressions of #if: parsed once, evaluated in a world that may not know every macro."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)[uUlLzZ]*"
    r"|([A-Za-z_]\w*)|(&&|\|\||==|!=|<=|>=|<<|>>|[-+*/%!~<>()?:,&|^.])|('(?:[^'\\]|\\.)*')|(\"[^\"]*\"))"
)
_BINARY = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6,
    "<": 7, "<=": 7, ">": 7, ">=": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_LONGEST = 300  # tokens; what is longer is nobody's condition and would nest too deeply
_WORDS = {"and": "&&", "or": "||", "not": "!"}


class Node(NamedTuple):
    """kind: number, name, defined, has, call (with its text), !, ~, neg, ?, unknown or a binary operator."""

    kind: str
    value: int | str = 0
    args: tuple[Node, ...] = ()


class Malformed(Exception):
    """The text is no expression."""


UNKNOWN = Node("unknown")
Lookup = Callable[[str], "int | None"]  # the value of a macro, None where nobody knows
Defined = Callable[[str], "bool | None"]


@lru_cache(maxsize=100_000)
def parse(text: str) -> Node:
    """The tree of an expression; what isn't one becomes a node of unknown value."""
    try:
        return _Parser(text).whole()
    except (Malformed, RecursionError):
        return UNKNOWN


@lru_cache(maxsize=100_000)
def names(text: str) -> frozenset[str]:
    """Macros that an expression asks for."""
    found: set[str] = set()
    _collect(parse(text), found)
    return frozenset(found)


def _collect(node: Node, found: set[str]) -> None:
    if node.kind in {"name", "defined", "call"}:
        found.add(str(node.value))
    for arg in node.args:
        _collect(arg, found)


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = self._tokens(text)
        self.at = 0

    @staticmethod
    def _tokens(text: str) -> list[str]:
        tokens, at, text = [], 0, text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if not match:
                raise Malformed(text[at:])
            token = match.group(match.lastindex or 0)
            tokens.append(_WORDS.get(token, token))
            at = match.end()
        if len(tokens) > _LONGEST:
            raise Malformed("too long")
        return tokens

    def whole(self) -> Node:
        node = self.ternary()
        if self.at != len(self.tokens):
            raise Malformed(" ".join(self.tokens[self.at :]))
        return node

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected is not None and token != expected):
            raise Malformed(token)
        self.at += 1
        return token

    def ternary(self) -> Node:
        node = self.binary(1)
        if self.peek() != "?":
            return node
        self.take()
        yes = self.ternary()
        self.take(":")
        return Node("?", 0, (node, yes, self.ternary()))

    def binary(self, floor: int) -> Node:
        left = self.unary()
        while (power := _BINARY.get(self.peek(), 0)) >= floor:
            operator = self.take()
            left = Node(operator, 0, (left, self.binary(power + 1)))
        return left

    def unary(self) -> Node:
        token = self.take()
        if token in {"!", "~"}:
            return Node(token, 0, (self.unary(),))
        if token in {"-", "+"}:
            return Node("neg", 0, (self.unary(),)) if token == "-" else self.unary()
        if token == "(":
            node = self.ternary()
            self.take(")")
            return node
        if token[0].isdigit():
            return Node("number", _number(token))
        if token == "defined":
            return self._defined()
        if token.startswith(("__has_", "__is_identifier", "__building_module")):
            return self._has(token)
        if token[0].isalpha() or token[0] == "_":
            return self._name(token)
        raise Malformed(token)

    def _defined(self) -> Node:
        if self.peek() == "(":
            self.take()
            name = self.take()
            self.take(")")
        else:
            name = self.take()
        return Node("defined", name)

    def _has(self, token: str) -> Node:
        if self.peek() != "(":
            return Node("has", token)
        return Node("has", f"{token}({''.join(self._arguments())})")

    def _name(self, token: str) -> Node:
        if token in {"true", "false"}:
            return Node("number", int(token == "true"))
        if self.peek() == "(":
            return Node("call", token, (Node("text", " ".join(self._arguments())),))
        return Node("name", token)

    def _arguments(self) -> list[str]:
        self.take("(")
        depth, inside = 1, []
        while depth:
            token = self.take()
            depth += (token == "(") - (token == ")")
            inside.append(token)
        return inside[:-1]


def _number(token: str) -> int:
    digits = token.replace("'", "")
    if digits[:2].lower() in {"0x", "0b"}:
        return int(digits, 0)
    return (
        int(digits, 8)
        if len(digits) > 1 and digits[0] == "0" and digits.isdecimal() and "8" not in digits and "9" not in digits
        else int(digits)
    )


def evaluate(node: Node, lookup: Lookup, defined: Defined) -> int | None:
    """The value of an expression, or None where it depends on a macro that nobody knows."""
    kind = node.kind
    if kind == "number":
        return int(node.value)
    if kind == "name":
        return lookup(str(node.value))
    if kind == "defined":
        known = defined(str(node.value))
        return None if known is None else int(known)
    if kind in {"unknown", "has", "call"}:
        return None
    if kind in {"&&", "||"}:
        return _logical(node, lookup, defined)
    values = [evaluate(arg, lookup, defined) for arg in node.args]
    if kind == "?":
        condition, yes, no = values
        return (yes if yes == no else None) if condition is None else (yes if condition else no)
    if any(value is None for value in values):
        return None
    return _arithmetic(kind, [value for value in values if value is not None])


def _logical(node: Node, lookup: Lookup, defined: Defined) -> int | None:
    decisive = 0 if node.kind == "&&" else 1
    left = evaluate(node.args[0], lookup, defined)
    if left is not None and bool(left) == bool(decisive):
        return decisive
    right = evaluate(node.args[1], lookup, defined)
    if right is not None and bool(right) == bool(decisive):
        return decisive
    return None if left is None or right is None else 1 - decisive


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "<<": lambda a, b: a << b if 0 <= b < 64 else 0,
    ">>": lambda a, b: a >> b if 0 <= b < 64 else 0,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def _arithmetic(kind: str, values: list[int]) -> int | None:
    if kind == "!":
        return int(not values[0])
    if kind == "~":
        return ~values[0]
    if kind == "neg":
        return -values[0]
    left, right = values
    if kind in {"/", "%"}:
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if kind == "/" else left - quotient * right
    return _OPERATORS[kind](left, right)
