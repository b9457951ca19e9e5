"""The sentences of a pull request's body that claim something, told apart by what would prove them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from greenlane.matrix.model import Evidence, Stage
from greenlane.record.model import Outcome

MAX_BODY = 262_144
MAX_LINE = 4_000

COMMENT = re.compile(r"<!--.*?(-->|\Z)", re.DOTALL)
FENCE = re.compile(r"^(```|~~~).*?(^\1|\Z)", re.DOTALL | re.MULTILINE)
BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[xX]\]\s+)?")
OPEN_TASK = re.compile(r"^\s*[-*+]\s+\[ \]")
BREAK = re.compile(r"(?<=[.;!?])\s+|,\s+(?:and\s+)?|\s+and\s+(?=\w+\W)")


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{text})" for text in alternatives), re.IGNORECASE)


NEGATION = _any(
    r"\b(?:not|never|isn't|aren't|wasn't|to ?do|should|hopefully)\b",
    r"\bexpected to\b",
    r"\bun(?:tested|verified|proven)\b",
)
CLOSES = _any(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\s*:?\s+"
    r"(?:(?:[\w.-]+/[\w.-]+)?#|GH-|https?://[\w.:-]+/[\w.-]+/[\w.-]+/issues/)\d+"
)
ARCH = re.compile(r"(?<![\w-])(gfx\d[0-9a-f]{2,4}|sm_\d{2,3}[a-z]?)(?![\w-])")
ROW = _any(r"^\s*(?:[-*+]\s+)?\**row\**\s*[:=]\s*\**\s*`?([\w./-]+)`?")


@dataclass(frozen=True, slots=True)
class Kind:
    """A family of sentences, and what in a record proves one."""

    name: str
    pattern: re.Pattern[str]
    evidence: Evidence
    stage: Stage  # its red contradicts the sentence
    outcome: Outcome | None = None  # of the bench stage, where the flag alone does not say it


# The first kind that a sentence matches is the one it is.
KINDS = (
    Kind(
        "mirror-exact",
        _any(
            r"\bon\s*={1,3}\s*off\b",
            r"\bon\s*/\s*off\b.*\b(?:identical|exact|equal)",
            r"\b(?:identical|exact|equal)\b.*\bon (?:and|/) off\b",
        ),
        Evidence.EXACT,
        Stage.EXACT,
    ),
    Kind(
        "exact",
        _any(
            r"\btoken[- ](?:for[- ]token|exact|identical)",
            r"\bbit(?:wise)?[- ]identical",
            r"\bidentical (?:tokens|output|ids)",
        ),
        Evidence.EXACT,
        Stage.EXACT,
    ),
    Kind(
        "built",
        _any(
            r"\b(?:builds?|built|compiles?|compiled)\b[^.]*\b(?:clean(?:ly)?|without (?:warnings|errors)|green)\b",
            r"\bclean (?:build|compile)\b",
        ),
        Evidence.BUILT,
        Stage.BUILD,
    ),
    Kind(
        "reached",
        _any(r"\b(?:kernels?|path|dispatch\w*)\b.*\b(?:reached|exercised|dispatched)\b"),
        Evidence.REACHED,
        Stage.REACH,
    ),
    Kind("tested", _any(r"\b(?:all )?tests? (?:all )?(?:pass(?:es|ed)?|green)\b"), Evidence.TESTED, Stage.TEST),
    Kind(
        "wash",
        _any(
            r"\bwash\b",
            r"\bno (?:perf\w*|measurable) (?:change|impact|regression|difference)",
            r"\bperf\w*[- ]neutral\b",
        ),
        Evidence.BENCHED,
        Stage.BENCH,
        Outcome.WASH,
    ),
    Kind(
        "win",
        _any(
            r"(?<![\w.+])\+\s?\d+(?:\.\d+)?\s?%",
            r"\b\d+(?:\.\d+)?\s?% (?:faster|quicker|higher|less|lower|fewer|smaller)",
            r"\b\d+(?:\.\d+)?\s?[x×] (?:faster|quicker|speed-?up)",
        ),
        Evidence.BENCHED,
        Stage.BENCH,
        Outcome.WIN,
    ),
    Kind(
        "loss",
        _any(r"(?<![\w.−-])[−-]\s?\d+(?:\.\d+)?\s?%", r"\b\d+(?:\.\d+)?\s?% (?:slower|worse)"),
        Evidence.BENCHED,
        Stage.BENCH,
        Outcome.LOSS,
    ),
)


def lines(body: str) -> Iterator[tuple[int, str]]:
    """(number, line) where a person claims something: no comments, code, quotations, or boxes left open."""
    text = body[:MAX_BODY].replace("\r\n", "\n")
    for pattern in (COMMENT, FENCE):
        text = pattern.sub(lambda match: "\n" * match.group().count("\n"), text)
    for number, line in enumerate(text.split("\n"), 1):
        if not OPEN_TASK.match(line) and not line.lstrip().startswith(">"):
            yield number, line[:MAX_LINE]


def sentences(line: str) -> list[str]:
    """The parts of a line, one claim each. What only goes on, as in "clean on CUDA and ROCm", stays with its claim.

    >>> sentences("- Builds clean on CUDA and ROCm 7.x, token-exact on gfx1100.")
    ['Builds clean on CUDA and ROCm 7.x', 'token-exact on gfx1100.']
    """
    text = BULLET.sub("", line)
    found: list[tuple[int, int]] = []
    start, continued = 0, False
    for joint in (*BREAK.finditer(text), None):
        end = joint.start() if joint else len(text)
        if continued and _goes_on(text[slice(*found[-1])], text[start:end]):
            found[-1] = (found[-1][0], end)
        elif text[start:end].strip():
            found.append((start, end))
        if joint is not None:
            start, continued = joint.end(), bool(found) and joint[0].strip() != ""
    return [text[slice(*ends)].strip() for ends in found]


def _goes_on(claim: str, more: str) -> bool:
    return kind_of(claim) is not None and kind_of(more) is None and not NEGATION.search(more)


def kind_of(sentence: str) -> Kind | None:
    """The kind of claim that a sentence makes; None for none, and for one that is denied or only hoped for."""
    for kind in KINDS:
        match = kind.pattern.search(sentence)
        if match:
            return None if NEGATION.search(sentence[: match.end()]) else kind
    return None
