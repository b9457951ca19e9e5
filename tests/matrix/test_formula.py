"""Formulas: what they mean, how they print, and what is refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenlane.matrix.formula import (
    FALSE,
    TRUE,
    And,
    Atom,
    Formula,
    FormulaError,
    Not,
    Or,
    all_of,
    any_of,
    atoms,
    evaluate,
    negate,
    parse,
    to_text,
)  # fmt: skip

NAMES = ("A", "B", "C")
WORLDS = [{name for name, on in zip(NAMES, bits, strict=True) if on} for bits in itertools.product((0, 1), repeat=3)]
FORMULAS = st.recursive(
    st.sampled_from([Atom(name) for name in NAMES]),
    lambda inner: st.one_of(
        inner.map(Not), st.lists(inner, min_size=2, max_size=3).map(lambda found: And(tuple(found))),
        st.lists(inner, min_size=2, max_size=3).map(lambda found: Or(tuple(found))),
    ),
    max_leaves=12,
)  # fmt: skip


def truth(formula: Formula) -> list[bool]:
    return [evaluate(formula, world) for world in WORLDS]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("not A and B or C", "((!A) && B) || C"),
        ("A -> B -> C", "!A || !B || C"),
        ("A <-> B", "A && B || !A && !B"),
        ("defined(A) && !defined B", "A && !B"),
        ("at_most_one(A, B, C)", "!(A && B) && !(A && C) && !(B && C)"),
        ("exactly_one(A, B)", "A && !B || !A && B"),
        ("A || 1", "true"),
        ("A && 0", "false"),
        ("A implies B", "!A || B"),
    ],
)
def test_two_spellings_mean_the_same(text: str, same: str) -> None:
    assert truth(parse(text)) == truth(parse(same))


@given(FORMULAS)
def test_what_is_printed_is_read_back_with_the_same_meaning(formula: Formula) -> None:
    assert truth(parse(to_text(formula))) == truth(formula)
    assert truth(parse(to_text(formula, "defined({})".format))) == truth(formula)


@given(FORMULAS, FORMULAS)
def test_the_constructors_keep_the_meaning(left: Formula, right: Formula) -> None:
    assert truth(all_of(left, right)) == [a and b for a, b in zip(truth(left), truth(right), strict=True)]
    assert truth(any_of(left, right)) == [a or b for a, b in zip(truth(left), truth(right), strict=True)]
    assert truth(negate(left)) == [not a for a in truth(left)]


def test_the_empty_conjunction_is_true_and_the_empty_disjunction_false() -> None:
    assert (all_of(), any_of()) == (TRUE, FALSE)


def test_atoms_are_the_macros_that_are_mentioned() -> None:
    assert atoms(parse("A && !(B || at_most_one(C, D))")) == {"A", "B", "C", "D"}


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "a macro is wanted at the end"),
        ("A &&", 5, "a macro is wanted at the end"),
        ("A B", 3, "'B' is out of place"),
        ("(A", 3, "')' is wanted, not the end"),
        ("A $ B", 3, "'$' is out of place"),
        ("defined(3)", 9, "`defined` takes a macro"),
        ("(" * 200 + "A", 102, "nested deeper than 100 levels"),
        ("<->".join(["A"] * 12), 37, "more than 8 equivalences"),
        (f"at_most_one({', '.join(['A'] * 70)})", 222, "more than 64 macros"),
    ],
)
def test_what_is_no_formula_is_refused_at_its_column(text: str, column: int, message: str) -> None:
    with pytest.raises(FormulaError) as error:
        parse(text)
    assert message in str(error.value)
    assert error.value.column == column
