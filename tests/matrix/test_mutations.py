"""10,000 seeded mutations of a valid matrix give a matrix or clean errors, never a traceback."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from greenlane.errors import MatrixError
from greenlane.matrix.loading import compile_matrix

ROOT = Path(__file__).parent.parent.parent
PLACE = re.compile(r"m\.yaml:\d+:\d+: \S|and \d+ more mistakes")
TOKENS = (
    "null", "~",
    "[]", "{}", "*a", "&a x", "<<", "-", ":", ": ", "\n", "  ", "'", '"', "[", "{", "}", "]", "#", "!", "!!str",
    "!!int x", "1e999", "0x", "true", "-1", "99999999999999999999", "\t", "|", ">", "%", "@",
    "gfx1100", "cpu", "é", "\x00",
    "{arch}", "${x}", "{nope}", "A && B", "x" * 5000, "2026-13-45", "on", ".inf", "? ", "---\n", "...\n",
)  # fmt: skip


def mutate(text: str, chance: random.Random) -> str:
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        lines = text.splitlines(keepends=True)
        at = chance.randrange(len(text) + 1)
        row = chance.randrange(len(lines)) if lines else 0
        kind = chance.randrange(7)
        if kind == 0:
            text = text[:at] + chance.choice(TOKENS) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + chance.randrange(1, 12) :]
        elif kind == 2 and lines:
            text = "".join(lines[:row] + lines[row + 1 :])
        elif kind == 3 and lines:
            text = "".join([*lines[:row], lines[row], *lines[row:]])
        elif kind == 4 and lines:
            lines[row] = " " * chance.randrange(4) + lines[row].lstrip() if chance.random() < 0.5 else "  " + lines[row]
            text = "".join(lines)
        elif kind == 5:
            words = list(re.finditer(r"[\w.]+", text))
            if words:
                word = chance.choice(words)
                text = text[: word.start()] + chance.choice((*TOKENS, chance.choice(words)[0])) + text[word.end() :]
        elif len(lines) > 1:
            other = chance.randrange(len(lines))
            lines[row], lines[other] = lines[other], lines[row]
            text = "".join(lines)
    return text


@pytest.mark.parametrize("seed", range(10))
def test_a_mutated_matrix_gives_a_verdict_or_clean_errors(seed: int, small: str) -> None:
    chance = random.Random(seed)
    whole = (ROOT / "matrix.yaml").read_text()
    sound = broken = 0
    for index in range(1000):
        text = mutate(whole if index % 10 == 0 else small, chance)
        try:
            assert compile_matrix(text.encode(), "m.yaml").matrix.lanes
            sound += 1
        except MatrixError as error:
            assert error.problems, text
            for line in error.problems:
                assert PLACE.match(line), (line, text)
                assert "\n" not in line, text
            broken += 1
    assert broken > 300
    assert sound > 30
