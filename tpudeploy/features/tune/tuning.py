"""A tuning as it is kept: its request, and every measurement. Its figures are in its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.benchmark.run import Sweep
from tpudeploy.features.tune.search import Axis, SearchBudget, Settings, Trial, TuneStep, TuneVerdict
from tpudeploy.features.tune.space import DroppedAxis

_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneLimits:
    """What the winner must keep in every cell, in seconds. None: no limit."""

    ttft_p99_seconds: float | None = None
    tpot_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The measurement under way, written before it begins: its run has this place."""

    place: int
    step: TuneStep
    server: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The request of a tuning, and its trials.

    `id` follows from the server, the load, the axes, the objective and the limits: the same request continues.
    `was_there`: the deployment served before, and serves as its profile says at the end; otherwise it is deleted.
    `is_released`: the slice that it requested for itself is deleted, so what is there later is not its own.
    `seconds` is all the time so far, starts included. `quality_losses` are values that lowered quality,
    and `sheets` the ids of answers by the settings as text.
    """

    id: str
    began_at: float
    version: str
    deployment: str
    file: str
    axes: tuple[Axis, ...]
    dropped: tuple[DroppedAxis, ...]
    sweep: Sweep
    by: Measure
    limits: TuneLimits
    budget: SearchBudget
    where: str
    was_there: bool
    usd_per_hour: float | None = None
    questions: str = ""
    count: int | None = None
    seconds: float = 0.0
    trials: tuple[Trial, ...] = ()
    pending: Pending | None = None
    quality_losses: Settings = ()
    sheets: Mapping[str, str] = field(default_factory=dict)
    is_emulated: bool = False
    verdict: TuneVerdict | None = None
    is_released: bool = False


def cost_usd(tuning: Tuning) -> float:
    """Return what the slice has cost during the tuning, at list price."""
    return tuning.seconds * (tuning.usd_per_hour or 0.0) / _HOUR
