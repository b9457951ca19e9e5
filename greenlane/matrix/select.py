"""The language of `--select`: globs on ids, tags, `backend:rocm and not arch:gfx9*`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from greenlane.errors import MatrixError
from greenlane.matrix.problems import nearest
from greenlane.matrix.rows import Row

KEYS = {
    "id": "id",
    "tag": "tags",
    "backend": "backend",
    "toolkit": "toolkit",
    "arch": "arch",
    "variant": "variant",
    "row": "row",
    "require": "require",
    "compiler": "compiler",
    "family": "family",
    "device": "device",
    "vendor": "vendors",
    "executor": "executor",
    "runner": "runs_on",
}
MAX_DEPTH = 50
_TOKEN = re.compile(r"""\s*([(),]|"[^"]*"|'[^']*'|[^\s(),]+)""")
Test = Callable[[Row], bool]


@dataclass(slots=True)
class Word:
    """One word of an expression: a glob on one key, or on id and tags."""

    text: str
    key: str | None
    glob: str
    column: int

    def matches(self, row: Row) -> bool:
        return any(fnmatchcase(value, self.glob) for value in self.values(row))

    def values(self, row: Row) -> Sequence[str]:
        if self.key is None:
            return (row["id"], *row["tags"])
        found = row[KEYS[self.key]]
        return found if isinstance(found, list) else () if found is None else (found,)


class Selection:
    """A parsed expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[Word] = []
        self._tokens = [(match[1], match.start(1) + 1) for match in _TOKEN.finditer(text)] + [("", len(text) + 1)]
        self._at = 0
        self.test = self._any(0)
        if self._token:
            self._refuse(f"{self._token!r} is out of place")

    def select(self, rows: Sequence[Row]) -> list[Row]:
        """The rows that the expression selects. A word that matches none of them, and an empty result, are errors."""
        for word in self.words:
            if not any(word.matches(row) for row in rows):
                known = {value for row in rows for value in word.values(row)}
                self._refuse(f"{word.text!r} matches no lane{nearest(word.glob, sorted(known))}", word.column)
        selected = [row for row in rows if self.test(row)]
        if not selected:
            self._refuse("each word matches a lane, but no lane is left", 1)
        return selected

    def why(self, row: Row) -> str:
        """Which words match the row, for `explain`."""
        said = [f"{word.text} {'matches' if word.matches(row) else 'does not match'}" for word in self.words]
        return ", ".join(said)

    @property
    def _token(self) -> str:
        return self._tokens[self._at][0]

    def _any(self, depth: int) -> Test:
        if depth > MAX_DEPTH:
            self._refuse(f"nested deeper than {MAX_DEPTH} levels")
        tests = [self._all(depth)]
        while self._token in ("or", ","):
            self._at += 1
            tests.append(self._all(depth))
        return lambda row: any(test(row) for test in tests)

    def _all(self, depth: int) -> Test:
        tests = [self._not(depth)]
        while self._token == "and":
            self._at += 1
            tests.append(self._not(depth))
        return lambda row: all(test(row) for test in tests)

    def _not(self, depth: int) -> Test:
        negated = False
        while self._token == "not":
            self._at += 1
            negated = not negated
        test = self._primary(depth)
        return (lambda row: not test(row)) if negated else test

    def _primary(self, depth: int) -> Test:
        token, column = self._tokens[self._at]
        if token in ("", ")", "and", "or", ","):
            self._refuse(f"a glob, a tag or key:glob is wanted{f', not {token!r}' if token else ' at the end'}")
        self._at += 1
        if token == "(":
            test = self._any(depth + 1)
            if self._token != ")":
                self._refuse("')' is wanted")
            self._at += 1
            return test
        word = self._word(token, column)
        self.words.append(word)
        return word.matches

    def _word(self, token: str, column: int) -> Word:
        text = token[1:-1] if token[0] in "\"'" and token[-1] == token[0] and len(token) > 1 else token
        key, colon, glob = text.partition(":")
        if not colon:
            return Word(text, None, text, column)
        if key not in KEYS:
            self._refuse(f"no key {key!r}; there are {', '.join(KEYS)}{nearest(key, KEYS)}", column)
        return Word(text, key, glob, column)

    def _refuse(self, message: str, column: int | None = None) -> None:
        raise MatrixError(f"--select:{column or self._tokens[self._at][1]}: {message}")
