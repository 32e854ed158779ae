"""Goal: the target time to the first token, from the measurement of a run at its recommended point."""

from __future__ import annotations

from tpudeploy.alerts.watched import TTFT_EDGES
from tpudeploy.benchmark.operating import operating_points, tail
from tpudeploy.domain.benchmark import Cell, Run
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.recommendation import Aim

# The margin above the measurement, because a value of a quiet day must not raise an alarm on a busy one.
ROOM = 1.5


@frozen
class Goal:
    """A target. `seconds` is the threshold of the alert; `measured` is the time of 95 of 100 first tokens in `cell`.

    `source` is a caveat to show with the threshold: that the emulator measured it, or "".
    """

    seconds: float
    measured: float
    cell: Cell
    source: str = ""


def goal(run: Run) -> Goal | None:
    """Return the target by the load with the slowest first tokens at its balanced point, or None without measurements.

    It is rounded up to an edge of the server's own histogram, which cannot resolve values between two edges.
    """
    points = (
        point for load_points in operating_points(run).values() for point in load_points if point.aim is Aim.BALANCED
    )
    tails = [(first, point.cell) for point in points if (first := _ttft_tail(point.cell)) is not None]
    if not tails:
        return None
    slowest, cell = max(tails, key=lambda tail_and_cell: tail_and_cell[0])
    with_margin = ROOM * slowest
    limit = next((e for e in TTFT_EDGES if e >= with_margin), with_margin)
    source = f"{limit:g} s is from run {run.id}, measured on the emulator, and says nothing about a TPU."
    return Goal(seconds=limit, measured=slowest, cell=cell, source=source if run.subject.is_emulated else "")


def _ttft_tail(cell: Cell) -> float | None:
    return tail(cell.figures.ttft_seconds) if cell.figures is not None else None
