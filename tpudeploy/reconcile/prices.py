"""List prices of slices in USD, for all their chips; None where a price is unknown."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tpudeploy import catalog
from tpudeploy.catalog import routers
from tpudeploy.config.scalars import Duration
from tpudeploy.domain.ceiling import Ceiling
from tpudeploy.domain.deployment import Candidate, Deployment
from tpudeploy.domain.names import ROUTER
from tpudeploy.domain.state import Attempt, State

_HOUR = 3600.0


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

    Every request of `max_parallel_requests` may be granted in the same minute, in the most expensive places. All but
    one are then released.
    """
    costs = [usd_per_hour_at(deployment, candidate) for candidate in deployment.candidates]
    count = min(deployment.max_parallel_requests, len(costs))
    return count, Ceiling.for_slices(costs, count)


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
