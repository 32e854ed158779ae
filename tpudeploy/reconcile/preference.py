"""The order in which slices of one replica are kept, where several were granted."""

from __future__ import annotations

from collections.abc import Collection
from math import inf

from tpudeploy.domain.deployment import Place
from tpudeploy.domain.state import Attempt
from tpudeploy.reconcile import prices


def preference_key(
    attempt: Attempt, doubtful: Collection[Place] = ()
) -> tuple[bool, bool, bool, float, float, float, str]:
    """Return the key by which slices are compared. The slice with the least key is kept.

    It prefers a slice that clients were not sent away from, then one that has served, then one whose place is not
    doubtful (reconcile/failed_landings.py), then the first grant. Among slices that one observation found granted, it
    prefers the cheaper one, then the earlier request.
    """
    price = prices.usd_per_hour(attempt)
    granted_at = inf if attempt.granted_at is None else attempt.granted_at
    is_draining = attempt.draining_at is not None
    is_doubtful = attempt.reclaim is not None or attempt.place in doubtful
    known_price = inf if price is None else price
    return (is_draining, not attempt.is_announced, is_doubtful, granted_at, known_price, attempt.asked_at, attempt.name)
