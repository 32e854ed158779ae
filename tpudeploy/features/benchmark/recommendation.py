"""Recommendations: where a deployment is best run, and what would serve a workload. Each says what it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from tpudeploy.domain.deployment import Json
from tpudeploy.domain.frozen import frozen
from tpudeploy.features.benchmark.run import Cell

HOURS_PER_MONTH = 730.0


class Aim(StrEnum):
    LATENCY = "latency"
    BALANCED = "balanced"
    THROUGHPUT = "throughput"


@frozen
class OperatingPoint:
    """A measured cell to run at; `rule` is the sentence by which it was found."""

    aim: Aim
    cell: Cell
    rule: str


@frozen
class Workload:
    """`users` requests at once, each with these numbers of prompt and output tokens. None: any.

    `ttft_seconds` is what 95 of 100 requests must begin within.
    """

    users: int
    context_tokens: int
    output_tokens: int
    ttft_seconds: float | None = None
    usd_per_month: float | None = None


@frozen
class Choice:
    """A setup that would serve it. `settings` are the keys of a profile, by dotted path.

    `usd_per_month` is that of the dearest place that the profile may request, or of a run where that was paid; if
    `unknown_prices` of the places have none, it may cost more. `run` and `cell` are the measurement it rests on: ""
    and None where it rests on the size model, which knows memory and nothing of speed. `why` says what was weighed.
    `is_emulated`: the run was measured on the emulator.
    """

    settings: Mapping[str, Json]
    accelerator_type: str
    usd_per_month: float | None
    why: str
    unknown_prices: int = 0
    run: str = ""
    cell: Cell | None = None
    is_emulated: bool = False
    ADDED_LATER = frozenset({"unknown_prices"})

    @property
    def is_measured(self) -> bool:
        return self.cell is not None


@frozen
class Recommendation:
    """`choices` best first. `refused`: a reason for each option that is not among the choices.

    Without `is_sized`, the size model cannot judge slices for the deployment: an empty `choices` refuses none of them.
    """

    ADDED_LATER = frozenset({"is_sized"})

    workload: Workload
    choices: tuple[Choice, ...]
    refused: tuple[str, ...] = ()
    is_sized: bool = True
