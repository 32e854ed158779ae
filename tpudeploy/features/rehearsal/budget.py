"""What the stages of a rehearsal can cost at most, and which of them a ceiling allows.

Each stage requests one slice, and the request says how long the slice may run. Google ends the run then, so its cost is
bounded even if this process is killed, or a deletion is late or ignored. Only requests whose end Google documents are
sent: flex-start at both APIs, and spot with `maxRunDuration` and the termination action DELETE at Compute Engine
(decision 66).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Place, Provisioning
from tpudeploy.domain.names import Zone
from tpudeploy.features.rehearsal.facts import RehearsalStage

# How long a deletion may take: of a slice that is being provisioned, one took 12 min 38 s.
DELETION = 900.0
# A request is looked at for this long before it is deleted.
WAITING = 120.0
# Seconds of a run, which are in the request. Compute Engine takes no flex-start run below 600 s.
RUNS: Mapping[RehearsalStage, float] = {
    RehearsalStage.QUEUE: 600.0,
    RehearsalStage.INSERT: 600.0,
    RehearsalStage.INSTANCE: 1800.0,
    RehearsalStage.SLICE: 1800.0,
}
# How long a slice is used after its grant. The queued resource is then deleted, which takes a part of its run; Google
# deletes the instance at the end of its run.
USE: Mapping[RehearsalStage, float] = {RehearsalStage.INSTANCE: 1740.0, RehearsalStage.SLICE: 1200.0}
# Google begins to end an instance up to 30 s after the end of its run (page "Limit the run time of a VM"), and a
# shutdown takes at most 90 s. For the Cloud TPU API, no figure is documented.
LATENESS = 120.0
# The disk and the external address of a machine are counted for a whole hour: they exist from the insert on.
DISK_GIB = 100
# Hyperdisk Balanced costs $0.08 in Iowa (SKU, 2026). No region's price was seen above its double.
_USD_PER_GIB_MONTH = 0.16
_USD_PER_ADDRESS_HOUR = 0.005  # SKU "External IP Charge on a Standard VM"; half of it for spot
_HOURS_PER_MONTH = 730
USD_BESIDE_CHIP = DISK_GIB * _USD_PER_GIB_MONTH / _HOURS_PER_MONTH + _USD_PER_ADDRESS_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One stage, at a place if it requests something. `usd` is what it can cost at most, None without a known price."""

    stage: RehearsalStage
    zone: Zone | None = None
    provisioning: Provisioning | None = None
    backend: Backend | None = None
    usd_per_hour: float = 0.0
    run_seconds: float = 0.0
    usd: float | None = 0.0
    is_allowed: bool


def steps(places: Mapping[RehearsalStage, tuple[Place, float] | None], ceiling: float) -> tuple[Step, ...]:
    """Return the stages in the order of what they cost. One that could exceed the ceiling is not allowed.

    `places` are where each stage that costs something requests its slice, with the price in USD per hour.
    """
    chosen = [Step(stage=RehearsalStage.READ, is_allowed=True)]
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


def step_at(stage: RehearsalStage, place: Place, usd_per_hour: float, *, is_allowed: bool) -> Step:
    """Return a stage at a place, with what it can cost at most: a whole run, until Google has ended it."""
    return Step(
        stage=stage,
        zone=place.zone,
        provisioning=place.provisioning,
        backend=place.backend,
        usd_per_hour=usd_per_hour,
        run_seconds=RUNS[stage],
        usd=_round_up(cost(usd_per_hour, RUNS[stage] + LATENESS)),
        is_allowed=is_allowed,
    )


def cost(usd_per_hour: float, seconds: float) -> float:
    """Return what a slice costs that was billed for this long, with its disk and its address."""
    return usd_per_hour * seconds / 3600 + USD_BESIDE_CHIP


def worst_case(chosen: tuple[Step, ...]) -> float:
    """Return what the allowed stages can cost at most, in USD."""
    return sum(step.usd or 0.0 for step in chosen if step.is_allowed)


def _round_up(usd: float) -> float:
    """Return an amount in whole cents, which is what a person reads: no less than it is."""
    return ceil(usd * 100) / 100
