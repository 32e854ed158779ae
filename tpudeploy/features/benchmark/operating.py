"""Operating points of a measured deployment: three cells of each load, with the rule that chose each of them.

Latency: as many streams as leave the first token nearly as fast as it gets. Balanced: Kleinrock's power, throughput
over response time, is greatest there: beyond it, waiting grows faster than work. Throughput: as few streams as bring
nearly all there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tpudeploy.features.benchmark.offer import Load
from tpudeploy.features.benchmark.recommendation import Aim, OperatingPoint
from tpudeploy.features.benchmark.run import Cell, Run

_SLOWER = 1.5
_NEARLY_ALL = 0.98


def operating_points(run: Run) -> Mapping[Load, tuple[OperatingPoint, ...]]:
    """Return the points of every load that has a trusted cell, ordered by its tokens."""
    cells_by_load: dict[Load, list[Cell]] = {}
    for cell in sorted(run.cells, key=lambda cell: cell.point.rank):
        if cell.is_trusted and cell.requests_per_second:
            cells_by_load.setdefault(cell.point.load, []).append(cell)
    loads = sorted(cells_by_load, key=lambda load: [tokens or 0 for tokens in load])
    return {load: _told_apart(tuple(_points(cells_by_load[load])), len(cells_by_load[load])) for load in loads}


def _told_apart(points: tuple[OperatingPoint, ...], cells: int) -> tuple[OperatingPoint, ...]:
    """Return the points; where one cell alone is trusted, they say that no rule chose it."""
    if cells > 1:
        return points
    rule = "the only trusted cell of this load, so nothing was chosen: measure other numbers of streams"
    return tuple(replace(point, rule=rule) for point in points)


def _points(cells: Sequence[Cell]) -> Iterator[OperatingPoint]:
    """Yield the points of one load, whose cells go from the fewest streams up."""
    tails = [(cell, cell.ttft_seconds.tail) for cell in cells if cell.ttft_seconds is not None]
    if tails:
        least = min(tail for _, tail in tails)
        latest = [cell for cell, tail in tails if tail <= _SLOWER * least][-1]
        rule = f"the most streams whose first token takes at most {_SLOWER:g} times the least, {least:.3f} s"
        yield OperatingPoint(aim=Aim.LATENCY, cell=latest, rule=rule)
    timed = [(cell, seconds) for cell in cells if (seconds := _response_seconds(cell))]
    if timed:
        knee, _ = max(timed, key=lambda pair: _rate(pair[0]) / pair[1])
        yield OperatingPoint(aim=Aim.BALANCED, cell=knee, rule="the most requests/s per second of response time")
    peak = max(map(_rate, cells))
    enough = next(cell for cell in cells if _rate(cell) >= _NEARLY_ALL * peak)
    rule = f"the fewest streams that bring {_NEARLY_ALL:.0%} of the most requests/s, {peak:.3g}"
    yield OperatingPoint(aim=Aim.THROUGHPUT, cell=enough, rule=rule)


def _rate(cell: Cell) -> float:
    return cell.requests_per_second or 0.0


def _response_seconds(cell: Cell) -> float | None:
    e2e = None if cell.figures is None else cell.figures.e2e_seconds
    return None if e2e is None else e2e.mean
