"""Typed values of the pseudo-code, and exact arithmetic on them: rationals, rounded once to the result's format."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}  # bits of exponent and of fraction


@dataclass(frozen=True)
class Value:
    """`kind` is u, i, b, f or bf; `raw` holds the bits, without a sign."""

    kind: str
    width: int
    raw: int

    @property
    def type(self) -> str:
        return f"{self.kind}{self.width}"

    @property
    def is_float(self) -> bool:
        return self.kind in ("f", "bf")

    @property
    def integer(self) -> int:
        if self.kind == "i" and self.raw >> (self.width - 1):
            return self.raw - (1 << self.width)
        return self.raw

    @property
    def real(self) -> float:
        return decode(self.raw, self.type)


def integer(number: int, kind: str = "i", width: int = 32) -> Value:
    return Value(kind, width, number & (1 << width) - 1)


def boolean(truth: bool) -> Value:
    return Value("u", 1, int(truth))


def real(number: float | Fraction, kind: str, *, toward_zero: bool = False) -> Value:
    return Value("bf" if kind == "bf16" else "f", int(kind.lstrip("bf")), encode(number, kind, toward_zero=toward_zero))


def decode(raw: int, kind: str) -> float:
    exponent_bits, fraction_bits = FORMATS[kind]
    sign = -1.0 if raw >> (exponent_bits + fraction_bits) & 1 else 1.0
    exponent, fraction = raw >> fraction_bits & (1 << exponent_bits) - 1, raw & (1 << fraction_bits) - 1
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        return math.nan if fraction else sign * math.inf
    if exponent == 0:
        return sign * math.ldexp(fraction, 1 - bias - fraction_bits)
    return sign * math.ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits)


def encode(number: float | Fraction, kind: str, *, toward_zero: bool = False) -> int:
    """The bits of the nearest value, ties to even; a float may be NaN, infinite or a signed zero."""
    exponent_bits, fraction_bits = FORMATS[kind]
    top = ((1 << exponent_bits) - 1) << fraction_bits
    if isinstance(number, float):
        if math.isnan(number):
            return top | 1 << (fraction_bits - 1)
        sign = int(math.copysign(1.0, number) < 0) << (exponent_bits + fraction_bits)
        if math.isinf(number) or number == 0:
            return sign | (top if number else 0)
        number = Fraction(number)
    sign = int(number < 0) << (exponent_bits + fraction_bits)
    magnitude, bias = abs(number), (1 << (exponent_bits - 1)) - 1
    exponent = max(_exponent(magnitude), 1 - bias)
    scaled = magnitude / Fraction(2) ** (exponent - fraction_bits)
    whole, rest = int(scaled), scaled - int(scaled)
    if not toward_zero and (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)):
        whole += 1
    bits = whole + ((exponent + bias - 1) << fraction_bits)  # a carry runs into the exponent, as it should
    return sign | min(bits, top - 1 if toward_zero else top)


def _exponent(magnitude: Fraction) -> int:
    """The largest e with 2**e not above the magnitude."""
    if magnitude == 0:
        return -100000
    guess = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return guess if Fraction(2) ** guess <= magnitude else guess - 1


def exact(operation: Callable[..., Fraction], *operands: float) -> float | Fraction:
    """The exact result of finite operands; with an infinity or a NaN, or where it is zero, what floats give."""
    if all(math.isfinite(operand) for operand in operands):
        result = operation(*(Fraction(operand) for operand in operands))
        if result != 0:
            return result
    return operation(*operands)  # type: ignore[arg-type,return-value]


def multiply(a: float, b: float) -> float | Fraction:
    found = exact(lambda x, y: x * y, a, b)
    return math.copysign(0.0, math.copysign(1, a) * math.copysign(1, b)) if found == 0 else found


def divide(a: float, b: float) -> float | Fraction:
    sign = math.copysign(1, a) * math.copysign(1, b)
    if math.isnan(a) or math.isnan(b) or (a == 0 and b == 0) or (math.isinf(a) and math.isinf(b)):
        return math.nan
    if b == 0 or math.isinf(a):
        return math.copysign(math.inf, sign)
    if a == 0 or math.isinf(b):
        return math.copysign(0.0, sign)
    return Fraction(a) / Fraction(b)


def fused(a: float, b: float, c: float) -> float | Fraction:
    product = multiply(a, b) if not (math.isinf(a) and b == 0) and not (math.isinf(b) and a == 0) else math.nan
    if isinstance(product, float):
        return product + c if product != 0 or c == 0 or not math.isfinite(c) else c
    if not math.isfinite(c):
        return c
    total = product + Fraction(c)
    return total if total else 0.0
