"""What a slice costs at list price, and what may be billed at one time. No cloud, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from reconcile.cases import FLEX, ON_DEMAND, SPOT, A, B, C, D, attempt, candidate, deployment, record

from tpudeploy.domain.ceiling import Ceiling
from tpudeploy.domain.deployment import Candidate, Deployment, Place
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


@pytest.mark.parametrize(
    ("costs", "most", "usd", "expected"),
    [
        pytest.param([1.0] * 20, None, None, (3, 3, 30.0), id="the price of four slices, in round figures"),
        pytest.param([1.0, 1.0], None, None, (2, 2, 30.0), id="not more than there are places"),
        pytest.param([5.0] * 6, None, None, (3, 3, 150.0), id="three slices fit, however expensive they are"),
        pytest.param(
            [1.0, 2.0] * 9, None, None, (3, 7, 60.0), id="after refusals, as many as the cheapest places allow"
        ),
        pytest.param([1.0] * 9 + [30.0], None, None, (3, 9, 300.0), id="no place is left out"),
        pytest.param([None] * 9, None, None, (3, 4, None), id="four without any price"),
        pytest.param([None, 2.0] * 9, None, None, (3, 3, 60.0), id="an unknown price counts as the highest"),
        pytest.param([1.0] * 9, 3, None, (3, 3, None), id="a number alone is the only limit"),
        pytest.param([1.0] * 9, 8, None, (8, 8, None), id="and a search begins with as many"),
        pytest.param([1.0] * 9, None, 24.0, (3, 3, 24.0), id="a price alone"),
        pytest.param([1.0] * 9, None, 48.0, (3, 6, 48.0), id="a larger one, after refusals"),
        pytest.param([1.0] * 9, 2, 24.0, (2, 2, 24.0), id="both: the number is reached first"),
        pytest.param([1.0] * 9, 8, 24.0, (3, 3, 24.0), id="both: the price is reached first"),
        pytest.param([0.7] * 9, None, 16.8, (3, 3, 16.8), id="a price that is reached exactly"),
        pytest.param([], None, None, (3, 4, None), id="nowhere"),
    ],
)
def test_how_many_slices_may_be_requested_at_the_same_time(
    costs: Sequence[float | None], most: int | None, usd: float | None, expected: tuple[int, int, float | None]
) -> None:
    assert prices.search_limits(_places(costs), (), 8, most, usd) == expected


@pytest.mark.parametrize(
    ("requests", "usd", "is_allowed"),
    [
        pytest.param([], 8.0, True, id="the first request is always allowed"),
        pytest.param([0], 32.0, True, id="both together cost as much as is allowed"),
        pytest.param([0], 31.9, False, id="both together cost more"),
        pytest.param([0], None, True, id="without a price limit"),
        pytest.param([0, 0, 0], None, False, id="the number is reached"),
        pytest.param([2], 47.9, False, id="an unknown price counts as the highest"),
        pytest.param([2], 48.0, True, id="and not as more"),
        pytest.param([9], 47.9, False, id="what the profile no longer allows counts as the highest"),
    ],
)
def test_whether_one_more_request_is_allowed(requests: Sequence[int], usd: float | None, is_allowed: bool) -> None:
    places = _places([1.0, 3.0, None])
    target = replace(deployment(places, requests=3), search_usd_per_hour=usd)
    others = [places[number].place if number < len(places) else Place(D, FLEX) for number in requests]
    assert prices.has_room(target, others, places[1].place) is is_allowed


def test_what_may_be_billed_at_one_time_is_not_above_the_price_limit() -> None:
    target = replace(deployment(_places([1.0, 3.0, 2.0]), requests=2), search_usd_per_hour=30.0)
    assert prices.ceiling_of_acquisition(target) == (2, Ceiling(usd_per_hour=30.0, prices=3))


def _places(costs: Sequence[float | None]) -> list[Candidate]:
    return [candidate(Zone(f"us-x{number}-a"), SPOT, usd) for number, usd in enumerate(costs)]


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
