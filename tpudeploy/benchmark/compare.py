"""Runs held against each other. What is not believed is shown, and best only where there is nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import log2

from tpudeploy.domain.benchmark import Cell, CellStatus, Run
from tpudeploy.domain.comparison import Comparison, Measure, Row, Scaling
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.load import Point

# Throughput with a queue is throughput; all other doubts are about the figure itself.
_BELIEVED = frozenset({CellStatus.OK, CellStatus.OVERSUBSCRIBED})


def compare(runs: Sequence[Run]) -> Comparison:
    """Cells of the same streams, context and output stand beside each other.

    Runs of one context and one length of answer each are compared by streams alone, and that they differ is told.

    Raise `errors.UsageError` where they have nothing in common.
    """
    shapes = [{(p.context_tokens, p.output_tokens) for p in (cell.point for cell in run.cells)} for run in runs]
    by_streams = all(len(shape) == 1 for shape in shapes) and len(set.union(*shapes)) > 1
    rows = tuple(_rows(runs, by_streams=by_streams))
    bests = tuple(map(best, runs))
    scalings = tuple(_scalings(runs, bests))
    if not rows and not scalings:
        told = "; ".join(f"{run.id}: {_grid(run)}" for run in runs)
        raise UsageError("These runs have no cell in common.", hint=f"{told}.")
    notes = tuple(_notes(runs, shapes if by_streams else []))
    return Comparison(runs=tuple(runs), rows=rows, bests=bests, scalings=scalings, notes=notes)


def best(run: Run) -> Cell | None:
    """The cell with the most requests a second: of those that are believed, if any is."""
    rated = [(is_believed(cell), rate, cell) for cell in run.cells if (rate := _rate(cell, run)) is not None]
    return max(rated, key=lambda each: each[:2])[2] if rated else None


def is_believed(cell: Cell) -> bool:
    return cell.status in _BELIEVED


def _rate(cell: Cell, run: Run) -> float | None:
    return Measure.REQUESTS.value_in(cell, run.subject)


def _rows(runs: Sequence[Run], *, by_streams: bool) -> Iterator[Row]:
    def key(point: Point) -> tuple[int | None, ...]:
        return (point.concurrency, *(() if by_streams else (point.context_tokens, point.output_tokens)))

    found = [{key(cell.point): cell for cell in run.cells if cell.figures is not None} for run in runs]
    points = {key(cell.point): cell.point for run in runs for cell in run.cells}
    for each in sorted(points, key=lambda k: [part or 0 for part in (*k[1:], k[0])]):
        cells = tuple(of.get(each) for of in found)
        if sum(cell is not None for cell in cells) > 1 and points[each].concurrency is not None:
            yield Row(point=points[each], cells=cells)


def _scalings(runs: Sequence[Run], bests: Sequence[Cell | None]) -> Iterator[Scaling]:
    """Of each pair of runs of one model on more and fewer chips of one generation, whose bests are of one load."""
    known = [(run, cell) for run, cell in zip(runs, bests, strict=True) if cell is not None and run.subject.chips]
    for (one, its), (other, others) in combinations(known, 2):
        (fewer, low), (more, high) = sorted(((one, its), (other, others)), key=lambda pair: pair[0].subject.chips or 0)
        chips = (more.subject.chips or 0) / (fewer.subject.chips or 1)
        rate, rates = _rate(low, fewer), _rate(high, more)
        if chips > 1 and _is_alike(fewer, more) and _load(low) == _load(high) and rate and rates:
            ratio = rates / rate
            yield Scaling(
                fewer=fewer.id,
                more=more.id,
                chips=chips,
                ratio=ratio,
                per_doubling=ratio ** (1 / log2(chips)),
                is_doubted=not (is_believed(low) and is_believed(high)),
            )


def _load(cell: Cell) -> tuple[int | None, int | None]:
    return cell.point.context_tokens, cell.point.output_tokens


def _is_alike(one: Run, other: Run) -> bool:
    kinds = {run.subject.accelerator_type.rpartition("-")[0] for run in (one, other)}
    return one.subject.model_id == other.subject.model_id and len(kinds) == 1


def _notes(runs: Sequence[Run], shapes: Sequence[set[tuple[int | None, int | None]]]) -> Iterator[str]:
    if shapes:
        told = ", ".join(f"{run.id} {_shape(*next(iter(shape)))}" for run, shape in zip(runs, shapes, strict=True))
        yield f"Not the same load: {told}."
    for name, what in (("image_digest", "image"), ("spec_fingerprint", "server")):
        several = {getattr(run.subject, name) for run in runs}
        if len(several) > 1 and all(several):
            yield f"Not the same {what}."
    emulated = [run.id for run in runs if run.subject.is_emulated]
    if emulated:
        yield f"{', '.join(emulated)}: measured on the emulator, where no model runs; the figures say nothing of a TPU."
    sources: dict[str, list[str]] = {}
    for run in runs:
        sources.setdefault(run.source, []).append(run.id)
    yield from (f"{', '.join(ids)}: {source}." for source, ids in sources.items() if source)


def _shape(context: int | None, output: int | None) -> str:
    prompt = "prompts of unknown length" if context is None else f"{context:,} in"
    return f"{prompt}, {'answers of unknown length' if output is None else f'{output:,} out'}"


def _grid(run: Run) -> str:
    points = [cell.point for cell in run.cells]
    names = {"streams": "concurrency", "context": "context_tokens", "output": "output_tokens"}
    values = {what: sorted({getattr(point, name) or 0 for point in points}) for what, name in names.items()}
    return ", ".join(f"{what} {','.join(str(n or 'unknown') for n in of)}" for what, of in values.items())
