"""Comparison: runs compared cell by cell. Each of its figures comes from one of the runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import Cell, Figures, Run, Subject

_HOUR = 3600.0


class Measure(StrEnum):
    """A figure to compare. Latencies are medians, or means where the median is unknown, unless the name says more."""

    REQUESTS = "requests"  # per second
    OUTPUT = "output"  # tokens per second
    INPUT = "input"  # tokens per second
    TTFT = "ttft"  # seconds
    TTFT_P99 = "ttft-p99"  # seconds; 99 of 100 requests begin within
    TPOT = "tpot"  # seconds
    TOKENS_PER_USD = "tokens-per-usd"  # tokens of answers, at the price of the whole slice
    START = "start"  # seconds; of a run's server, and so of no cell: an A/B compares it over its repeats
    START_COLD = "start-cold"  # of those that had to compile
    START_WARM = "start-warm"  # of those that had their programs from the cache

    @property
    def is_better_low(self) -> bool:
        return self in {Measure.TTFT, Measure.TTFT_P99, Measure.TPOT} or self.is_of_start

    @property
    def is_of_start(self) -> bool:
        """Whether it is a measure of a server's start, which has one figure for each repeat, and none for each cell."""
        return self in {Measure.START, Measure.START_COLD, Measure.START_WARM}

    def value_in(self, cell: Cell, subject: Subject) -> float | None:
        """Return the cell's value of this measure, or None where it is unknown."""
        figures = cell.figures
        if figures is None or self.is_of_start:
            return None
        match self:
            case Measure.REQUESTS:
                return figures.requests_per_second
            case Measure.OUTPUT:
                return figures.output_tokens_per_second
            case Measure.INPUT:
                return figures.input_tokens_per_second
            case Measure.TTFT:
                return None if figures.ttft_seconds is None else figures.ttft_seconds.middle
            case Measure.TTFT_P99:
                return None if figures.ttft_seconds is None else figures.ttft_seconds.p99
            case Measure.TPOT:
                return None if figures.tpot_seconds is None else figures.tpot_seconds.middle
            case _:  # tokens per USD
                return _per_usd(figures, subject.usd_per_hour)


def _per_usd(figures: Figures, usd_per_hour: float | None) -> float | None:
    if figures.output_tokens_per_second is None or not usd_per_hour:
        return None
    return figures.output_tokens_per_second * _HOUR / usd_per_hour


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """One cell of each run, None where a run has none."""

    point: Point
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """The gain of more chips: the `ratio` of the best throughputs, for `chips` times the chips.

    `per_doubling` is the factor for each doubling of the chips. `is_doubted` if one of the two throughputs is doubted.
    """

    fewer: str
    more: str
    chips: float
    ratio: float
    per_doubling: float
    is_doubted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The compared runs. `bests` has each run's cell with the most requests per second, trusted cells first.

    `notes` say what differs between the runs.
    """

    runs: tuple[Run, ...]
    rows: tuple[ComparisonRow, ...]
    bests: tuple[Cell | None, ...]
    scalings: tuple[Scaling, ...] = ()
    notes: tuple[str, ...] = ()
