"""Text, directives, expressions and slices: lines and columns stay, and what nobody knows stays uncertain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenlane.checks.source import directives, slices, text
from greenlane.checks.source.expressions import evaluate, parse
from greenlane.checks.source.macros import Environment, LaneMacros
from greenlane.checks.source.slices import LineLife
from greenlane.matrix.model import Lane


def test_comments_and_literals_are_blank_and_nothing_moves() -> None:
    blanked = text.blank(
        b"int a; // one\nconst char* b = \"x // y\"; /* two\nlines */ char c = '\"';\nauto d = 1'000;\n"
    )
    assert blanked.code.split("\n") == [
        "int a;       ",
        'const char* b = "      ";       ',
        "         char c = ' ';",
        "auto d = 1'000;",
        "",
    ]
    assert '"x // y"' in blanked.kept


def test_a_raw_string_with_a_directive_inside_is_no_directive() -> None:
    found = directives.structure(text.blank(b'auto s = R"(\n#if X\n)";\n#if Y\n#endif\n'))
    assert [entry.kind for entry in found.directives] == ["if", "endif"]
    assert found.directives[0].line == 4


@given(st.binary(max_size=400))
def test_any_bytes_keep_their_length_and_lines(data: bytes) -> None:
    blanked = text.blank(data)
    assert len(blanked.code) == len(blanked.kept) == len(data)
    assert blanked.code.count("\n") == data.count(b"\n")
    directives.structure(blanked)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("0x10 == 16", 1), ("010", 8), ("-7 / 2", -3), ("1 ? 2 : 3", 2),
        ("!0 && 1", 1), ("X", None), ("X && 0", 0), ("X || 1", 1), ("1 / 0", None), ("defined(D) && D > 1", 1),
        ("nonsense(", None), ("'a'", None), ("5 % 3", 2), ("1 << 4", 16), ("not 0", 1),
    ],
)  # fmt: skip
def test_an_expression_has_a_value_or_none(written: str, value: int | None) -> None:
    known = {"D": 2}
    assert evaluate(parse(written), known.get, lambda name: True if name in known else None) == value


def _lives(source: str, macros: dict[str, str], universe: frozenset[str] = frozenset({"A", "B"})) -> str:
    """One letter per line: dead, live, unsure."""
    structure = directives.structure(text.blank(source.encode()))
    environment = Environment(LaneMacros(Lane(id="lane", backend="cpu", macros=macros), universe | macros.keys()))
    cut = slices.cut(structure, environment, lambda include, certain: {})
    table = LineLife(structure, cut.arms)
    return "".join("dlu"[table.of(line)] for line in range(1, source.count("\n") + 1))


@pytest.mark.parametrize(
    ("source", "macros", "lives"),
    [
        ("#ifdef A\na\n#else\nb\n#endif\n", {"A": "1"}, "llldl"),
        ("#ifdef A\na\n#else\nb\n#endif\n", {}, "ldlll"),
        ("#ifdef UNHEARD_OF\na\n#else\nb\n#endif\n", {}, "lulul"),
        ("#if A\na\n#elif B\nb\n#else\nc\n#endif\n", {"B": "1"}, "ldllldl"),
        ("#ifdef A\n#ifdef UNHEARD_OF\na\n#endif\n#endif\n", {}, "ldddl"),
        ("#define LOCAL 1\n#if LOCAL\na\n#endif\n", {}, "llll"),
        ("#ifdef UNHEARD_OF\n#define LOCAL\n#endif\n#ifdef LOCAL\na\n#endif\n", {}, "lullul"),
        ("#undef A\n#ifdef A\na\n#endif\n", {"A": "1"}, "lldl"),
        ("#if 1\na\n#elif UNHEARD_OF\nb\n#endif\n", {}, "llldl"),
    ],
)
def test_a_line_is_live_dead_or_unsure(source: str, macros: dict[str, str], lives: str) -> None:
    assert _lives(source, macros) == lives


def test_a_guard_around_a_whole_header_is_recognised_and_an_overridable_default_is_not() -> None:
    guarded = directives.structure(text.blank(b"// about\n#ifndef A_H\n#define A_H\nint a;\n#endif\n"))
    default = directives.structure(text.blank(b"#ifndef SIZE\n#define SIZE 32\n#endif\nint a;\n#ifdef B\n#endif\n"))
    assert slices.include_guard(guarded) is not None
    assert slices.include_guard(default) is None
