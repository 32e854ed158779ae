"""Student's t: how probable a value is, and the value below which a share of it lies."""

from __future__ import annotations

from functools import lru_cache
from math import atan, cos, pi, sin, sqrt, tan

_HALVINGS = 60  # of a right angle: beyond the precision of a float


def within(t: float, df: int) -> float:
    """Return the probability that |T| is at most `t`, which is not negative.

    It is exact for whole degrees of freedom: the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
    """
    angle = atan(t / sqrt(df))
    c = cos(angle)
    if df % 2:
        return 2 / pi * (angle + (sin(angle) * _sum(c, c, range(3, df, 2)) if df > 1 else 0.0))
    return sin(angle) * _sum(1.0, c, range(2, df, 2))


@lru_cache(maxsize=64)
def quantile(share: float, df: int) -> float:
    """Return the t below which this share of T lies, for shares from one half to less than 1."""
    low, high = 0.0, pi / 2  # bisects the angle, because t itself is unbounded
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if within(tan(middle) * sqrt(df), df) < 2 * share - 1:
            low = middle
        else:
            high = middle
    return tan(low) * sqrt(df)


def _sum(first: float, c: float, steps: range) -> float:
    """Return a sum in which each term is the previous one times (n - 1) / n of the squared cosine."""
    total = term = first
    for n in steps:
        term *= (n - 1) / n * c * c
        total += term
    return total
