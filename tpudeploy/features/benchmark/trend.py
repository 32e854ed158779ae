"""The trend of a deployment's benchmarks: whether a run is outside of what the runs before it would lead to expect.

A run is the unit, as in an A/B: its level is the mean logarithm of a figure over the cells that all runs have. The
interval is the prediction interval of one more run by Student's t (Hahn and Meeker, Statistical Intervals, ch. 4), and
wider for each figure that is judged at once (Bonferroni). A change of the server is not an error here: it is what a
nightly run is to show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import expm1, log, sqrt

from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import Run
from tpudeploy.features.benchmark.student import quantile

FEWEST = 3  # earlier runs, below which their scatter says nothing
MOST = 14  # the latest earlier runs: an older level is another software's
MARGIN = 0.02  # a smaller change is not worth a look
MEASURES = (Measure.OUTPUT, Measure.TTFT, Measure.TPOT)
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """One figure of a run to the level of the earlier ones, less 1, with its prediction interval.

    `is_regression`: all of the interval is worse, and the change is larger than the margin.
    """

    measure: Measure
    change: float
    low: float
    high: float
    is_regression: bool


def earlier_runs(run: Run, runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return the latest runs before this one of the same deployment, hardware and load, oldest first."""
    alike = [other for other in runs if other.began_at < run.began_at and other.id != run.id and _is_alike(run, other)]
    return tuple(sorted(alike, key=lambda other: (other.began_at, other.id)))[-MOST:]


def trend(run: Run, earlier: Sequence[Run]) -> tuple[TrendRow, ...]:
    """Return the change of each figure that all runs have; nothing for fewer than `FEWEST` earlier runs."""
    return tuple(_rows(run, earlier)) if len(earlier) >= FEWEST else ()


def _rows(run: Run, earlier: Sequence[Run]) -> Iterator[TrendRow]:
    points = set.intersection(*({c.point for c in each.cells if c.is_trusted} for each in (run, *earlier)))
    count = len(earlier)
    reach = quantile(1 - (1 - _CONFIDENCE) / 2 / len(MEASURES), count - 1) * sqrt(1 + 1 / count)
    for measure in MEASURES:
        level = _level(run, points, measure)
        levels = [each for each in (_level(other, points, measure) for other in earlier) if each is not None]
        if level is None or len(levels) < count:
            continue
        mean = sum(levels) / count
        scatter = sqrt(sum((each - mean) ** 2 for each in levels) / (count - 1))
        low, high = expm1(level - mean - reach * scatter), expm1(level - mean + reach * scatter)
        is_worse = low > 0 if measure.is_better_low else high < 0
        change = expm1(level - mean)
        yield TrendRow(
            measure=measure, change=change, low=low, high=high, is_regression=is_worse and abs(change) > MARGIN
        )


def _level(run: Run, points: set[Point], measure: Measure) -> float | None:
    """Return the mean logarithm of a figure over these cells, or None where one has none."""
    values = [measure.value_in(cell, run.subject) for cell in run.cells if cell.point in points]
    known = [value for value in values if value]
    return sum(map(log, known)) / len(known) if known and len(known) == len(points) else None


def _is_alike(run: Run, other: Run) -> bool:
    """Whether both measured one deployment's slice in the same way. Runs of an A/B measure what it tries out."""
    one, two = run.subject, other.subject
    same_server = (one.deployment, one.hardware, one.replica, one.is_emulated)
    return (
        bool(one.deployment)
        and other.turn is None
        and (two.deployment, two.hardware, two.replica, two.is_emulated) == same_server
        and run.driver is other.driver
        and set(run.sweep.points) == set(other.sweep.points)
    )
