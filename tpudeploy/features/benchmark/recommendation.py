"""Recommendations: where a deployment is best run, and what would serve a workload. Each says what it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.domain.deployment import Json
from tpudeploy.features.benchmark.run import Cell

HOURS_PER_MONTH = 730.0


class Aim(StrEnum):
    LATENCY = "latency"
    BALANCED = "balanced"
    THROUGHPUT = "throughput"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """A measured cell to run at; `rule` is the sentence by which it was found."""

    aim: Aim
    cell: Cell
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """`users` requests at once, each with these numbers of prompt and output tokens. None: any.

    `ttft_seconds` is what 95 of 100 requests must begin within.
    """

    users: int
    context_tokens: int
    output_tokens: int
    ttft_seconds: float | None = None
    usd_per_month: float | None = None


class Basis(StrEnum):
    """What a choice rests on."""

    MEASURED = "measured"  # a run of this project
    BY_OTHERS = "measured by others"  # a table that was imported
    MODELED = "modeled"  # the size model, which knows memory and nothing of speed


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A setup that would serve it. `settings` are the keys of a profile, by dotted path.

    `usd_per_month` is that of the dearest place that the profile may request, or of a run where that was paid; if
    `unknown_prices` of the places have none, it may cost more. `usd_per_million_output_tokens` is at the measured rate
    and that price. `run` and `cell` are the measurement it rests on: "" and None where it's modeled. `source` says
    where the figures are from, with a date. `unknown` names what isn't measured, and `is_checked` is False if one of
    the workload's limits is among it. `why` says what was weighed. `is_emulated`: the run was measured on the emulator.
    """

    settings: Mapping[str, Json]
    accelerator_type: str
    usd_per_month: float | None
    why: str
    unknown_prices: int = 0
    run: str = ""
    cell: Cell | None = None
    is_emulated: bool = False
    basis: Basis = Basis.MODELED
    source: str = ""
    usd_per_million_output_tokens: float | None = None
    unknown: tuple[str, ...] = ()
    is_checked: bool = True
    ADDED_LATER = frozenset(
        {"unknown_prices", "basis", "source", "usd_per_million_output_tokens", "unknown", "is_checked"}
    )

    @property
    def is_measured(self) -> bool:
        return self.cell is not None

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """The order of choices: within all limits first, then by price, an unknown one last."""
        return not self.is_checked, self.usd_per_month is None, self.usd_per_month or 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """`choices` best first. `refused`: a reason for each option that is not among the choices.

    Without `is_sized`, the size model cannot judge slices for the deployment: an empty `choices` refuses none of them.
    """

    ADDED_LATER = frozenset({"is_sized"})

    workload: Workload
    choices: tuple[Choice, ...]
    refused: tuple[str, ...] = ()
    is_sized: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecommendation:
    """The best choice for one model: that of a profile in `file`, or one named by its id, where `file` is "".

    `best` is None where nothing serves the workload: `refused` has the reasons. `profile` is the best's, as YAML.
    """

    model: str
    name: str
    file: str
    best: Choice | None = None
    refused: tuple[str, ...] = ()
    is_sized: bool = True
    profile: str | None = None
