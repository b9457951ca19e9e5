"""Executes parsed pseudo-code for one lane."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from .functions import BUILTIN, convert
from .parse import Node, NotUnderstood, parse
from .values import Value, boolean, divide, encode, exact, integer, multiply, real

CONSTANTS = {"INF": math.inf, "NAN": math.nan, "PI": math.pi}


class Break(Exception):
    pass


class Return(Exception):
    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Lane:
    """The registers of one lane, and the program's own variables."""

    def __init__(self, library: Mapping[str, str], names: Mapping[str, Value]) -> None:
        self.library = library
        self.names: dict[str, Any] = dict(names)
        self.toward_zero = False

    def run(self, body: list[Node]) -> None:
        for statement in body:
            self.do(statement)

    def do(self, node: Node) -> None:
        what = node[0]
        if what == "set":
            self.set(node[1], node[2])
        elif what == "if":
            self.run(node[2] if self.value(node[1]).raw else node[3])
        elif what == "for":
            self.loop(node)
        elif what == "break":
            raise Break
        elif what == "return":
            raise Return(self.value(node[1]))
        elif what == "declare":
            self.names[node[1]] = {} if node[3] else Value("b", int(node[2].partition("'")[0]), 0)
        else:
            self.value(node[1])

    def loop(self, node: Node) -> None:
        _, name, first, last, body = node
        try:
            for number in range(self.value(first).integer, self.value(last).integer + 1):
                self.names[name] = integer(number)
                self.run(body)
        except Break:
            pass

    # Assignment

    def set(self, target: Node, source: Node) -> None:
        if source[0] == "lambda":
            self.names[target[1]] = source
        elif target[0] == "name" and target[1] == "ROUND_MODE":
            self.toward_zero = source == ("name", "ROUND_TOWARD_ZERO")
        elif target[0] == "name" and source[0] == "name" and source[1] == "ROUND_MODE":
            pass
        else:
            self.store(target, self.value(source))

    def store(self, target: Node, value: Value) -> None:
        if target[0] == "join":
            low, high = (self.typed(part)[1] for part in (target[2], target[1]))
            self.store(target[2], Value("u", low, value.raw & (1 << low) - 1))
            self.store(target[1], Value("u", high, value.raw >> low & (1 << high) - 1))
            return
        name, at, width, kind = self.place(target)
        if name is None:
            return
        holder = self.names.get(name)
        if isinstance(holder, dict):
            holder[at] = value
            return
        if width is None:  # a whole variable
            if name == "SCC":
                self.names[name] = boolean(value.raw != 0)
            elif name in ("D0", "D1", "VCC", "EXEC"):
                self.names[name] = Value("b", 128, self._inside(holder, 0, value.width, value.raw))
            else:
                self.names[name] = value
            return
        raw = convert(value, kind, toward_zero=self.toward_zero).raw if kind else value.raw & (1 << width) - 1
        self.names[name] = Value(
            "b", max(width + at, holder.width if holder else 0, 64), self._inside(holder, at, width, raw)
        )

    def typed(self, node: Node) -> tuple[str, int]:
        found = re.fullmatch(r"([a-z]+)(\d+)", node[2])
        assert node[0] == "as" and found
        return found[1], int(found[2])

    def _inside(self, holder: Value | None, at: int, width: int, raw: int) -> int:
        old = holder.raw if holder else 0
        return old & ~(((1 << width) - 1) << at) | (raw & (1 << width) - 1) << at

    def place(self, target: Node) -> tuple[str | None, int, int | None, str | None]:
        """Variable, lowest bit, width (None: all) and type of what is assigned to."""
        what = target[0]
        if what == "name":
            return target[1], 0, None, None
        if what == "as":
            if target[1] in (("name", "TRAPSTS"), ("name", "WAVE_STATUS")):
                return None, 0, None, None
            kind, width = self.typed(target)
            name, at, inner, _ = self.place(target[1])
            return name, at, width if inner is None else inner, target[2] if kind != "b" else None
        name, at, _, _ = self.place(target[1])
        if isinstance(self.names.get(name or ""), dict):
            return name, self.value(target[2]).integer, None, None
        if what == "index":
            return name, at + self.value(target[2]).integer, 1, None
        high, low = self.value(target[2]).integer, self.value(target[3]).integer
        return name, at + low, high - low + 1, None

    # Expressions

    def value(self, node: Node) -> Value:
        found: Value = getattr(self, "_" + node[0])(*node[1:])
        return found

    def _name(self, name: str) -> Value:
        if name in CONSTANTS:
            return real(CONSTANTS[name], "f64")
        if match := re.fullmatch(r"(MAX_FLOAT|UNDERFLOW|OVERFLOW)_F(\d+)", name):
            kind = f"f{match[2]}"
            top = encode(math.inf, kind)
            return Value("f", int(match[2]), {"MAX_FLOAT": top - 1, "UNDERFLOW": 0, "OVERFLOW": top}[match[1]])
        found = self.names.get(name)
        if not isinstance(found, Value):
            raise NotUnderstood(name)
        return found

    def _number(self, text: str) -> Value:
        width, _, rest = text.rpartition("'")
        match = re.fullmatch(r"(-?)(0x[0-9a-fA-F]+?|\d+\.\d+|\d+)(F|ULL|LL|U)?", rest)
        if match is None:
            raise NotUnderstood(text)
        sign, digits, suffix = match.groups()
        if "." in digits:
            return real(float(sign + digits), f"f{width or (32 if suffix == 'F' else 64)}")
        number = int(sign + digits, 0)
        bits = int(width) if width else 64 if suffix in ("ULL", "LL") or number >> 32 else 32
        return integer(number, "u" if suffix in ("U", "ULL") else "i", bits)

    def _as(self, node: Node, kind: str) -> Value:
        found = self.value(node)
        match = re.fullmatch(r"([a-z]+)(\d+)", kind)
        if match is None:
            raise NotUnderstood(kind)
        if found.is_float and match[1] in ("f", "bf"):
            return convert(found, kind)
        raw = found.raw
        if found.kind == "i" and found.width < int(match[2]):
            raw = found.integer
        return Value(match[1], int(match[2]), raw & (1 << int(match[2])) - 1)

    def _index(self, node: Node, at: Node) -> Value:
        if node[0] == "name" and isinstance(self.names.get(node[1]), dict):
            found: Value = self.names[node[1]].get(self.value(at).integer, Value("b", 32, 0))
            return found
        return Value("u", 1, self.value(node).raw >> self.value(at).integer & 1)

    def _slice(self, node: Node, first: Node, last: Node) -> Value:
        found, high, low = self.value(node), self.value(first).integer, self.value(last).integer
        if high < low:
            width = low - high + 1
            bits = f"{found.raw >> high & (1 << width) - 1:0{width}b}"
            return Value("u", width, int(bits[::-1], 2))
        kind = "u" if found.kind in "ui" else "b"
        return Value(kind, high - low + 1, found.raw >> low & (1 << (high - low + 1)) - 1)

    def _part(self, node: Node, low: Node, width: Node) -> Value:
        found, bits = self.value(node), self.value(width).integer
        return Value("u", bits, found.raw >> self.value(low).integer & (1 << bits) - 1)

    def _join(self, high: Node, low: Node) -> Value:
        top, bottom = self.value(high), self.value(low)
        return Value("u", top.width + bottom.width, top.raw << bottom.width | bottom.raw)

    def _cast(self, word: str, node: Node) -> Value:
        width, _, kind = word.partition("'")
        found = self.value(node)
        if kind == "B" or (kind == "F" and not found.is_float and node[0] in ("number", "join")):
            return Value("f" if kind == "F" else "b", int(width), found.raw & (1 << int(width)) - 1)
        return convert(found, {"F": "f", "U": "u", "I": "i", "BF": "bf"}[kind] + width, toward_zero=self.toward_zero)

    def _choose(self, test: Node, yes: Node, no: Node) -> Value:
        return self.value(yes if self.value(test).raw else no)

    def _unary(self, operator: str, node: Node) -> Value:
        found = self.value(node)
        if operator == "!":
            return boolean(found.raw == 0)
        if operator == "~":
            return Value(found.kind, found.width, ~found.raw & (1 << found.width) - 1)
        if operator == "+":
            return found
        if found.is_float:
            return Value(found.kind, found.width, found.raw ^ 1 << (found.width - 1))
        return integer(-found.integer, found.kind, max(found.width, 32))

    def _binary(self, operator: str, first: Node, second: Node) -> Value:
        a = self.value(first)
        if operator in ("&&", "||"):
            truth = bool(a.raw)
            return boolean(bool(self.value(second).raw) if truth == (operator == "&&") else truth)
        b = self.value(second)
        if operator in ("<<", ">>"):
            width = max(a.width, 32)
            moved = a.integer << b.integer if operator == "<<" else a.integer >> b.integer
            return integer(moved, a.kind, width)
        if a.is_float or b.is_float:
            return self.real(operator, a, b)
        return whole(operator, a, b)

    def real(self, operator: str, a: Value, b: Value) -> Value:
        kind = max((one for one in (a, b) if one.is_float), key=lambda one: one.width).type
        x, y = (one.real if one.is_float else float(one.integer) for one in (a, b))
        if operator in COMPARISONS:
            return boolean(COMPARISONS[operator](x, y))
        operation: dict[str, Callable[[], float | Fraction]] = {
            "+": lambda: exact(lambda p, q: p + q, x, y),
            "-": lambda: exact(lambda p, q: p - q, x, y),
            "*": lambda: multiply(x, y) if not math.isnan(x * y) else math.nan,
            "/": lambda: divide(x, y),
        }
        return real(operation[operator](), kind, toward_zero=self.toward_zero)

    def _call(self, name: str, arguments: list[Node]) -> Value:
        values = [self.value(one) for one in arguments]
        if name in BUILTIN:
            return BUILTIN[name](*values, toward_zero=self.toward_zero)
        function = self.names.get(name)
        if isinstance(function, tuple):
            inner = Lane(self.library, {**self.names, **dict(zip(function[1], values, strict=True))})
            try:
                inner.run(function[2])
            except Return as done:
                return done.value
            raise NotUnderstood(f"{name} returns nothing")
        if name not in self.library:
            raise NotUnderstood(f"{name}()")
        sources = {f"S{i}": value for i, value in enumerate(values)}
        inner = Lane(self.library, {**self.names, **sources, "D0": Value("b", 128, 0)})
        inner.run(parse(self.library[name]))
        kind = name.rpartition("_")[2]
        return inner._as(("name", "D0"), "u32" if kind == "u8" else kind)


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<>": lambda a, b: a < b or a > b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


def whole(operator: str, a: Value, b: Value) -> Value:
    x, y = a.integer, b.integer
    if operator in COMPARISONS:
        if "u" in (a.kind, b.kind) and max(a.width, b.width) >= 32:
            x, y = (one % (1 << max(a.width, b.width)) for one in (x, y))
        return boolean(COMPARISONS[operator](x, y))
    kind = "u" if "u" in (a.kind, b.kind) else a.kind
    width = max(a.width, b.width, 32)
    results = {"+": x + y, "-": x - y, "*": x * y, "&": x & y, "|": x | y, "^": x ^ y}
    return integer(results[operator], kind, width)
