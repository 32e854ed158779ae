"""What the stages of a rehearsal can cost at most, and which of them a ceiling allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Place, Provisioning
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import Zone
from tpudeploy.rehearsal.facts import Stage

# How long a deletion may take: of a slice that is being provisioned, one took 12 min 38 s.
DELETION = 900.0
# A request is looked at for this long before it is deleted. If it is granted meanwhile, that is billed.
WAITING = 120.0
# How long a slice is used after its grant.
USE = 1200.0

_SECONDS: Mapping[Stage, float] = {
    Stage.READ: 0.0,
    Stage.QUEUE: WAITING + DELETION,
    Stage.INSERT: WAITING + DELETION,
    Stage.SLICE: USE + DELETION,
}


@frozen
class Step:
    """One stage, at a place if it requests something. `usd` is what it can cost at most, None without a known price."""

    stage: Stage
    zone: Zone | None = None
    provisioning: Provisioning | None = None
    backend: Backend | None = None
    usd_per_hour: float = 0.0
    usd: float | None = 0.0
    is_allowed: bool


def steps(places: Mapping[Stage, tuple[Place, float] | None], ceiling: float) -> tuple[Step, ...]:
    """Return the stages in the order of what they cost. One that could exceed the ceiling is not allowed.

    `places` are where each stage that costs something requests its slice, with the price in USD per hour.
    """
    chosen = [Step(stage=Stage.READ, is_allowed=True)]
    rest = ceiling
    for stage, where in places.items():
        if where is None:
            chosen.append(Step(stage=stage, usd=None, is_allowed=False))
            continue
        step = step_at(stage, *where, is_allowed=True)
        if step.usd is None or step.usd > rest:
            step = replace(step, is_allowed=False)
        else:
            rest -= step.usd
        chosen.append(step)
    return tuple(chosen)


def step_at(stage: Stage, place: Place, usd_per_hour: float, *, is_allowed: bool) -> Step:
    """Return a stage at a place, with what it can cost at most: from the grant until the deletion has ended."""
    return Step(
        stage=stage,
        zone=place.zone,
        provisioning=place.provisioning,
        backend=place.backend,
        usd_per_hour=usd_per_hour,
        usd=usd_per_hour * _SECONDS[stage] / 3600,
        is_allowed=is_allowed,
    )


def worst_case(chosen: tuple[Step, ...]) -> float:
    """Return what the allowed stages can cost at most, in USD."""
    return sum(step.usd or 0.0 for step in chosen if step.is_allowed)
