"""Goal: how soon a first token is wanted of a server, by what a run of it measured at its recommended point."""

from __future__ import annotations

from tpudeploy.core.alerts.watched import TTFT_EDGES
from tpudeploy.core.bench.operating import operating_points, tail
from tpudeploy.domain.benchmark import Cell, Run
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.recommendation import Aim

# What is measured on a quiet day is no alarm on a busy one.
ROOM = 1.5


@frozen
class Goal:
    """`seconds` is what an alert waits for, `measured` what 95 of 100 first tokens took in `cell`.

    `source` is what must be known of it wherever the limit stands: "", or that the emulator measured it.
    """

    seconds: float
    measured: float
    cell: Cell
    source: str = ""


def goal(run: Run) -> Goal | None:
    """Of the load whose first tokens take longest at its balanced point; None where the run tells of none.

    Rounded up to an edge of the server's own histogram, between which it could only guess.
    """
    points = (point for of in operating_points(run).values() for point in of if point.aim is Aim.BALANCED)
    told = [(first, point.cell) for point in points if (first := _first(point.cell)) is not None]
    if not told:
        return None
    measured, cell = max(told, key=lambda each: each[0])
    wanted = ROOM * measured
    limit = next((e for e in TTFT_EDGES if e >= wanted), wanted)
    source = f"{limit:g} s is from run {run.id}, measured on the emulator: it says nothing of a TPU."
    return Goal(seconds=limit, measured=measured, cell=cell, source=source if run.subject.is_emulated else "")


def _first(of: Cell) -> float | None:
    return tail(of.figures.ttft_seconds) if of.figures is not None else None
