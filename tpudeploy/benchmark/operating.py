"""Operating points of a measured deployment: three cells of one load, each by a rule that is told with it.

Latency: as many streams as leave the first token nearly as quick as it gets. Balanced: Kleinrock's power, throughput
over response time, is greatest there: beyond it, waiting grows faster than work. Throughput: as few streams as bring
nearly all there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tpudeploy.benchmark.compare import is_believed
from tpudeploy.domain.benchmark import Cell, Figures, Run, Spread
from tpudeploy.domain.recommendation import Aim, OperatingPoint

_SLOWER = 1.5
_NEARLY_ALL = 0.98

Load = tuple[int | None, int | None]  # tokens in, tokens out; None: unknown


def operating_points(run: Run) -> Mapping[Load, tuple[OperatingPoint, ...]]:
    """Of every load of which a cell can be believed, in the order of its tokens."""
    loads: dict[Load, list[Cell]] = {}
    for cell in run.cells:
        if is_believed(cell) and _rate(cell) > 0:
            loads.setdefault((cell.point.context_tokens, cell.point.output_tokens), []).append(cell)
    return {load: tuple(_points(sorted(cells, key=_streams))) for load, cells in _by_tokens(loads)}


def _by_tokens(loads: Mapping[Load, list[Cell]]) -> list[tuple[Load, list[Cell]]]:
    return sorted(loads.items(), key=lambda pair: (pair[0][0] or 0, pair[0][1] or 0))


def _points(cells: list[Cell]) -> Iterator[OperatingPoint]:
    quick = [cell for cell in cells if _first(cell) is not None]
    if quick:
        least = min(_first(cell) or 0.0 for cell in quick)
        best = _most(cell for cell in quick if (_first(cell) or 0.0) <= _SLOWER * least)
        rule = f"the most streams whose first token takes at most {_SLOWER:g} times the least, {least:.3f} s"
        yield OperatingPoint(aim=Aim.LATENCY, cell=best, rule=rule)
    timed = [cell for cell in cells if _response(cell)]
    if timed:
        knee = max(timed, key=lambda cell: _rate(cell) / (_response(cell) or 1.0))
        yield OperatingPoint(aim=Aim.BALANCED, cell=knee, rule="the most requests/s per second of response time")
    peak = max(_rate(cell) for cell in cells)
    enough = min((cell for cell in cells if _rate(cell) >= _NEARLY_ALL * peak), key=_streams)
    rule = f"the fewest streams that bring {_NEARLY_ALL:.0%} of the most requests/s, {peak:.3g}"
    yield OperatingPoint(aim=Aim.THROUGHPUT, cell=enough, rule=rule)


def _most(cells: Iterable[Cell]) -> Cell:
    return max(cells, key=_streams)


def _streams(cell: Cell) -> int:
    return cell.point.concurrency or 0


def _rate(cell: Cell) -> float:
    return _figures(cell).requests_per_second or 0.0


def _first(cell: Cell) -> float | None:
    return tail(_figures(cell).ttft_seconds)


def _response(cell: Cell) -> float | None:
    of = _figures(cell).e2e_seconds
    return None if of is None else of.mean


def tail(of: Spread | None) -> float | None:
    """What 95 of 100 were within; the mean where nobody tells."""
    return None if of is None else of.mean if of.p95 is None else of.p95


def _figures(cell: Cell) -> Figures:
    return cell.figures if cell.figures is not None else Figures(requests=0, requests_failed=0)
