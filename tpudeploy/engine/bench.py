"""A sweep, cell by cell: asked for what can be, measured, judged, kept. What was kept before is not run again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from tpudeploy.benchmark.feasible import feasible
from tpudeploy.benchmark.foreign.reading import Result
from tpudeploy.benchmark.judge import judge
from tpudeploy.benchmark.roofline import Roofline
from tpudeploy.domain.benchmark import Bounds, Cell, CellStatus, Ended, Evidence, Figures, Run
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.errors import Interrupted
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.load import Lookups, Offer, Point
from tpudeploy.ports import Clock, LoadDriver, Runs
from tpudeploy.sizing.serve import Service

_ROUNDS = 3  # measured requests of each stream: fewer, and the window would not be steady
_LEAST = 16  # requests, or a percentile means nothing
_STEADY = 2.0  # seconds of a window at least: of a few milliseconds its edges would be most
_HOUR = 3600.0


@frozen
class Bench:
    """What a sweep is run with. `lookups` are the engine's own counts, `vocabulary` is as in `Offer`.

    `begins` hears of each cell before it is asked for, `tell` once it has ended.
    """

    driver: LoadDriver
    runs: Runs
    clock: Clock
    lookups: Callable[[], Lookups | None]
    begins: Callable[[Run, Point], None]
    tell: Callable[[Run, Cell], None]
    bounds: Bounds = Bounds()
    budget: HbmBudget | Unsized | None = None
    roofline: Roofline | None = None
    vocabulary: int | None = None


def bench(run: Run, by: Bench) -> Run:
    """The run with the cells that were left, as far as the bounds let it go; kept after each.

    Raise `errors.Interrupted` with what was measured kept, as the driver and the runs do else.
    """
    before = run.seconds
    for point in run.remaining_points:
        left, ended = _left(run, before, by.bounds)
        if left is not None and left <= 0:
            return _kept(replace(run, ended=ended), by)
        by.begins(run, point)
        try:
            cell = _cell(run, point, by, left)
        except (Interrupted, KeyboardInterrupt) as cause:
            _kept(replace(run, ended=Ended.INTERRUPTED), by)
            raise _interrupted(run) from cause
        if cell is None:
            return _kept(replace(run, ended=ended), by)
        run = _kept(replace(run, cells=(*run.cells, cell), ended=Ended.NOT_YET), by)
        by.tell(run, cell)
    return _kept(replace(run, ended=Ended.COMPLETE), by)


def imported(results: Sequence[Result], line: Roofline | None) -> tuple[Cell, ...]:
    """What somebody else measured, judged by what can be known of it."""
    return tuple(_judged(result, line) for result in results)


def _judged(result: Result, line: Roofline | None) -> Cell:
    if result.figures is None:
        return Cell(point=result.point, status=CellStatus.OVERSUBSCRIBED, reasons=(result.why,))
    evidence = _evidence(result.figures, result.evidence, None, line)
    status, reasons = judge(result.point, result.figures, evidence, None)
    return Cell(
        point=result.point,
        status=status,
        reasons=reasons,
        seconds=result.seconds,
        figures=result.figures,
        evidence=evidence,
        errors=result.errors,
    )


def _left(run: Run, before: float, bounds: Bounds) -> tuple[float | None, Ended]:
    """Seconds until the nearer bound, and which that is."""
    spent, price = run.seconds - before, run.subject.usd_per_hour
    nearest: tuple[float | None, Ended] = (None, Ended.DURATION)
    if bounds.seconds is not None:
        nearest = (bounds.seconds - spent, Ended.DURATION)
    if bounds.usd is not None and price:
        by_cost = bounds.usd / price * _HOUR - spent
        if nearest[0] is None or by_cost < nearest[0]:
            nearest = (by_cost, Ended.COST)
    return nearest


def _cell(run: Run, point: Point, by: Bench, most_seconds: float | None) -> Cell | None:
    """None where its time was over before there were figures."""
    verdict = feasible(point, by.budget, run.subject.engine)
    at_once = None if verdict is None else verdict.at_once
    if verdict is not None and verdict.service is Service.REFUSED:
        return Cell(point=point, status=CellStatus.SKIPPED_LEN, reasons=(verdict.why,), at_once=at_once)
    if verdict is not None and verdict.service is Service.QUEUES and not run.sweep.asks_oversubscribed:
        return Cell(point=point, status=CellStatus.OVERSUBSCRIBED, reasons=(verdict.why,), at_once=at_once)
    began, before = by.clock.now(), by.lookups()
    measured = by.driver.measure(_offer(run, point, by, began, most_seconds), run.sweep.slo)
    if measured.is_cut or measured.figures is None:
        return None
    cached = _cached(before, by.lookups())
    evidence = _evidence(measured.figures, measured.evidence, cached, by.roofline)
    status, reasons = judge(point, measured.figures, evidence, verdict)
    return Cell(
        point=point,
        status=status,
        reasons=reasons,
        at_once=at_once,
        began_at=began,
        seconds=measured.seconds,
        figures=measured.figures,
        evidence=evidence,
        errors=measured.errors,
    )


def _offer(run: Run, point: Point, by: Bench, began: float, most_seconds: float | None) -> Offer:
    # A cell that is run again must not find in the cache what it sent the first time.
    text = f"{run.sweep.seed or f'{run.id} {began}'} {point}"
    return Offer(
        point=point,
        model=run.subject.model,
        seed=int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]),
        requests=max(_ROUNDS * point.sizes[0], _LEAST),
        window_seconds=run.sweep.window_seconds,
        least_seconds=min(_STEADY, run.sweep.window_seconds),
        most_seconds=most_seconds,
        vocabulary=by.vocabulary,
    )


def _cached(before: Lookups | None, after: Lookups | None) -> float | None:
    if before is None or after is None or after.asked <= before.asked:
        return None
    return (after.had - before.had) / (after.asked - before.asked)


def _evidence(of: Figures, seen: Evidence, cached: float | None, line: Roofline | None) -> Evidence:
    if line is None:
        return replace(seen, cached_share=cached)
    peak, bandwidth = line.peak_share(of), line.bandwidth_share(of)
    return replace(seen, cached_share=cached, peak_share=peak, bandwidth_share=bandwidth)


def _kept(run: Run, by: Bench) -> Run:
    by.runs.keep(run)
    return run


def _interrupted(run: Run) -> Interrupted:
    count = len(run.cells)
    return Interrupted(
        f"Interrupted. {count} of {len(run.sweep.points)} cells are kept.",
        hint=f"Go on with the same command and --resume {run.id}.",
    )
