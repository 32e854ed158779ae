"""List prices of slices in USD, for all their chips; None where a price is unknown."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tpudeploy import catalog
from tpudeploy.catalog import machines
from tpudeploy.config.scalars import Duration
from tpudeploy.domain.deployment import Candidate, Deployment
from tpudeploy.domain.state import Attempt, State

_HOUR = 3600.0


def usd_per_hour(attempt: Attempt) -> float | None:
    """Return the price of the slice that was requested, whatever the profile says now."""
    accelerator = catalog.accelerator_type(str(attempt.spec.get("tpu.type")))
    if accelerator is None:
        return machines.usd_per_hour(str(attempt.spec.get("vm.machine")), attempt.zone.region)
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
    """Return the price of the slices of these replicas and of one more, in the dearest place that may be requested."""
    price, next_price = usd_per_hour_of(state, indexes), dearest_usd_per_hour(deployment, deployment.candidates)
    return None if price is None or next_price is None else price + next_price


def usd_per_hour_of(state: State | None, indexes: Collection[int]) -> float | None:
    """Return the price of the slices and requests of these replicas together, or None if that of one is unknown."""
    records = () if state is None else map(state.record, indexes)
    attempts = [attempt for record in records for attempt in record.attempts if attempt.release is None]
    known_prices = [price for attempt in attempts if (price := usd_per_hour(attempt)) is not None]
    return None if len(known_prices) < len(attempts) else sum(known_prices)


def most_usd_per_hour(deployment: Deployment, replicas: int) -> float | None:
    """Return the price of this number of replicas, each in the dearest place that it may be requested in."""
    floor = min(deployment.on_demand_floor, replicas)
    floor_price = dearest_usd_per_hour(deployment, deployment.floor_candidates) if floor else 0.0
    price = dearest_usd_per_hour(deployment, deployment.candidates) if replicas > floor else 0.0
    return None if price is None or floor_price is None else floor * floor_price + (replicas - floor) * price


def dearest_usd_per_hour(deployment: Deployment, candidates: Iterable[Candidate]) -> float | None:
    """Return the highest price of these places, or None if that of one is unknown."""
    costs = [usd_per_hour_at(deployment, candidate) for candidate in candidates]
    known_costs = [usd for usd in costs if usd is not None]
    return max(known_costs) if known_costs and len(known_costs) == len(costs) else None


def most_slices_at_once(deployment: Deployment) -> tuple[int, float | None]:
    """Return how many slices of one replica may be billed at one time while it is acquired, and their price per hour.

    Every request of `max_parallel_requests` may be granted in the same minute, in the most expensive places. All but
    one are then released. The price is None where that of one place is unknown.
    """
    costs = [usd_per_hour_at(deployment, candidate) for candidate in deployment.candidates]
    count = min(deployment.max_parallel_requests, len(costs))
    known_costs = sorted((usd for usd in costs if usd is not None), reverse=True)
    return count, sum(known_costs[:count]) if len(known_costs) == len(costs) else None
