"""Built-in types in one spelling, so that two that are written differently and mean the same don't differ."""

from __future__ import annotations

import re
from functools import lru_cache

_PLAIN = {
    "bool": "bool", "char": "char", "float": "f32", "double": "f64", "long double": "f80", "void": "void",
    "signed char": "i8", "int8_t": "i8", "unsigned char": "u8", "uint8_t": "u8",
    "short": "i16", "short int": "i16", "int16_t": "i16", "unsigned short": "u16", "unsigned short int": "u16",
    "uint16_t": "u16",
    "int": "i32", "signed": "i32", "signed int": "i32", "int32_t": "i32", "unsigned": "u32", "unsigned int": "u32",
    "uint32_t": "u32",
    # One width on some platform or other: never told apart.
    "long": "i64", "long int": "i64", "long long": "i64", "long long int": "i64", "int64_t": "i64", "ssize_t": "i64",
    "ptrdiff_t": "i64", "intptr_t": "i64",
    "unsigned long": "u64", "unsigned long int": "u64", "unsigned long long": "u64", "unsigned long long int": "u64",
    "uint64_t": "u64", "size_t": "u64", "uintptr_t": "u64",
}  # fmt: skip
_DROPPED = re.compile(r"\b(?:std::|register\b|volatile\b|__restrict__|__restrict\b|restrict\b)|\[\[.*?\]\]")
_SHAPE = re.compile(r"\s*([\w ]+?)\s*((?:\*|&|const|\s)*)((?:\[[^\]]*\])?)\s*")


@lru_cache(maxsize=20_000)
def canonical(written: str) -> str | None:
    """One spelling of a parameter's built-in type; None where a name of somebody's own is in it.

    >>> canonical("const std::size_t"), canonical("float const *"), canonical("float x[4]"), canonical("Stream*")
    ('u64', 'const f32*', None, None)
    """
    match = _SHAPE.fullmatch(_DROPPED.sub("", written))
    if match is None:
        return None
    words, marks, array = match.groups()
    names = words.split()
    plain = _PLAIN.get(" ".join(name for name in names if name != "const"))
    if plain is None:
        return None
    shape = marks.replace(" ", "")
    fixed = "const" in names
    if shape.startswith("const"):
        fixed, shape = True, shape.removeprefix("const")
    shape = re.sub(r"const$", "", shape)  # of the parameter itself: nobody outside sees it
    if array:
        shape += "*"
    return ("const " if fixed and shape else "") + plain + shape


def differ(left: str, right: str) -> bool:
    """Whether two types are surely not the same."""
    one, other = canonical(left), canonical(right)
    return one is not None and other is not None and one != other
