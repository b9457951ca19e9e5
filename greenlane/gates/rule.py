"""The decision rule of the bench gate: win, loss, wash or undecided, looked at a few times as pairs come in.

Everything is a paired log-ratio, turned so that more is better. With margin m and effect e: `win` says e > m, `loss`
says e < -m, `wash` says -m < e < m, each with an interval that holds over all looks; what none of them can say stays
`undecided`. The arrays have shape (trials, metrics): the gate has one trial, a simulation of the rule has thousands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlane.gates.student import critical
from greenlane.record.model import Outcome

FRACTIONS = (0.2, 0.4, 2 / 3, 1.0)  # of the largest number of pairs: when the rule looks
POWER = 0.8  # of the smallest visible effect

Floats = NDArray[np.float64]
UNDECIDED, WASH, WIN, LOSS = range(4)
OUTCOMES = (Outcome.UNDECIDED, Outcome.WASH, Outcome.WIN, Outcome.LOSS)


def looks(min_pairs: int, max_pairs: int) -> tuple[int, ...]:
    """Numbers of pairs, even so that a drift cancels.

    >>> looks(4, 30)
    (6, 12, 20, 30)
    """
    last = max_pairs + max_pairs % 2
    wanted = (2 * math.ceil(fraction * max_pairs / 2) for fraction in FRACTIONS)
    first = min_pairs + min_pairs % 2
    return tuple(sorted({min(max(pairs, first), last) for pairs in wanted}))


def spent(fraction: float) -> float:
    """How much of an error rate may be used up when this fraction of the pairs is in: little at first."""
    return min(1.0, fraction) ** 2


@dataclass
class Rule:
    margins: tuple[float, ...]  # log-ratio per metric
    error_rate: float
    max_pairs: int
    trials: int = 1
    used: float = 0.0  # part of the error rate that looks have spent
    step: float = 1.0  # part that the last look has spent; one that never looked would spend all
    verdicts: NDArray[np.int8] = field(init=False)

    def __post_init__(self) -> None:
        self.verdicts = np.zeros((self.trials, len(self.margins)), dtype=np.int8)

    def look(self, differences: Floats, *, last: bool = False) -> NDArray[np.int8]:
        """Judges (trials, metrics, pairs); what an earlier look has decided stays."""
        pairs = differences.shape[-1]
        self.step = (1.0 if last else spent(pairs / self.max_pairs)) - self.used
        self.used += self.step
        means, errors = differences.mean(-1), standard_errors(differences)
        self.changed(means, errors, pairs, self.step)
        self.washed(means, errors, pairs, self.step)
        return self.verdicts

    def changed(self, means: Floats, errors: Floats, pairs: int, step: float) -> None:
        """Holm over the metrics: the clearest must hold at the strictest level, the next one at the next, and so on."""
        margins = np.array(self.margins)
        beyond = np.abs(means) - margins
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(errors > 0, beyond / errors, np.where(beyond > 0, np.inf, -np.inf))
        found = (self.verdicts == WIN) | (self.verdicts == LOSS)
        remaining = len(self.margins) - found.sum(axis=1)
        score = np.where(found, -np.inf, score)
        going = np.ones(self.trials, dtype=bool)
        for _ in self.margins:
            best = score.argmax(axis=1)
            rows = np.arange(self.trials)
            limits = np.array([self.threshold(step, count, pairs) for count in range(1, len(self.margins) + 1)])
            going &= (remaining > 0) & (score[rows, best] > limits[np.maximum(remaining, 1) - 1])
            hit, column = rows[going], best[going]
            fresh = self.verdicts[hit, column] == UNDECIDED
            self.verdicts[hit[fresh], column[fresh]] = np.where(means[hit, column] > 0, WIN, LOSS)[fresh]
            score[rows, best] = -np.inf
            remaining = remaining - going

    def washed(self, means: Floats, errors: Floats, pairs: int, step: float) -> None:
        """Two one-sided tests: the whole interval lies within the margin."""
        width = critical(self.error_rate * step, pairs - 1) * errors
        inside = (np.abs(means) + width < np.array(self.margins)) & (self.verdicts == UNDECIDED)
        self.verdicts[inside] = WASH

    def threshold(self, step: float, remaining: int, pairs: int) -> float:
        """Half of the error rate for wins and half for losses."""
        return critical(self.error_rate * step / 2 / remaining, pairs - 1)

    def finished(self) -> NDArray[np.bool_]:
        """Per trial: one metric is lost, or every metric is decided."""
        return np.asarray((self.verdicts == LOSS).any(axis=1) | (self.verdicts != UNDECIDED).all(axis=1))

    def overall(self) -> NDArray[np.int8]:
        """Per trial: a loss anywhere; else a win if all are decided and one is won; else a wash or undecided."""
        lost = (self.verdicts == LOSS).any(axis=1)
        decided = (self.verdicts != UNDECIDED).all(axis=1)
        won = (self.verdicts == WIN).any(axis=1)
        word = np.where(lost, LOSS, np.where(~decided, UNDECIDED, np.where(won, WIN, WASH)))
        return word.astype(np.int8)


def standard_errors(differences: Floats) -> Floats:
    pairs = differences.shape[-1]
    return np.asarray(differences.std(axis=-1, ddof=1) / math.sqrt(pairs))


def described(differences: Floats, margin: float, judge: Rule) -> dict[str, Any]:
    """One metric's effect as a ratio minus one, and the smallest change that this run could have seen.

    The interval is the last look's: with those of the earlier looks it covers the effect with `confidence`.
    """
    pairs = len(differences)
    mean, error = float(differences.mean()), float(standard_errors(differences))
    width = critical(judge.error_rate * judge.step / 2, pairs - 1) * error
    visible = margin + width + critical(1 - POWER, pairs - 1) * error
    return {
        "pairs": pairs,
        "effect": math.expm1(mean),
        "interval": [math.expm1(mean - width), math.expm1(mean + width)],
        "confidence": 1 - judge.error_rate,
        "smallest_visible_effect": math.expm1(visible),
        "pair_noise": float(differences.std(ddof=1)),
    }
