"""Quantiles of samples, and what is kept of them."""

from __future__ import annotations

from collections.abc import Sequence


def quantile(samples: Sequence[float], share: float) -> float:
    """Between the two nearest samples, by their distance (the usual linear rule, type 7 of Hyndman and Fan).

    Raise ValueError for no samples.
    """
    if not samples:
        raise ValueError("no samples")
    return of_sorted(sorted(samples), share)


def of_sorted(ordered: Sequence[float], share: float) -> float:
    """As `quantile`, of samples in order."""
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)
