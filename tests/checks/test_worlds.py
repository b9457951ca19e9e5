"""Formulas over macros: implication under constraints, ordering of bounds, the SAT path against truth tables."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenlane.checks.source import worlds
from greenlane.checks.source.expressions import evaluate, parse
from greenlane.checks.source.worlds import Worlds, condition


@pytest.mark.parametrize(
    ("left", "right", "holds"),
    [
        ("defined(A) && defined(B)", "defined(A)", True),
        ("defined(A)", "defined(A) && defined(B)", False),
        ("defined(A) || defined(B)", "defined(B) || defined(A)", True),
        ("X >= 800", "X > 700", True),
        ("X > 700", "X >= 800", False),
        ("X == 3", "X < 4", True),
        ("A", "defined(A)", True),
        ("defined(A)", "A", False),
        ("FOO(1)", "FOO(1)", True),
        ("FOO(1)", "FOO(2)", False),
        ("__has_include(<a/b.h>)", "__has_include(<a/c.h>)", False),
    ],
)
def test_a_condition_implies_another(left: str, right: str, holds: bool) -> None:
    assert Worlds().implies(condition(left), condition(right)) is holds


def test_constraints_rule_worlds_out() -> None:
    both = condition("defined(USE_CUDA) && defined(USE_HIP)")
    assert Worlds().possible(both)
    assert not Worlds(["not (USE_CUDA and USE_HIP)"]).possible(both)
    assert not Worlds(["at_most_one(USE_CUDA, USE_HIP)"]).possible(both)


def test_a_chain_of_constraints_is_followed() -> None:
    known = Worlds(["A -> B", "B -> C"])
    assert known.implies(condition("defined(A)"), condition("defined(C)"))


def test_more_than_sixteen_atoms_go_to_the_solver() -> None:
    many = " && ".join(f"defined(M{number})" for number in range(20))
    assert Worlds().implies(condition(many), condition("defined(M7)"))
    assert not Worlds().implies(condition("defined(M7)"), condition(many))
    assert not Worlds().possible(condition(many), condition("!defined(M7)"))


NAMES = ("A", "B", "C", "D")
TEXTS = st.recursive(
    st.sampled_from([f"defined({name})" for name in NAMES]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda text: f"!{text}"),
    ),
    max_leaves=8,
)


@given(TEXTS)
def test_possible_agrees_with_trying_every_world(text: str) -> None:
    worlds_of = itertools.product([False, True], repeat=len(NAMES))
    tried = any(
        evaluate(parse(text), lambda name: 0, dict(zip(NAMES, values, strict=True)).__getitem__) for values in worlds_of
    )
    assert Worlds().possible(condition(text)) is tried


@given(TEXTS)
def test_the_solver_agrees_with_the_tables(text: str) -> None:
    formula = condition(text)
    used = worlds.atoms(formula)
    if used:
        assert worlds._satisfiable(formula, used) is Worlds().possible(formula)
