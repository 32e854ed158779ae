"""What a slice costs: USD per hour for all its chips at list price, None where that is unknown."""

from __future__ import annotations

from tpudeploy import catalog
from tpudeploy.domain.deployment import Candidate, Deployment
from tpudeploy.domain.state import Attempt


def of_attempt(attempt: Attempt) -> float | None:
    """Of the slice that was asked for, whatever the profile asks for now."""
    kind = catalog.accelerator_type(str(attempt.spec.get("tpu.type", "")))
    if kind is None:
        return None
    return _whole(catalog.usd_per_chip_hour(kind.generation, attempt.zone.region, attempt.provisioning), kind.chips)


def of_candidate(deployment: Deployment, candidate: Candidate | None) -> float | None:
    return None if candidate is None else _whole(candidate.usd_per_chip_hour, deployment.accelerator.chips)


def _whole(usd_per_chip_hour: float | None, chips: int) -> float | None:
    return None if usd_per_chip_hour is None else usd_per_chip_hour * chips
