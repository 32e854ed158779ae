"""Which slice is kept, where several were granted."""

from __future__ import annotations

from math import inf

from tpudeploy.core import prices
from tpudeploy.domain.state import Attempt


def seniority(attempt: Attempt) -> tuple[bool, bool, float, float, float, str]:
    """The least is kept: one that clients were not sent away from; one that has served; the first that was granted.

    Of those that one look found granted, the cheaper; of these the one asked for earlier.
    """
    price = prices.of_attempt(attempt)
    granted_at = inf if attempt.granted_at is None else attempt.granted_at
    is_left = attempt.draining_at is not None
    return (is_left, not attempt.served, granted_at, inf if price is None else price, attempt.asked_at, attempt.name)
