"""List prices of slices in USD, for all their chips; None where a price is unknown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from tpudeploy import catalog
from tpudeploy.catalog import routers
from tpudeploy.config.scalars import Duration
from tpudeploy.domain.ceiling import Ceiling
from tpudeploy.domain.deployment import Candidate, Deployment, Place
from tpudeploy.domain.names import ROUTER
from tpudeploy.domain.state import Attempt, State

_HOUR = 3600.0
# USD per hour: what the requests of one replica may cost together if all are granted at the same time, unless the
# profile says otherwise. A slice that is not needed is deleted within minutes: a quarter of that at most is billed.
_SEARCH = 100.0
# The slices that may be requested at the same time however expensive they are, and if no price is known.
_AT_LEAST = 4
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
    if candidate is None or candidate.usd_per_chip_hour is None:
        return None
    return candidate.usd_per_chip_hour * deployment.accelerator.chips


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
    if most is None or not ceiling.is_known:
        return count, ceiling
    return count, replace(ceiling, usd_per_hour=min(ceiling.usd_per_hour, most))


def search_limits(deployment: Deployment, most: int | None, usd_per_hour: float | None) -> tuple[int, float | None]:
    """Return how many slices may be requested at the same time, and for how many USD per hour together (None: any).

    `most` and `usd_per_hour` are what the profile says. A number alone is the only limit. Otherwise the price decides:
    as many as the cheapest places allow.
    """
    if most is not None and usd_per_hour is None:
        return most, None
    candidates = deployment.candidates
    dearest = Ceiling.for_slices(usd_per_hour_at(deployment, each) for each in candidates).usd_per_hour
    limit = max(_SEARCH, _AT_LEAST * dearest) if usd_per_hour is None else usd_per_hour
    counted = search_prices(replace(deployment, search_usd_per_hour=limit))
    total, count = 0.0, 0
    for usd in sorted(counted.values()):
        total += usd
        if total > limit + _ROUNDING:
            break
        count += 1
    # One slice may always be requested: the places that alone cost more than the profile allows are no candidates.
    return max(1, min(count, len(candidates) if most is None else most)), limit


def search_prices(deployment: Deployment) -> Mapping[Place, float]:
    """Return what a request in each place counts against the price limit of the search, in USD per hour.

    A place without a list price counts as the dearest one that has a price, or as a quarter of the limit if none has.
    """
    known = {each.place: usd_per_hour_at(deployment, each) for each in deployment.candidates}
    limit = deployment.search_usd_per_hour or 0.0
    unknown = max((usd for usd in known.values() if usd is not None), default=limit / _AT_LEAST)
    return {place: unknown if usd is None else usd for place, usd in known.items()}


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
