"""Which slice is kept, where several were granted."""

from __future__ import annotations

from collections.abc import Collection
from math import inf

from tpudeploy.domain.state import Attempt
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.failed_landings import Pair, pair


def preference_key(
    attempt: Attempt, doubtful: Collection[Pair] = ()
) -> tuple[bool, bool, bool, float, float, float, str]:
    """The least is kept: one that clients were not sent away from; one that has served; one whose place is not
    doubtful (reconcile/failed_landings.py); the first that was granted.

    Of those that one look found granted, the cheaper; of these the one asked for earlier.
    """
    price = prices.usd_per_hour(attempt)
    granted_at = inf if attempt.granted_at is None else attempt.granted_at
    is_left = attempt.draining_at is not None
    is_doubtful = attempt.reclaim is not None or pair(attempt) in doubtful
    dear = inf if price is None else price
    return (is_left, not attempt.is_announced, is_doubtful, granted_at, dear, attempt.asked_at, attempt.name)
