"""How many replicas a load needs, by one observation after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tpudeploy.domain.deployment import Scale
from tpudeploy.domain.slices import ServerLoad
from tpudeploy.reconcile.scaling import SUSTAINED, Decision, Demand, Tendency, Trend, decide_scale

NOW = 1_000_000.0
MINUTE = 60.0
SCALE = Scale(min=1, max=4, waiting=4, kv_cache=0.8, cooldown_seconds=600)
IDLE = ServerLoad(running=0, waiting=0, kv_cache_used=0.0)
QUEUE = ServerLoad(running=200, waiting=9, kv_cache_used=0.5)
FULL = ServerLoad(running=100, waiting=0, kv_cache_used=0.9)
LASTING_OVER = Trend(tendency=Tendency.OVER, since=NOW - SUSTAINED)
LASTING_BELOW = Trend(tendency=Tendency.BELOW, since=NOW - 600)
LONG_AGO = NOW - 601


def load(running: int, waiting: int = 0, kv_cache_used: float = 0.0) -> ServerLoad:
    return ServerLoad(running=running, waiting=waiting, kv_cache_used=kv_cache_used)


def demand(
    loads: Sequence[ServerLoad | None],
    *,
    replicas: int | None = None,
    trend: Trend = LASTING_OVER,
    scaled_at: float | None = None,
    least: int = 1,
    places: int | None = 256,
    usd: float | None = 5.0,
) -> Demand:
    return Demand(
        replicas=len(loads) if replicas is None else replicas,
        least=least,
        loads=loads,
        places=places,
        usd_per_hour_next=usd,
        trend=trend,
        scaled_at=scaled_at,
        now=NOW,
    )


def decided(loads: Sequence[ServerLoad | None], **fields: Any) -> Decision:
    return decide_scale(SCALE, demand(loads, **fields))


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        pytest.param(demand([QUEUE]), 2, id="a queue that lasts adds one"),
        pytest.param(demand([FULL]), 2, id="so do full caches"),
        pytest.param(demand([QUEUE], trend=Trend()), 1, id="a queue of one observation does not"),
        pytest.param(demand([QUEUE], trend=Trend(tendency=Tendency.OVER, since=NOW - 59)), 1, id="nor one of 59 s"),
        pytest.param(demand([QUEUE], trend=LASTING_BELOW), 1, id="nor one after a quiet time"),
        pytest.param(demand([load(9, waiting=4)]), 1, id="as many as the limit may wait"),
        pytest.param(demand([load(9, waiting=5)]), 2, id="one more may not"),
        pytest.param(demand([load(9, kv_cache_used=0.8)]), 1, id="caches may be as full as the limit"),
        pytest.param(demand([load(9, kv_cache_used=0.5)] * 2), 2, id="the average of two caches counts"),
        pytest.param(demand([QUEUE, IDLE]), 3, id="the average of two counts: 4.5 wait for each"),
        pytest.param(demand([QUEUE, IDLE, IDLE]), 3, id="the average of three counts: 3 wait for each"),
        pytest.param(demand([QUEUE] * 4), 4, id="never more than the greatest number"),
        pytest.param(demand([QUEUE], replicas=2), 2, id="the one that was added last does not serve yet"),
        pytest.param(demand([QUEUE], scaled_at=NOW - 599), 1, id="the cool-down is not over"),
        pytest.param(demand([QUEUE], scaled_at=NOW - 600), 2, id="the cool-down is over"),
        pytest.param(demand([], replicas=1), 1, id="nothing serves, and there is one"),
        pytest.param(demand([], replicas=2), 2, id="nothing serves, so nothing is known"),
        pytest.param(demand([QUEUE, None]), 2, id="one load is unknown"),
        pytest.param(demand([QUEUE, ServerLoad(running=1, waiting=2)]), 2, id="one cache is unknown"),
        pytest.param(demand([ServerLoad(running=None, waiting=9, kv_cache_used=0.9)]), 1, id="running is unknown"),
        pytest.param(demand([ServerLoad(running=9, waiting=None, kv_cache_used=0.9)]), 1, id="waiting is unknown"),
        pytest.param(demand([IDLE] * 2, trend=LASTING_BELOW), 1, id="two idle ones lose one"),
        pytest.param(demand([IDLE] * 2, trend=LASTING_BELOW, scaled_at=NOW - 599), 2, id="not during the cool-down"),
        pytest.param(demand([IDLE] * 2, trend=LASTING_BELOW, scaled_at=LONG_AGO), 1, id="but after it"),
        pytest.param(
            demand([IDLE] * 2, trend=Trend(tendency=Tendency.BELOW, since=NOW - 599)), 2, id="a shorter quiet time"
        ),
        pytest.param(demand([IDLE] * 2, trend=LASTING_OVER), 2, id="quiet since now"),
        pytest.param(demand([IDLE] * 2, trend=LASTING_BELOW, least=2), 2, id="never fewer than the least number"),
        pytest.param(demand([IDLE], trend=LASTING_BELOW), 1, id="never none"),
        pytest.param(
            demand([load(64)] * 2, trend=LASTING_BELOW), 1, id="the other one would be half as full as it can be"
        ),
        pytest.param(demand([load(65), load(64)], trend=LASTING_BELOW), 2, id="it would be fuller"),
        pytest.param(
            demand([load(80, kv_cache_used=0.2)] * 3, trend=LASTING_BELOW), 2, id="two have room for the load of three"
        ),
        pytest.param(demand([load(1, waiting=1), IDLE], trend=LASTING_BELOW), 2, id="one request waits"),
        pytest.param(demand([load(0, kv_cache_used=0.2)] * 2, trend=LASTING_BELOW), 1, id="half a cache is in use"),
        pytest.param(demand([load(0, kv_cache_used=0.21)] * 2, trend=LASTING_BELOW), 2, id="more than half"),
        pytest.param(
            demand([load(1), IDLE], trend=LASTING_BELOW, places=None), 2, id="how many run at once is unknown"
        ),
        pytest.param(demand([IDLE] * 2, trend=LASTING_BELOW, places=None), 1, id="but none is less than any number"),
        pytest.param(
            demand([load(100)], replicas=2, trend=LASTING_BELOW),
            1,
            id="one that does not serve goes, and takes no load",
        ),
        pytest.param(demand([load(129)], replicas=2, trend=LASTING_BELOW), 2, id="unless it is needed soon"),
        pytest.param(demand([IDLE] * 5, trend=Trend()), 4, id="the bounds were lowered"),
        pytest.param(demand([IDLE], least=3, trend=Trend()), 3, id="the least number was raised"),
        pytest.param(demand([IDLE] * 6, least=6, trend=Trend()), 6, id="the floor is above the greatest number"),
    ],
)
def test_the_number_of_replicas(observed: Demand, expected: int) -> None:
    decision = decide_scale(SCALE, observed)
    assert decision.replicas == expected
    is_step = expected != observed.replicas
    assert bool(decision.why) == is_step, "a step has a reason, and nothing else has"
    if is_step:
        assert decision.trend == Trend(), "after a step, the trend begins again"


@pytest.mark.parametrize(
    ("most", "usd", "expected", "why"),
    [
        pytest.param(5.0, 5.0, 2, "", id="at the ceiling"),
        pytest.param(4.99, 5.0, 1, "all may cost $5.00/h (scale.max_cost_per_hour: 4.99)", id="above it"),
        pytest.param(4.99, None, 1, "is not known, and scale.max_cost_per_hour: 4.99", id="an unknown price"),
        pytest.param(None, None, 2, "", id="without a ceiling"),
    ],
)
def test_the_price_ceiling(most: float | None, usd: float | None, expected: int, why: str) -> None:
    scale = Scale(min=1, max=4, waiting=4, kv_cache=0.8, cooldown_seconds=600, max_usd_per_hour=most)
    decision = decide_scale(scale, demand([QUEUE], usd=usd))
    assert decision.replicas == expected
    assert why in decision.why
    if expected == 1:
        assert decision.trend == LASTING_OVER, "it is added once the price allows it"


def test_a_step_is_explained_and_begins_a_new_trend() -> None:
    assert decided([QUEUE]) == Decision(
        replicas=2, trend=Trend(), why="9 requests wait for each replica (scale.waiting: 4)"
    )
    assert decided([FULL]).why == "90% of the KV caches is in use (scale.kv_cache: 0.8)"
    shrunk = decided([load(3), load(1)], trend=LASTING_BELOW)
    assert shrunk == Decision(
        replicas=1, trend=Trend(), why="4 requests run, none waits, and the others have room for them"
    )
    assert decided([IDLE] * 5, trend=Trend()).why == "the bounds are 1 to 4"


def test_a_trend_is_remembered_until_it_breaks() -> None:
    assert decided([QUEUE], trend=Trend()).trend == Trend(tendency=Tendency.OVER, since=NOW)
    earlier = Trend(tendency=Tendency.OVER, since=NOW - 5)
    assert decided([QUEUE], trend=earlier).trend == earlier
    assert decided([None], trend=LASTING_BELOW).trend == Trend(tendency=Tendency.NONE, since=NOW)
    assert decided([IDLE] * 2, trend=Trend()).trend == Trend(tendency=Tendency.BELOW, since=NOW)
