"""Runs as Markdown, for an article: the best cell of each run, and one table for each measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpudeploy.features.benchmark.compare import best
from tpudeploy.features.benchmark.comparison import Comparison, ComparisonRow, Measure
from tpudeploy.features.benchmark.report.overlay import MEASURES, run_label
from tpudeploy.features.benchmark.run import Cell, CellStatus, Run
from tpudeploy.features.benchmark.view import LEGEND, MARKS, marked_id
from tpudeploy.text.words import EMULATED, count, latency, number, plain

_UNKNOWN = ""


def to_markdown(runs: Sequence[Run], comparison: Comparison | None) -> str:
    """Return the document. `comparison` is of these runs; None for a single run."""
    rows = _rows_of(runs[0]) if comparison is None else comparison.rows
    lines = [f"# {runs[0].subject.deployment or run_label(runs[0])}" if len(runs) == 1 else "# Benchmarks compared", ""]
    if any(run.subject.is_emulated for run in runs):
        lines += [f"> {EMULATED}", ""]
    lines += ["## The best of each run", "", *_table(_BEST, [_best(run) for run in runs]), ""]
    for measure, title, unit in MEASURES:
        table = [_row(row, measure, runs) for row in rows]
        if any(any(texts[3:]) for texts in table):
            head = ("streams", "prompt tokens", "answer tokens", *(_escaped(run_label(run)) for run in runs))
            lines += [f"## {title} ({unit})", "", *_table(head, table), ""]
    lines += [f"- {text}" for text in _notes(runs, rows, comparison)]
    return "\n".join(lines).rstrip() + "\n"


_BEST = (
    *("run", "model", "slice", "USD an hour", "requests/s", "streams", "output tokens/s", "TTFT", "TPOT"),
    "tokens per USD",
)


def _rows_of(run: Run) -> Sequence[ComparisonRow]:
    cells = sorted((cell for cell in run.cells if cell.figures is not None), key=lambda cell: cell.point.rank)
    return [ComparisonRow(point=cell.point, cells=(cell,)) for cell in cells]


def _best(run: Run) -> tuple[str, ...]:
    subject, cell = run.subject, best(run)
    price = _UNKNOWN if subject.usd_per_hour is None else f"{subject.usd_per_hour:.2f}"
    facts = (marked_id(run), subject.model_id or subject.model, subject.accelerator_type, price)
    if cell is None:
        return (*map(_escaped, facts), *[_UNKNOWN] * (len(_BEST) - len(facts)))
    figures = {measure: _figure(cell, measure, run) for measure, _, _ in MEASURES}
    return (
        *map(_escaped, facts),
        figures[Measure.REQUESTS],
        count(cell.point.concurrency),
        *(figures[each] for each in (Measure.OUTPUT, Measure.TTFT, Measure.TPOT, Measure.TOKENS_PER_USD)),
    )


def _row(row: ComparisonRow, measure: Measure, runs: Sequence[Run]) -> tuple[str, ...]:
    point = row.point
    sizes = map(count, (point.concurrency, point.context_tokens, point.output_tokens))
    figures = (
        _UNKNOWN if cell is None else _figure(cell, measure, run) for cell, run in zip(row.cells, runs, strict=True)
    )
    return (*sizes, *figures)


def _figure(cell: Cell, measure: Measure, run: Run) -> str:
    """Return the figure with the mark of its doubt."""
    value = measure.value_in(cell, run.subject)
    if value is None:
        return _UNKNOWN
    text = latency(value) if measure.is_better_low else number(value)
    return text if cell.is_trusted else f"{text} ({MARKS[cell.status]})"


def _notes(runs: Sequence[Run], rows: Sequence[ComparisonRow], comparison: Comparison | None) -> Iterator[str]:
    cells = [cell for row in rows for cell in row.cells if cell is not None] + [best(run) for run in runs]
    doubts = {cell.status for cell in cells if cell is not None and not cell.is_trusted}
    yield from (f"({MARKS[status]}) {LEGEND[status]}" for status in CellStatus if status in doubts)
    yield from (plain(note) for note in (() if comparison is None else comparison.notes))
    yield from (f"{marked_id(run)}: {plain(run.source)}" for run in runs if run.source and comparison is None)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _escaped(text: str) -> str:
    return plain(text).replace("|", "\\|")
