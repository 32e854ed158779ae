"""What a slice costs: USD for all its chips at list price, None where that is unknown."""

from __future__ import annotations

from tpudeploy import catalog
from tpudeploy.config.scalars import Duration
from tpudeploy.domain.deployment import Candidate, Deployment
from tpudeploy.domain.state import Attempt

_HOUR = 3600.0


def of_attempt(attempt: Attempt) -> float | None:
    """Per hour, of the slice that was asked for, whatever the profile asks for now."""
    kind = catalog.accelerator_type(str(attempt.spec.get("tpu.type", "")))
    if kind is None:
        return None
    return _whole(catalog.usd_per_chip_hour(kind.generation, attempt.zone.region, attempt.provisioning), kind.chips)


def most_of_attempt(attempt: Attempt) -> float | None:
    """USD for the whole of its run at list price; None where that is unknown, or nothing but a person ends the run."""
    usd, hours = of_attempt(attempt), run_hours(attempt)
    return None if usd is None or hours is None else usd * hours


def run_hours(attempt: Attempt) -> float | None:
    """After so long from the grant Google deletes the machine; None where the run has no end."""
    written = attempt.spec.get("placement.max_run_duration")
    return None if written is None else Duration.parse(str(written)) / _HOUR


def of_candidate(deployment: Deployment, candidate: Candidate | None) -> float | None:
    """Per hour."""
    return None if candidate is None else _whole(candidate.usd_per_chip_hour, deployment.accelerator.chips)


def at_once(deployment: Deployment) -> tuple[int, float | None]:
    """Return how many slices one replica may be billed for at one time while it is acquired, and USD per hour for them.

    Every request of `max_parallel_requests` may be granted in the same minute, the dearest places among them; all but
    one are then given back. None where the price of a place is unknown.
    """
    costs = [of_candidate(deployment, c) for c in deployment.candidates]
    count = min(deployment.max_parallel_requests, len(costs))
    known = sorted((usd for usd in costs if usd is not None), reverse=True)
    return count, sum(known[:count]) if len(known) == len(costs) else None


def _whole(usd_per_chip_hour: float | None, chips: int) -> float | None:
    return None if usd_per_chip_hour is None else usd_per_chip_hour * chips
