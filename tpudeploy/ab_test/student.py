"""Student's t for whole degrees of freedom, exactly: the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4."""

from __future__ import annotations

from functools import lru_cache
from math import atan, cos, pi, sin, sqrt, tan

_HALVINGS = 60  # of a right angle: beyond what a float can tell


def within(t: float, df: int) -> float:
    """How likely |T| is at most `t`, which is not negative."""
    angle = atan(t / sqrt(df))
    c = cos(angle)
    if df % 2:
        return 2 / pi * (angle + (sin(angle) * _sum(c, c, range(3, df, 2)) if df > 1 else 0.0))
    return sin(angle) * _sum(1.0, c, range(2, df, 2))


def chance(t: float, df: int) -> float:
    """How likely |T| is as large as |`t`|, or larger: the two-sided p-value."""
    return 1 - within(abs(t), df)


@lru_cache(maxsize=64)
def quantile(share: float, df: int) -> float:
    """The t below which this `share` of T lies, from one half to less than 1."""
    low, high = 0.0, pi / 2  # by its angle: what is unbounded is halved badly
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if within(tan(middle) * sqrt(df), df) < 2 * share - 1 else (low, middle)
    return tan(low) * sqrt(df)


def _sum(first: float, c: float, steps: range) -> float:
    """Each term is the one before, by (n - 1) / n of the squared cosine."""
    total = term = first
    for n in steps:
        term *= (n - 1) / n * c * c
        total += term
    return total
