"""How a verdict or an outcome looks to a reader: a family that gives it its colour, and a sign beside the colour."""

from __future__ import annotations

from enum import StrEnum

from greenlane.record.model import Outcome
from greenlane.review.model import ClaimState, Verdict


class Family(StrEnum):
    """What a reader tells apart at a glance."""

    GOOD = "good"
    BAD = "bad"
    UNSURE = "unsure"  # red, and nobody may say yet whose
    KNOWN = "known"  # red, and not this change's
    NONE = "none"  # nothing is proven


SIGN = {Family.GOOD: "✓", Family.BAD: "✕", Family.UNSURE: "!", Family.KNOWN: "–", Family.NONE: "○"}
INCOMPLETE = "incomplete"  # nothing is red, and the lane lacks evidence that it requires

_VERDICTS = {
    Verdict.GREEN: Family.GOOD,
    Verdict.NEW_RED: Family.BAD,
    Verdict.OVERLAP_RED: Family.BAD,
    Verdict.UNCLASSIFIED: Family.BAD,
    Verdict.RED_ON_BASE: Family.KNOWN,
    Verdict.KNOWN_RED: Family.KNOWN,
    Verdict.NOT_RUN: Family.NONE,
}
_CLAIMS = {
    ClaimState.PROVEN: Family.GOOD,
    ClaimState.CONTRADICTED: Family.BAD,
    ClaimState.STALE: Family.UNSURE,
    ClaimState.OTHER_DEVICE: Family.UNSURE,
}


def of_verdict(verdict: Verdict) -> Family:
    return _VERDICTS.get(verdict, Family.UNSURE)


def of_claim(state: ClaimState) -> Family:
    return _CLAIMS.get(state, Family.NONE)


def of_outcome(outcome: str) -> Family:
    """Also of a word that a stranger wrote where an outcome belongs."""
    try:
        known = Outcome(outcome)
    except ValueError:
        return Family.NONE
    if known is Outcome.VOID:
        return Family.UNSURE
    return Family.GOOD if known.is_green else Family.BAD if known.is_red else Family.NONE
