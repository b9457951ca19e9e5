"""Student's t distribution, exact enough for a verdict and with nothing to install."""

from __future__ import annotations

import math
from functools import lru_cache

SMALLEST = 1e-300


@lru_cache(maxsize=4096)
def critical(tail: float, degrees: int) -> float:
    """The t that is exceeded with probability `tail` (one side, at most one half)."""
    low, high = 0.0, 1.0
    while upper_tail(high, degrees) > tail:
        low, high = high, high * 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if upper_tail(middle, degrees) > tail else (low, middle)
    return high


def upper_tail(t: float, degrees: int) -> float:
    """P(T > t) for t >= 0.

    >>> round(upper_tail(2.228139, 10), 6)
    0.025
    """
    return 0.5 * incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side only
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) * continued_fraction(a, b, x) / a


def continued_fraction(a: float, b: float, x: float) -> float:
    """Evaluated from the front by Lentz's method."""
    c, d = 1.0, 1 / nonzero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / nonzero(1 + term * d)
            c = nonzero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return value


def nonzero(value: float) -> float:
    return value if abs(value) > SMALLEST else SMALLEST
