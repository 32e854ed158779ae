"""What a slice costs at list price, and what may be billed at one time. No cloud, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from reconcile.cases import FLEX, ON_DEMAND, SPOT, A, B, C, attempt, candidate, deployment, record

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.names import ROUTER, Zone
from tpudeploy.domain.state import Attempt, Record, State
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
        pytest.param([1.0, 3.0, 2.0], 2, (2, (40.0, 3, 0)), id="the two most expensive of three places"),
        pytest.param([1.0, 3.0], 9, (2, (32.0, 2, 0)), id="not more than there are places"),
        pytest.param([1.0, None, 3.0], 1, (1, (24.0, 3, 1)), id="at least the most expensive, where one is unknown"),
        pytest.param([], 2, (0, (0.0, 0, 0)), id="nowhere"),
    ],
)
def test_what_may_be_billed_at_one_time(
    costs: Sequence[float | None], requests: int, expected: tuple[int, tuple[float, int, int]]
) -> None:
    places = [candidate(zone, SPOT, usd) for zone, usd in zip((A, B, C), costs, strict=False)]
    count, most = prices.ceiling_of_acquisition(deployment(places, requests=requests))
    assert (count, (most.usd_per_hour, most.prices, most.unknown_prices)) == expected


VM = replace(deployment([candidate(A, ON_DEMAND, 0.5)], chips=1), name="router")


@pytest.mark.parametrize(
    ("machine", "spec", "most", "with_another"),
    [
        pytest.param(None, None, 48.0, 16 + 2.7, id="no router on a VM"),
        pytest.param(VM, None, 48.5, 16 + 2.7 + 0.5, id="a VM that is to be made"),
        pytest.param(VM, {"vm.machine": "e2-small"}, 48.5, 16 + 2.7 + 0.016751, id="a VM that exists"),
        pytest.param(replace(VM, candidates=(candidate(),)), None, None, None, id="a VM without a known price"),
    ],
)
def test_the_price_of_all_replicas_has_that_of_the_router(
    machine: Deployment | None, spec: Mapping[str, Any] | None, most: float | None, with_another: float | None
) -> None:
    target = deployment([candidate(A, SPOT, 2.0)], router_machine=machine)
    router = Record(index=ROUTER, attempts=() if spec is None else (attempt(model=ON_DEMAND, spec=spec),))
    one = attempt(model=ON_DEMAND, spec={"tpu.type": "v6e-1"})
    state = State(deployment="gemma", lineage="l", records=(record(one),), router=router)
    ceiling = prices.ceiling_of_replicas(target, 3)
    assert (ceiling.usd_per_hour if ceiling.is_known else None) == most
    expected = None if with_another is None else pytest.approx(with_another)
    assert prices.usd_per_hour_with_another(target, state, (0,)) == expected


def test_replicas_of_the_floor_have_the_price_of_its_places() -> None:
    target = deployment([candidate(A, SPOT, 2.0)], on_demand_floor=2, floor_candidates=(candidate(A, ON_DEMAND, 3.0),))
    assert prices.ceiling_of_replicas(target, 3).usd_per_hour == 2 * 24.0 + 16.0
    assert prices.ceiling_of_replicas(target, 1).usd_per_hour == 24.0, (
        "a floor above the number of replicas costs no more than that"
    )


def test_a_deployment_without_a_state_costs_nothing() -> None:
    assert prices.usd_per_hour_of(None, (0, 1)) == 0.0


def test_the_price_of_a_slice_in_a_place() -> None:
    target = deployment()
    assert prices.usd_per_hour_at(target, candidate(A, SPOT, 2.0)) == 16.0
    assert prices.usd_per_hour_at(target, candidate(A, SPOT)) is None
    assert prices.usd_per_hour_at(target, None) is None
