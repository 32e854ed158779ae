"""List prices of slices in USD, for all their chips; None where a price is unknown."""

from __future__ import annotations

from tpudeploy import catalog
from tpudeploy.catalog import machines
from tpudeploy.config.scalars import Duration
from tpudeploy.domain.deployment import Candidate, Deployment
from tpudeploy.domain.state import Attempt

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


def most_slices_at_once(deployment: Deployment) -> tuple[int, float | None]:
    """Return how many slices of one replica may be billed at one time while it is acquired, and their price per hour.

    Every request of `max_parallel_requests` may be granted in the same minute, in the most expensive places. All but
    one are then released. The price is None where that of one place is unknown.
    """
    costs = [usd_per_hour_at(deployment, candidate) for candidate in deployment.candidates]
    count = min(deployment.max_parallel_requests, len(costs))
    known_costs = sorted((usd for usd in costs if usd is not None), reverse=True)
    return count, sum(known_costs[:count]) if len(known_costs) == len(costs) else None
