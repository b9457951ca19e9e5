"""Presence conditions as formulas, and which of them can hold together in the worlds that the constraints allow.

Up to 16 atoms a formula is a truth table in one integer; beyond, a SAT solver is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from greenlane.checks.source import expressions
from greenlane.checks.source.expressions import Node
from greenlane.matrix import formula

MASK_ATOMS = 16


class Formula(NamedTuple):
    """op: atom, not, and, or, true, false. Atoms: `defined X`, `value X`, `atleast X n`, or what isn't understood."""

    op: str
    atom: str = ""
    args: tuple[Formula, ...] = ()


TRUE = Formula("true")
FALSE = Formula("false")


def negate(it: Formula) -> Formula:
    if it.op == "not":
        return it.args[0]
    if it.op in {"true", "false"}:
        return FALSE if it.op == "true" else TRUE
    return Formula("not", "", (it,))


def both(formulas: Iterable[Formula]) -> Formula:
    return _join("and", formulas, TRUE, FALSE)


def either(formulas: Iterable[Formula]) -> Formula:
    return _join("or", formulas, FALSE, TRUE)


def _join(op: str, formulas: Iterable[Formula], neutral: Formula, decisive: Formula) -> Formula:
    parts: list[Formula] = []
    for it in formulas:
        if it == decisive:
            return decisive
        for part in it.args if it.op == op else (it,):
            if part != neutral and part not in parts:
                parts.append(part)
    return neutral if not parts else parts[0] if len(parts) == 1 else Formula(op, "", tuple(parts))


def parse_formula(text: str) -> Formula:
    """A constraint of the matrix, in which a macro's name means that it is defined."""
    return _constraint(formula.parse(text))


def _constraint(tree: formula.Formula) -> Formula:
    match tree:
        case formula.Constant(value):
            return TRUE if value else FALSE
        case formula.Atom(name):
            return Formula("atom", f"defined {name}")
        case formula.Not(operand):
            return negate(_constraint(operand))
        case formula.And(operands):
            return both(map(_constraint, operands))
        case formula.Or(operands):
            return either(map(_constraint, operands))


@lru_cache(maxsize=50_000)
def condition(text: str) -> Formula:
    """The formula of an #if expression."""
    return _truth(expressions.parse(text), text)


def _truth(node: Node, text: str) -> Formula:
    kind = node.kind
    if kind == "number":
        return TRUE if node.value else FALSE
    if kind == "name":
        return Formula("atom", f"value {node.value}")
    if kind == "defined":
        return Formula("atom", f"defined {node.value}")
    if kind == "!":
        return negate(_truth(node.args[0], text))
    if kind in {"&&", "||"}:
        return (both if kind == "&&" else either)(_truth(arg, text) for arg in node.args)
    if kind in _COMPARISONS:
        return _comparison(node) or _opaque(node)
    if kind == "unknown":
        return Formula("atom", "opaque " + " ".join(text.split()))
    return _opaque(node)


def _opaque(node: Node) -> Formula:
    return Formula("atom", f"opaque {node!r}")


_COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def _comparison(node: Node) -> Formula | None:
    kind, (left, right) = node.kind, node.args
    if left.kind == "number" and right.kind == "name":
        kind, left, right = _MIRRORED[kind], right, left
    if left.kind != "name" or right.kind != "number":
        return None
    bound = int(right.value)

    def at_least(value: int) -> Formula:
        return Formula("atom", f"atleast {left.value} {value}")

    equal = both([at_least(bound), negate(at_least(bound + 1))])
    return {
        ">=": at_least(bound),
        ">": at_least(bound + 1),
        "<": negate(at_least(bound)),
        "<=": negate(at_least(bound + 1)),
        "==": equal,
        "!=": negate(equal),
    }[kind]


def atoms(it: Formula) -> frozenset[str]:
    found: set[str] = set()
    _atoms(it, found)
    return frozenset(found)


def _atoms(it: Formula, found: set[str]) -> None:
    if it.op == "atom":
        found.add(it.atom)
    for arg in it.args:
        _atoms(arg, found)


def macro(atom: str) -> str:
    """The macro that an atom speaks of; empty for what isn't understood."""
    kind, _, rest = atom.partition(" ")
    return "" if kind == "opaque" else rest.split()[0]


def _axioms(used: frozenset[str]) -> list[Formula]:
    """What holds between atoms of one macro: a value needs a definition, a larger bound implies a smaller."""
    found: list[Formula] = []
    bounds: dict[str, list[int]] = {}
    for atom in used:
        kind, _, rest = atom.partition(" ")
        if kind == "value":
            found.append(_implies(atom, f"defined {rest}"))
        elif kind == "atleast":
            name, bound = rest.split()
            bounds.setdefault(name, []).append(int(bound))
    for name, values in bounds.items():
        values.sort()
        found += [_implies(f"atleast {name} {high}", f"atleast {name} {low}") for low, high in pairwise(values)]
        for value in values:
            if value > 0:
                found += [_implies(f"atleast {name} {value}", f"defined {name}")]
                if f"value {name}" in used:
                    found += [_implies(f"atleast {name} {value}", f"value {name}")]
    return found


def _implies(left: str, right: str) -> Formula:
    return either([negate(Formula("atom", left)), Formula("atom", right)])


class Worlds:
    """The worlds that exist: all assignments that the constraints of the matrix allow."""

    def __init__(self, constraints: Sequence[str] = ()) -> None:
        self._constraints = [parse_formula(text) for text in constraints]
        self._macros = [frozenset(map(macro, atoms(known))) for known in self._constraints]
        self._answers: dict[Formula, bool] = {}

    def possible(self, *formulas: Formula) -> bool:
        """Whether some world satisfies all of these."""
        question = both(formulas)
        if question.op in {"true", "false"}:
            return question.op == "true"
        if question not in self._answers:
            self._answers[question] = self._solve(question)
        return self._answers[question]

    def implies(self, left: Formula, right: Formula) -> bool:
        return not self.possible(left, negate(right))

    def equal(self, left: Formula, right: Formula) -> bool:
        return self.implies(left, right) and self.implies(right, left)

    def _solve(self, question: Formula) -> bool:
        everything = both([question, *self._relevant(atoms(question))])
        used = atoms(everything)
        axioms = _axioms(used)
        everything = both([everything, *axioms])
        used = atoms(everything)
        if len(used) <= MASK_ATOMS:
            return _mask(everything, _tables(tuple(sorted(used))), (1 << (1 << len(used))) - 1) != 0
        return _satisfiable(everything, used)

    def _relevant(self, used: frozenset[str]) -> list[Formula]:
        known = {macro(atom) for atom in used} - {""}
        chosen: list[Formula] = []
        waiting = list(zip(self._constraints, self._macros, strict=True))
        grew = True
        while grew:
            grew = False
            for entry in list(waiting):
                if entry[1] & known:
                    waiting.remove(entry)
                    chosen.append(entry[0])
                    known |= entry[1]
                    grew = True
        return chosen


@lru_cache(maxsize=1000)
def _tables(names: tuple[str, ...]) -> dict[str, int]:
    size = 1 << len(names)
    full = (1 << size) - 1
    tables = {}
    for index, name in enumerate(names):
        half = 1 << index
        tables[name] = full // ((1 << 2 * half) - 1) * ((1 << half) - 1) << half
    return tables


def _mask(it: Formula, tables: dict[str, int], full: int) -> int:
    if it.op == "atom":
        return tables[it.atom]
    if it.op == "not":
        return full ^ _mask(it.args[0], tables, full)
    if it.op in {"true", "false"}:
        return full if it.op == "true" else 0
    result = full if it.op == "and" else 0
    for arg in it.args:
        mask = _mask(arg, tables, full)
        result = result & mask if it.op == "and" else result | mask
    return result


def _satisfiable(it: Formula, used: frozenset[str]) -> bool:
    from pysat.solvers import Cadical153

    numbers = {atom: index for index, atom in enumerate(sorted(used), 1)}
    clauses: list[list[int]] = []
    top = _encode(it, numbers, clauses, [len(numbers)])
    with Cadical153(bootstrap_with=[*clauses, [top]]) as solver:
        return bool(solver.solve())


def _encode(it: Formula, numbers: dict[str, int], clauses: list[list[int]], last: list[int]) -> int:
    """Tseitin: a literal that is true exactly where the formula is."""
    if it.op == "atom":
        return numbers[it.atom]
    if it.op == "not":
        return -_encode(it.args[0], numbers, clauses, last)
    literals = [_encode(arg, numbers, clauses, last) for arg in it.args]
    last[0] += 1
    own = last[0]
    sign = 1 if it.op in {"and", "true"} else -1
    clauses += [[-own * sign, sign * literal] for literal in literals]
    clauses.append([own * sign, *(-sign * literal for literal in literals)])
    return own
