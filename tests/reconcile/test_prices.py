"""What a slice costs at list price, and what may be billed at one time. No cloud, no clock."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from reconcile.cases import FLEX, ON_DEMAND, SPOT, A, B, C, attempt, candidate, deployment

from tpudeploy.domain.names import Zone
from tpudeploy.domain.state import Attempt
from tpudeploy.reconcile import prices

RUN = {"tpu.type": "v6e-8", "placement.max_run_duration": "90m"}


@pytest.mark.parametrize(
    ("one", "per_hour", "per_run"),
    [
        pytest.param(attempt(A, SPOT), 8 * 1.4033, None, id="8 chips of spot, without an end"),
        pytest.param(attempt(A, FLEX, spec=RUN), 8 * 1.35, 12 * 1.35, id="8 chips for an hour and a half"),
        pytest.param(attempt(A, ON_DEMAND, spec={"tpu.type": "v6e-1"}), 2.7, None, id="one chip on demand"),
        pytest.param(attempt(C, SPOT), 8 * 1.78, None, id="in another region"),
        pytest.param(attempt(Zone("xx-west1-a"), SPOT, spec=RUN), None, None, id="in a region without a price"),
        pytest.param(attempt(A, SPOT, spec={"tpu.type": "v9x-8"}), None, None, id="of an unknown type"),
        pytest.param(attempt(A, SPOT, spec={}), None, None, id="of no type"),
    ],
)
def test_the_price_of_a_request(one: Attempt, per_hour: float | None, per_run: float | None) -> None:
    assert prices.usd_per_hour(one) == (None if per_hour is None else pytest.approx(per_hour))
    assert prices.usd_per_run(one) == (None if per_run is None else pytest.approx(per_run))


def test_after_how_many_hours_a_run_ends() -> None:
    assert prices.run_hours(attempt(spec=RUN)) == 1.5
    assert prices.run_hours(attempt()) is None


@pytest.mark.parametrize(
    ("costs", "requests", "expected"),
    [
        pytest.param([1.0, 3.0, 2.0], 2, (2, 40.0), id="the two most expensive of three places"),
        pytest.param([1.0, 3.0], 9, (2, 32.0), id="not more than there are places"),
        pytest.param([1.0, None], 1, (1, None), id="unknown, where the price of one place is"),
        pytest.param([], 2, (0, 0.0), id="nowhere"),
    ],
)
def test_what_may_be_billed_at_one_time(
    costs: Sequence[float | None], requests: int, expected: tuple[int, float | None]
) -> None:
    places = [candidate(zone, SPOT, usd) for zone, usd in zip((A, B, C), costs, strict=False)]
    assert prices.most_slices_at_once(deployment(places, requests=requests)) == expected


def test_the_price_of_a_slice_in_a_place() -> None:
    target = deployment()
    assert prices.usd_per_hour_at(target, candidate(A, SPOT, 2.0)) == 16.0
    assert prices.usd_per_hour_at(target, candidate(A, SPOT)) is None
    assert prices.usd_per_hour_at(target, None) is None
