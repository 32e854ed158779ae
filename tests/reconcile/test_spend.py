"""What one request costs by the facts about it: the least, the most, and whether it still runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.ledger import (
    BackendMove,
    EndEvidence,
    LedgerFact,
    MachineEnd,
    NewRequest,
    PricedRequest,
    Sighting,
    StateRemoval,
    StillRuns,
)
from tpudeploy.domain.names import Zone
from tpudeploy.reconcile.spend import Billing, interval, situation

HOUR = 3600.0
REQUEST = PricedRequest(
    deployment="gemma",
    name="gemma-0-0",
    zone=Zone.parse("us-east5-a"),
    provisioning=Provisioning.SPOT,
    chips=1,
    usd_per_hour=2.0,
)
FLEX = replace(REQUEST, provisioning=Provisioning.FLEX_START)
RECORDED, BOUND = EndEvidence.RECORDED, EndEvidence.BOUND


def requested(**values: Any) -> NewRequest:
    return NewRequest(request=REQUEST, at=0.0, **values)


def sighting(at: float = 1.0, **values: Any) -> Sighting:
    """Return that a command saw it at this hour, created at the hour 0."""
    return Sighting(request=values.pop("request", REQUEST), at=at * HOUR, began=0.0, **values)


def end(ended: float | None, *, at: float | None = None, **values: Any) -> MachineEnd:
    request, when = values.pop("request", REQUEST), at if at is not None else ended or 0.0
    return MachineEnd(request=request, at=when * HOUR, ended=None if ended is None else ended * HOUR, **values)


RUNS, MAY_RUN, RAN, UNKNOWN = Billing.RUNS, Billing.MAY_RUN, Billing.RAN, Billing.UNKNOWN
# The facts, how it may end by itself (in hours), and by the hour 10: whether it runs, its least and its most hours.
CASES: dict[str, tuple[Sequence[LedgerFact], float, Billing, float, float]] = {
    "seen, and nothing ends it": ([requested(), sighting()], inf, RUNS, 1, 10),
    "seen twice": ([sighting(), sighting(7)], inf, RUNS, 7, 10),
    "its own end is to come": ([sighting()], 11, RUNS, 1, 10),
    "its own end may have come": ([sighting()], 4, MAY_RUN, 1, 10),
    "Google ended it by the clock": ([sighting(ends_at=4 * HOUR)], inf, RAN, 1, 4),
    "Google's end is to come": ([sighting(ends_at=12 * HOUR)], inf, RUNS, 1, 10),
    "deleted by a run": ([sighting(), end(3)], inf, RAN, 3, 3),
    "deleted after its own end": ([sighting(), end(5)], 4, RAN, 5, 5),
    "found gone, by Google's record": ([sighting(), end(9, evidence=BOUND), end(4, evidence=RECORDED)], 4, RAN, 4, 4),
    "found gone, without a record": ([sighting(), end(9, evidence=BOUND)], inf, RAN, 1, 9),
    "found gone twice": ([sighting(), end(9, evidence=BOUND), end(8, evidence=BOUND)], inf, RAN, 1, 8),
    "found gone after Google's end": (
        [sighting(request=FLEX, ends_at=4 * HOUR), end(9, evidence=BOUND, request=FLEX)],
        inf,
        RAN,
        4,
        4,
    ),
    "a spot slice, found gone after Google's end": (
        [sighting(ends_at=4 * HOUR), end(9, evidence=BOUND)],
        inf,
        RAN,
        1,
        4,
    ),
    "seen, and forgotten as one that never ran": ([sighting(), end(None, at=6)], inf, RAN, 1, 6),
    "its machine outlived its request": (
        [sighting(), end(3), StillRuns(request=REQUEST, at=7 * HOUR), end(8)],
        inf,
        RAN,
        8,
        8,
    ),
    "its machine outlives its request": (
        [sighting(), end(3), StillRuns(request=REQUEST, at=7 * HOUR)],
        inf,
        RUNS,
        7,
        10,
    ),
    "removed from a state": ([sighting(), StateRemoval(request=REQUEST, at=2 * HOUR)], inf, RUNS, 1, 10),
    "requested, and never looked at": ([requested()], inf, UNKNOWN, 0, 10),
    "requested, for two hours at most": ([requested(most_seconds=2 * HOUR)], inf, UNKNOWN, 0, 2),
    "requested, until the fourth hour": ([requested(ends_by=4 * HOUR)], inf, UNKNOWN, 0, 4),
}


@pytest.mark.parametrize("case", CASES)
def test_a_request_was_billed_for(case: str) -> None:
    facts, own_end, billing, least, most = CASES[case]
    result = interval(facts, 10 * HOUR, own_end=own_end * HOUR)
    assert result is not None
    assert result.billing is billing
    assert result.least_usd(0.0, inf) == pytest.approx(2.0 * least)
    assert result.most_usd(0.0, inf) == pytest.approx(2.0 * most)


def test_what_no_state_tracks_may_run() -> None:
    result = interval([sighting()], 10 * HOUR, is_tracked=False)
    assert result is not None
    assert (result.billing, result.is_untracked) == (MAY_RUN, True)


@pytest.mark.parametrize(
    "facts",
    [[requested(), end(None)], [sighting(), BackendMove(request=REQUEST, at=2 * HOUR)]],
    ids=["it was refused", "another ledger has it"],
)
def test_a_request_is_not_billed_here(facts: Sequence[LedgerFact]) -> None:
    assert interval(facts, 10 * HOUR) is None


def test_an_unknown_price_may_be_any() -> None:
    result = interval([sighting(request=replace(REQUEST, usd_per_hour=None))], 10 * HOUR)
    assert result is not None
    assert (result.least_usd(0.0, inf), result.most_usd(0.0, inf)) == (0.0, inf)


@pytest.mark.parametrize(
    ("facts", "spent", "alive"),
    [
        ([sighting(), end(3)], 6.0, 0.0),
        ([sighting(ends_at=4 * HOUR)], 8.0, 0.0),
        ([sighting(ends_at=12 * HOUR)], 20.0, 4.0),
        ([requested(ends_by=12 * HOUR, most_seconds=3 * HOUR)], 0.0, 6.0),
        ([requested(ends_by=4 * HOUR)], 0.0, 0.0),
    ],
    ids=["deleted", "ended by the clock", "running", "waiting, or unseen", "past the last moment of its end"],
)
def test_what_no_state_tracks_counts_once(facts: Sequence[LedgerFact], spent: float, alive: float) -> None:
    result = interval(facts, 10 * HOUR)
    assert result is not None
    everything = situation([result], (), 10 * HOUR)
    assert (everything.spent(0.0, inf), everything.alive(0.0, 1e9)) == pytest.approx((spent, alive))
