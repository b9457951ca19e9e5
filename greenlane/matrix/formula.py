"""Boolean formulas over macros: `!(USE_CUDA && USE_HIP)`, `A -> B`, `at_most_one(A, B, C)`.

Frozen trees that constraints and presence conditions share. An atom is a macro that is defined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

MAX_DEPTH = 100
MAX_ARGUMENTS = 64
MAX_EQUIVALENCES = 8  # each one doubles the formula


class FormulaError(ValueError):
    """A formula that can't be read; `column` counts from one."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True, slots=True)
class Constant:
    value: bool


@dataclass(frozen=True, slots=True)
class Atom:
    name: str


@dataclass(frozen=True, slots=True)
class Not:
    operand: Formula


@dataclass(frozen=True, slots=True)
class And:
    operands: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Or:
    operands: tuple[Formula, ...]


Formula = Constant | Atom | Not | And | Or
TRUE, FALSE = Constant(True), Constant(False)


def negate(formula: Formula) -> Formula:
    if isinstance(formula, Constant):
        return FALSE if formula.value else TRUE
    return formula.operand if isinstance(formula, Not) else Not(formula)


def all_of(*operands: Formula) -> Formula:
    """The conjunction, flattened, without constants and repetitions."""
    return _join(And, FALSE, operands)


def any_of(*operands: Formula) -> Formula:
    """The disjunction, flattened, without constants and repetitions."""
    return _join(Or, TRUE, operands)


def implies(left: Formula, right: Formula) -> Formula:
    return any_of(negate(left), right)


def at_most_one(*operands: Formula) -> Formula:
    pairs = [(a, b) for index, a in enumerate(operands) for b in operands[index + 1 :]]
    return all_of(*(negate(all_of(a, b)) for a, b in pairs))


def exactly_one(*operands: Formula) -> Formula:
    return all_of(any_of(*operands), at_most_one(*operands))


def _join(kind: type[And] | type[Or], absorbing: Constant, operands: tuple[Formula, ...]) -> Formula:
    flat: dict[Formula, None] = {}
    for operand in operands:
        for part in operand.operands if isinstance(operand, kind) else (operand,):
            if part == absorbing:
                return absorbing
            if not isinstance(part, Constant):
                flat[part] = None
    if len(flat) < 2:
        return next(iter(flat), negate(absorbing))
    return kind(tuple(flat))


def evaluate(formula: Formula, defined: Collection[str]) -> bool:
    """Whether the formula holds where exactly these macros are defined."""
    match formula:
        case Constant(value):
            return value
        case Atom(name):
            return name in defined
        case Not(operand):
            return not evaluate(operand, defined)
        case And(operands):
            return all(evaluate(operand, defined) for operand in operands)
        case Or(operands):
            return any(evaluate(operand, defined) for operand in operands)


def atoms(formula: Formula) -> frozenset[str]:
    """The macros that the formula mentions."""
    return frozenset(_atoms(formula))


def _atoms(formula: Formula) -> Iterator[str]:
    match formula:
        case Atom(name):
            yield name
        case Not(operand):
            yield from _atoms(operand)
        case And(operands) | Or(operands):
            for operand in operands:
                yield from _atoms(operand)


def to_text(formula: Formula, atom: Callable[[str], str] = str) -> str:
    """The formula in C's words; `atom` renders a macro: `lambda name: f"defined({name})"`.

    >>> to_text(parse("not (A and B) or C"), "defined({})".format)
    '!(defined(A) && defined(B)) || defined(C)'
    """
    match formula:
        case Constant(value):
            return "1" if value else "0"
        case Atom(name):
            return atom(name)
        case Not(operand):
            return "!" + _wrapped(operand, atom)
        case And(operands):
            return " && ".join(_wrapped(operand, atom) for operand in operands)
        case Or(operands):
            return " || ".join(
                _wrapped(operand, atom) if isinstance(operand, Or) else to_text(operand, atom) for operand in operands
            )


def _wrapped(formula: Formula, atom: Callable[[str], str]) -> str:
    text = to_text(formula, atom)
    return f"({text})" if isinstance(formula, And | Or) else text


_TOKEN = re.compile(r"\s*(<->|->|==|&&|\|\||[!(),]|[A-Za-z_]\w*|[01]\b|\S)")
_SYMBOLS = {"not": "!", "and": "&&", "or": "||", "implies": "->", "==": "<->"}
_CONSTANTS = {"true": TRUE, "1": TRUE, "false": FALSE, "0": FALSE}
_FUNCTIONS: dict[str, Callable[..., Formula]] = {"at_most_one": at_most_one, "exactly_one": exactly_one}


def parse(text: str) -> Formula:
    """Reads `!`, `&&`, `||`, `->`, `<->`, their words, `defined(X)`, `at_most_one(...)` and `exactly_one(...)`."""
    reader = _Reader(text)
    formula = reader.equivalence(0)
    if reader.word:
        raise FormulaError(f"{reader.word!r} is out of place", reader.column)
    return formula


class _Reader:
    """Recursive descent, one method per precedence; `depth` bounds the nesting."""

    def __init__(self, text: str) -> None:
        stripped = text.rstrip()
        self._tokens = [(_SYMBOLS.get(m[1], m[1]), m.start(1) + 1) for m in _TOKEN.finditer(stripped)]
        self._tokens.append(("", len(stripped) + 1))
        self._at = 0
        self._equivalences = 0

    @property
    def word(self) -> str:
        return self._tokens[self._at][0]

    @property
    def column(self) -> int:
        return self._tokens[self._at][1]

    def accept(self, word: str) -> bool:
        if self.word != word:
            return False
        self._at += 1
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            found = repr(self.word) if self.word else "the end"
            raise FormulaError(f"{word!r} is wanted, not {found}", self.column)

    def equivalence(self, depth: int) -> Formula:
        if depth > MAX_DEPTH:
            raise FormulaError(f"nested deeper than {MAX_DEPTH} levels", self.column)
        left = self.implication(depth)
        while self.accept("<->"):
            self._equivalences += 1
            if self._equivalences > MAX_EQUIVALENCES:
                raise FormulaError(f"more than {MAX_EQUIVALENCES} equivalences", self.column)
            right = self.implication(depth)
            left = all_of(implies(left, right), implies(right, left))
        return left

    def implication(self, depth: int) -> Formula:
        parts = [self.disjunction(depth)]
        while self.accept("->"):
            parts.append(self.disjunction(depth))
        formula = parts.pop()
        while parts:
            formula = implies(parts.pop(), formula)
        return formula

    def disjunction(self, depth: int) -> Formula:
        parts = [self.conjunction(depth)]
        while self.accept("||"):
            parts.append(self.conjunction(depth))
        return any_of(*parts)

    def conjunction(self, depth: int) -> Formula:
        parts = [self.unary(depth)]
        while self.accept("&&"):
            parts.append(self.unary(depth))
        return all_of(*parts)

    def unary(self, depth: int) -> Formula:
        negated = False
        while self.accept("!"):
            negated = not negated
        formula = self.primary(depth)
        return negate(formula) if negated else formula

    def primary(self, depth: int) -> Formula:
        word, column = self.word, self.column
        self._at += bool(word)
        if word == "(":
            formula = self.equivalence(depth + 1)
            self.expect(")")
            return formula
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        if not re.fullmatch(r"[A-Za-z_]\w*", word):
            raise FormulaError(f"a macro is wanted, not {word!r}" if word else "a macro is wanted at the end", column)
        if word in _FUNCTIONS and self.accept("("):
            return _FUNCTIONS[word](*self.arguments(depth + 1))
        if word == "defined":
            return self.defined()
        return Atom(word)

    def arguments(self, depth: int) -> list[Formula]:
        found = [self.equivalence(depth)]
        while self.accept(","):
            found.append(self.equivalence(depth))
        self.expect(")")
        if len(found) > MAX_ARGUMENTS:
            raise FormulaError(f"more than {MAX_ARGUMENTS} macros in one function", self.column)
        return found

    def defined(self) -> Formula:
        bracket = self.accept("(")
        name, column = self.word, self.column
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise FormulaError("`defined` takes a macro", column)
        self._at += 1
        if bracket:
            self.expect(")")
        return Atom(name)
