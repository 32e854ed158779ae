"""Comparison of runs. Doubtful cells are compared_runs; one of them is a run's best only where no cell is trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import log2

from tpudeploy import catalog
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.benchmark.comparison import Comparison, ComparisonRow, Scaling
from tpudeploy.features.benchmark.offer import Load, Point
from tpudeploy.features.benchmark.run import Cell, Driver, Run

_AXES = {"streams": "concurrency", "context": "context_tokens", "output": "output_tokens"}


def compare(runs: Sequence[Run]) -> Comparison:
    """Compare cells of the same streams, context and output.

    Runs that have one context and one answer length each are compared by streams alone, and a note says what differs.
    So is a run of one's own beside a table of another load, by its nearest load. Of a table that states only its best,
    the best is compared. Raise `errors.UsageError` where they have nothing in common.
    """
    loads = [{cell.point.load for cell in run.cells} for run in runs]
    by_streams = all(len(of_run) == 1 for of_run in loads) and len(set.union(*loads)) > 1
    rows = tuple(_rows(runs, by_streams=by_streams))
    has_own = any(run.driver is not Driver.PUBLISHED for run in runs)
    compared_runs = runs
    if not rows and has_own:
        compared_runs, by_streams = _of_nearest_load(runs), True
        rows = tuple(_rows(compared_runs, by_streams=True))
    bests = tuple(map(best, runs))
    scalings = tuple(_scalings(runs, bests))
    if not rows and not scalings and not (has_own and all(bests)):
        grids = "; ".join(f"{run.id}: {_axes(run)}" for run in runs)
        raise UsageError("These runs have no cell in common.", hint=f"{grids}.")
    notes = tuple(_notes(compared_runs, by_streams=by_streams))
    if not rows:
        notes = ("No cell in common: the best of each run is what can be compared.", *notes)
    return Comparison(runs=tuple(runs), rows=rows, bests=bests, scalings=scalings, notes=notes)


def _of_nearest_load(runs: Sequence[Run]) -> Sequence[Run]:
    """Return each run with the cells of one load: that nearest to the load of the run with the fewest."""
    # A peak at an unknown number of streams is beside nothing.
    loads = [tuple(dict.fromkeys(c.point.load for c in run.cells if c.point.concurrency is not None)) for run in runs]
    target = min(filter(None, loads), key=len, default=((None, None),))[0]

    def distance(load: Load) -> tuple[float, ...]:
        pairs = zip(load, target, strict=True)
        return tuple(abs(log2(own / other)) if own and other else 0.0 for own, other in pairs)

    nearest = [min(of_run, key=distance, default=None) for of_run in loads]
    return [
        replace(run, cells=tuple(cell for cell in run.cells if cell.point.load == load))
        for run, load in zip(runs, nearest, strict=True)
    ]


def best(run: Run) -> Cell | None:
    """Return the cell with the most requests per second, among the trusted ones if there are any."""
    rated = [cell for cell in run.cells if cell.requests_per_second is not None]
    return max(rated, key=lambda cell: (cell.is_trusted, cell.requests_per_second or 0.0), default=None)


def scalings(runs: Sequence[Run]) -> tuple[Scaling, ...]:
    """Return the gain of more chips for each pair of runs that differ in little else."""
    return tuple(_scalings(runs, tuple(map(best, runs))))


def _rows(runs: Sequence[Run], *, by_streams: bool) -> Iterator[ComparisonRow]:
    def key(point: Point) -> tuple[int | None, ...]:
        return (point.concurrency,) if by_streams else (*point.load, point.concurrency)

    cells_by_key = [{key(cell.point): cell for cell in run.cells if cell.figures is not None} for run in runs]
    points = {key(cell.point): cell.point for run in runs for cell in run.cells}
    for row_key in sorted(points, key=lambda parts: [part or 0 for part in parts]):
        cells = tuple(cells.get(row_key) for cells in cells_by_key)
        if sum(cell is not None for cell in cells) > 1 and points[row_key].concurrency is not None:
            yield ComparisonRow(point=points[row_key], cells=cells)


def _scalings(runs: Sequence[Run], bests: Sequence[Cell | None]) -> Iterator[Scaling]:
    """Yield the gain of more chips for each pair of runs of one model and generation whose best cells have one load."""
    rated = [
        (run.subject.chips, run, cell, cell.requests_per_second)
        for run, cell in zip(runs, bests, strict=True)
        if cell is not None and cell.requests_per_second and run.subject.chips
    ]
    for pair in combinations(rated, 2):
        (chips, fewer, low, rate), (more_chips, more, high, more_rate) = sorted(pair, key=lambda row: row[0])
        if more_chips == chips or not _is_alike(fewer, more) or low.point.load != high.point.load:
            continue
        times, ratio = more_chips / chips, more_rate / rate
        yield Scaling(
            fewer=fewer.id,
            more=more.id,
            chips=times,
            ratio=ratio,
            per_doubling=ratio ** (1 / log2(times)),
            is_doubted=not (low.is_trusted and high.is_trusted),
        )


def _is_alike(one: Run, other: Run) -> bool:
    is_one_generation = _generation(one) == _generation(other)
    return one.subject.model_id == other.subject.model_id and is_one_generation


def _generation(run: Run) -> str:
    """Return the generation of a run's chips; for other hardware, the name without its number."""
    name = run.subject.accelerator_type
    slice_type = catalog.accelerator_type(name)
    return name.rpartition("-")[0] if slice_type is None else slice_type.generation


def _notes(runs: Sequence[Run], *, by_streams: bool) -> Iterator[str]:
    if by_streams:
        loads = ", ".join(f"{run.id} {_load_text(run.cells[0].point.load)}" for run in runs if run.cells)
        yield f"Not the same load: {loads}."
    for name, thing in (("image_digest", "image"), ("spec_fingerprint", "server")):
        values = {getattr(run.subject, name) for run in runs}
        if len(values) > 1 and all(values):
            yield f"Not the same {thing}."
    emulated = [run.id for run in runs if run.subject.is_emulated]
    if emulated:
        yield f"{', '.join(emulated)}: measured on the emulator, where no model runs; the figures say nothing of a TPU."
    yield from source_notes(runs)


def source_notes(runs: Sequence[Run]) -> Iterator[str]:
    """Yield where the runs come from that were imported or published."""
    sources: dict[str, list[str]] = {}
    for run in runs:
        sources.setdefault(run.source, []).append(run.id)
    yield from (f"{', '.join(ids)}: {source}." for source, ids in sources.items() if source)


def _load_text(load: Load) -> str:
    context, output = load
    prompt = "prompts of unknown length" if context is None else f"{context:,} in"
    return f"{prompt}, {'answers of unknown length' if output is None else f'{output:,} out'}"


def _axes(run: Run) -> str:
    """Return the streams, contexts and outputs of a run's cells."""
    texts = []
    for axis, name in _AXES.items():
        sizes = sorted({getattr(cell.point, name) or 0 for cell in run.cells})
        texts.append(f"{axis} {','.join(str(size or 'unknown') for size in sizes)}")
    return ", ".join(texts)
