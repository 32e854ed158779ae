"""List prices of slices in USD, for all their chips; None where a price is unknown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import floor, log10
from statistics import median_high
from typing import NamedTuple

from tpudeploy import catalog
from tpudeploy.catalog import routers
from tpudeploy.config.scalars import Duration
from tpudeploy.domain.ceiling import Ceiling
from tpudeploy.domain.deployment import Candidate, Deployment, Place
from tpudeploy.domain.names import ROUTER
from tpudeploy.domain.state import Attempt, State

_HOUR = 3600.0
# The requests of one replica that a search begins with, and the slices that all its requests may cost together if they
# are granted at the same time, unless the profile says otherwise.
_FIRST, _SLICES = 3, 4
# A search price is written with one of these first digits, rounded down: three slices fit into that of four.
_PLEASANT = (1.0, 1.2, 1.5, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0)
_ROUNDING = 1e-6


def usd_per_hour(attempt: Attempt) -> float | None:
    """Return the price of the slice that was requested, whatever the profile says now."""
    accelerator = catalog.accelerator_type(str(attempt.spec.get("tpu.type")))
    if accelerator is None:
        return routers.usd_per_hour(str(attempt.spec.get("vm.machine")), attempt.zone.region)
    per_chip = catalog.usd_per_chip_hour(accelerator.generation, attempt.zone.region, attempt.provisioning)
    return None if per_chip is None else per_chip * accelerator.chips


def usd_per_run(attempt: Attempt) -> float | None:
    """Return the price of the whole run, or None for a run without an end."""
    usd, hours = usd_per_hour(attempt), run_hours(attempt)
    return None if usd is None or hours is None else usd * hours


def run_hours(attempt: Attempt) -> float | None:
    """Return the hours from the grant after which Google deletes the machine, or None for a run without an end."""
    duration = attempt.spec.get("placement.max_run_duration")
    return None if duration is None else Duration.parse(str(duration)) / _HOUR


def usd_per_hour_at(deployment: Deployment, candidate: Candidate | None) -> float | None:
    """Return the price of the deployment's slice in this place."""
    return None if candidate is None else _slice_price(candidate, deployment.accelerator.chips)


def _slice_price(candidate: Candidate, chips: int) -> float | None:
    return None if candidate.usd_per_chip_hour is None else candidate.usd_per_chip_hour * chips


def usd_per_hour_with_another(deployment: Deployment, state: State, indexes: Collection[int]) -> float | None:
    """Return the price of these replicas, of one more, in the dearest place that may be requested, and of the VM."""
    next_price = dearest_usd_per_hour(deployment, deployment.candidates)
    # A VM that exists has the price of its zone.
    router_price = 0.0 if state.router.attempts else router_usd_per_hour(deployment)
    return _sum([usd_per_hour_of(state, [*indexes, ROUTER]), next_price, router_price])


def usd_per_hour_of(state: State | None, indexes: Collection[int]) -> float | None:
    """Return the price of the slices and requests of these replicas together, or None if that of one is unknown."""
    records = () if state is None else map(state.record, indexes)
    attempts = [attempt for record in records for attempt in record.attempts if attempt.release is None]
    return _sum([usd_per_hour(attempt) for attempt in attempts])


def ceiling_of_replicas(deployment: Deployment, replicas: int) -> Ceiling:
    """Return the price of this number of replicas and of the VM, each in the dearest place that may be requested."""
    floor = min(deployment.on_demand_floor, replicas)
    machine = deployment.router_machine
    ceiling = Ceiling() if machine is None else _dearest(machine, machine.candidates)
    if floor:
        ceiling += _dearest(deployment, deployment.floor_candidates) * floor
    if replicas > floor:
        ceiling += _dearest(deployment, deployment.candidates) * (replicas - floor)
    return ceiling


def ceiling_of_attempts(attempts: Iterable[Attempt]) -> Ceiling:
    """Return the price of these slices and requests together."""
    costs = [usd_per_hour(attempt) for attempt in attempts]
    return Ceiling.for_slices(costs, len(costs))


def ceiling_of_acquisition(deployment: Deployment) -> tuple[int, Ceiling]:
    """Return how many slices of one replica may be billed at one time while it is acquired, and their price per hour.

    Every request that `has_room` allows may be granted in the same minute, in the most expensive places. All but one
    are then released.
    """
    costs = [usd_per_hour_at(deployment, candidate) for candidate in deployment.candidates]
    count = min(deployment.max_parallel_requests, len(costs))
    ceiling, most = Ceiling.for_slices(costs, count), deployment.search_usd_per_hour
    if most is None:
        return count, ceiling
    return count, replace(ceiling, usd_per_hour=min(ceiling.usd_per_hour, most))


class SearchLimits(NamedTuple):
    """The requests that a search begins with, the most at one time, and what all may cost together (None: any)."""

    first_requests: int
    max_parallel_requests: int
    usd_per_hour: float | None


def search_limits(
    candidates: Sequence[Candidate],
    floor_candidates: Sequence[Candidate],
    chips: int,
    most: int | None,
    usd_per_hour: float | None,
) -> SearchLimits:
    """Return the limits of a search. `most` and `usd_per_hour` are what the profile says.

    A number alone is the only limit, and a search begins with as many. Otherwise the price decides: as many as the
    cheapest places allow.
    """
    costs = {each.place: _slice_price(each, chips) for each in candidates}
    limit = usd_per_hour
    if most is None and usd_per_hour is None:
        limit = _search_price(costs.values(), [_slice_price(each, chips) for each in floor_candidates])
    most_by_number = len(costs) if most is None else most
    first = _FIRST if most is None else most
    if limit is None:
        count = _SLICES if most is None else most
    else:
        total, count = 0.0, 0
        for usd in sorted(_counted(costs, limit).values()):
            total += usd
            count += total <= limit + _ROUNDING
        # One slice may always be requested: places that alone cost more than the profile allows are no candidates.
        count = max(1, min(count, most_by_number))
    return SearchLimits(min(first, count), count, limit)


def _search_price(costs: Collection[float | None], costs_of_floor: Collection[float | None]) -> float | None:
    """Return what all requests of a search may cost together by default, in USD per hour; None without a known price.

    It is the price of four slices, and excludes no place.
    """
    known_costs = [usd for usd in costs if usd is not None]
    if not known_costs:
        return None
    dearest = max(usd for usd in (*known_costs, *costs_of_floor) if usd is not None)
    price = max(_SLICES * median_high(known_costs), dearest * _SLICES / _FIRST)
    scale = 10.0 ** floor(log10(price))
    return round(max(digits for digits in _PLEASANT if digits * scale <= price + _ROUNDING) * scale, 6)


def search_prices(deployment: Deployment) -> Mapping[Place, float]:
    """Return what a request in each place counts against the price limit of the search, in USD per hour.

    A place without a list price counts as the dearest one that has a price, or as a quarter of the limit if none has.
    """
    costs = {each.place: usd_per_hour_at(deployment, each) for each in deployment.candidates}
    return _counted(costs, deployment.search_usd_per_hour or 0.0)


def _counted(costs: Mapping[Place, float | None], limit: float) -> Mapping[Place, float]:
    unknown = max((usd for usd in costs.values() if usd is not None), default=limit / _SLICES)
    return {place: unknown if usd is None else usd for place, usd in costs.items()}


def has_room(deployment: Deployment, requests: Collection[Place], place: Place) -> bool:
    """Return whether one more request is allowed beside `requests`: by their number, and by what all would cost."""
    if len(requests) >= deployment.max_parallel_requests:
        return False
    limit = deployment.search_usd_per_hour
    if limit is None or not requests:
        return True
    prices = search_prices(deployment)
    dearest = max(prices.values(), default=0.0)
    # What the profile no longer allows counts as much as anything that it does.
    return sum(prices.get(each, dearest) for each in (*requests, place)) <= limit + _ROUNDING


def router_usd_per_hour(deployment: Deployment) -> float | None:
    """Return the price of the router's VM in the dearest place that it may be requested in; 0 without one."""
    machine = deployment.router_machine
    return 0.0 if machine is None else dearest_usd_per_hour(machine, machine.candidates)


def _sum(prices: Collection[float | None]) -> float | None:
    """Return the sum, or None if a price is unknown."""
    known_prices = [price for price in prices if price is not None]
    return sum(known_prices) if len(known_prices) == len(prices) else None


def dearest_usd_per_hour(deployment: Deployment, candidates: Iterable[Candidate]) -> float | None:
    """Return the highest price of these places, or None if that of one is unknown."""
    ceiling = _dearest(deployment, candidates)
    return ceiling.usd_per_hour if ceiling.prices and ceiling.is_known else None


def _dearest(deployment: Deployment, candidates: Iterable[Candidate]) -> Ceiling:
    return Ceiling.for_slices(usd_per_hour_at(deployment, candidate) for candidate in candidates)
