"""The functions that the pseudo-code calls by name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from .values import FORMATS, Value, boolean, fused, integer, real


def convert(found: Value, kind: str, *, toward_zero: bool = False) -> Value:
    """To another type by value. A real that no integer holds becomes the nearest one, NaN becomes zero."""
    if kind == "b32" or kind == found.type:
        return found if kind == found.type else Value("b", 32, found.raw & 0xFFFFFFFF)
    match = re.fullmatch(r"(bf|f|u|i|b)(\d+)", kind)
    assert match, kind
    width = int(match[2])
    if match[1] in ("f", "bf"):
        if not found.is_float and found.kind == "b":
            return Value(match[1], width, found.raw & (1 << width) - 1)
        number: float | Fraction = found.real if found.is_float else Fraction(found.integer)
        if isinstance(number, Fraction) and number == 0:
            number = 0.0
        return real(number, kind, toward_zero=toward_zero)
    if found.is_float:
        return clamped(found.real, match[1], width)
    return integer(found.integer, match[1], width)


def clamped(number: float, kind: str, width: int) -> Value:
    low, high = (0, (1 << width) - 1) if kind == "u" else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    if math.isnan(number):
        return integer(0, kind, width)
    if math.isinf(number):
        return integer(high if number > 0 else low, kind, width)
    return integer(min(max(int(number), low), high), kind, width)


def saturated(found: Value, kind: str, width: int) -> Value:
    low, high = (0, (1 << width) - 1) if kind == "u" else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    return integer(min(max(found.integer, low), high), kind, width)


def normalised(found: Value, kind: str) -> Value:
    """To a 16-bit fraction of one, to the nearest."""
    number = found.real
    if math.isnan(number):
        return integer(0, kind, 16)
    low, top = (-1.0, 32767) if kind == "i" else (0.0, 65535)
    return integer(round(Fraction(min(max(number, low), 1.0)) * top), kind, 16)


def is_signalling(found: Value) -> bool:
    _, fraction_bits = FORMATS[found.type]
    return math.isnan(found.real) and not found.raw >> (fraction_bits - 1) & 1


def exponent(found: Value) -> Value:
    exponent_bits, fraction_bits = FORMATS[found.type]
    return integer(found.raw >> fraction_bits & (1 << exponent_bits) - 1)


def floating(function: Callable[[float], float | Fraction]) -> Callable[..., Value]:
    """A function of one real; what floats can't compute (an infinity, a NaN) it maps itself."""

    def apply(found: Value, **_: Any) -> Value:
        try:
            return real(function(found.real), found.type)
        except ValueError:
            return real(math.nan, found.type)

    return apply


def whole(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: math.copysign(float(function(x)), x) if math.isfinite(x) else x


def floored(x: float) -> float:
    return whole(math.floor)(x) if x != 0 else x


def square_root(found: Value, **_: Any) -> Value:
    x = found.real
    if math.isnan(x) or x < 0:
        return real(math.nan, found.type)
    if x == 0 or math.isinf(x):
        return found
    scale = 1 << 300
    root = Fraction(math.isqrt(int(Fraction(x) * scale * scale * scale * scale)), scale * scale)
    return real(root, found.type)


def logarithm(x: float) -> float:
    return -math.inf if x == 0 else math.log2(x)


def power(base: Value, found: Value, **_: Any) -> Value:
    x = found.real
    if not -2000 < x < 1024 and not math.isnan(x):
        return real(math.inf if x > 0 else 0.0, found.type)
    return real(math.nan if math.isnan(x) else math.ldexp(math.exp2(x - math.floor(x)), math.floor(x)), found.type)


def turns(function: Callable[[float], float]) -> Callable[..., Value]:
    return floating(lambda x: math.nan if math.isinf(x) else function(x))


def loaded(a: Value, b: Value, **_: Any) -> Value:
    x = a.real
    return real(Fraction(x) * Fraction(2) ** b.integer, a.type) if math.isfinite(x) and x else a


def _fma(a: Value, b: Value, c: Value, *, toward_zero: bool = False) -> Value:
    return real(fused(a.real, b.real, c.real), a.type, toward_zero=toward_zero)


def _extended(found: Value, bits: Value, **_: Any) -> Value:
    keep = bits.integer
    if keep == 0:
        return integer(0, found.kind, found.width)
    low = found.raw & (1 << keep) - 1
    return integer(low - (1 << keep) if low >> (keep - 1) & 1 else low, "i", found.width)


BUILTIN: dict[str, Callable[..., Value]] = {
    "abs": lambda a, **_: (
        Value(a.kind, a.width, a.raw & ~(1 << (a.width - 1))) if a.is_float else integer(abs(a.integer))
    ),
    "fma": _fma,
    "trunc": floating(whole(math.trunc)),
    "floor": floating(floored),
    "fract": floating(lambda x: Fraction(x) - math.floor(x) if math.isfinite(x) else math.nan),
    "sqrt": square_root,
    "log2": floating(logarithm),
    "pow": power,
    "sin": turns(math.sin),
    "cos": turns(math.cos),
    "ldexp": loaded,
    "sign": lambda a, **_: boolean(bool(a.raw >> (a.width - 1) & 1)),
    "exponent": lambda a, **_: exponent(a),
    "mantissa": floating(lambda x: math.frexp(x)[0]),
    "isNAN": lambda a, **_: boolean(math.isnan(a.real)),
    "isSignalNAN": lambda a, **_: boolean(is_signalling(a)),
    "isQuietNAN": lambda a, **_: boolean(math.isnan(a.real) and not is_signalling(a)),
    "cvtToQuietNAN": floating(lambda x: x),
    "isEven": lambda a, **_: boolean(math.isfinite(a.real) and int(a.real) % 2 == 0),
    "signext": lambda a, **_: integer(a.integer, "i", 64),
    "signext_from_bit": _extended,
    "f32_to_snorm": lambda a, **_: normalised(a, "i"),
    "f16_to_snorm": lambda a, **_: normalised(a, "i"),
    "f32_to_unorm": lambda a, **_: normalised(a, "u"),
    "f16_to_unorm": lambda a, **_: normalised(a, "u"),
    "u32_to_u16": lambda a, **_: saturated(a, "u", 16),
    "v_cvt_i16_f32": lambda a, **_: convert(a, "i16"),
    "v_cvt_u16_f32": lambda a, **_: convert(a, "u16"),
    "i32_to_i16": lambda a, **_: saturated(a, "i", 16),
}
for _source in ("f16", "f32", "f64", "bf16", "u32", "i32", "u16", "i16", "u8", "i8", "u4", "i4"):
    for _target in ("f16", "f32", "f64", "bf16", "u32", "i32", "u16", "i16", "u8"):
        BUILTIN.setdefault(
            f"{_source}_to_{_target}",
            lambda a, *, toward_zero=False, to=_target: convert(a, to, toward_zero=toward_zero),
        )
