"""Format a comparison of runs: a row per load, the best cell of each run, and the ratios to the first run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpudeploy.features.benchmark.comparison import Comparison, ComparisonRow, Measure, Scaling
from tpudeploy.features.benchmark.run import Cell, CellStatus, Run
from tpudeploy.features.benchmark.view import LEGEND, MARKS, marked_id
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import count, latency, number

_UNITS = {
    Measure.REQUESTS: "requests/s",
    Measure.OUTPUT: "output tokens/s",
    Measure.INPUT: "prompt tokens/s",
    Measure.TTFT: "time to the first token (median, or the mean where the median is unknown)",
    Measure.TTFT_P99: "time to the first token (99 of 100 requests)",
    Measure.TPOT: "time per output token (median, or the mean where the median is unknown)",
    Measure.TOKENS_PER_USD: "output tokens per USD",
}


def comparison(comparison: Comparison, measure: Measure, paint: Paint, *, width: int | None = None) -> str:
    """Return the whole comparison. A table that is wider than `width` is printed in parts (None: never)."""
    parts = (_table(comparison, measure, paint, width), _bests(comparison, paint, width), _notes(comparison, paint))
    blocks = ("\n".join(part) for part in parts)
    return "\n\n".join(block for block in blocks if block)


def published(runs: Sequence[Run], paint: Paint, *, width: int | None = None) -> str:
    """Return one line for each published table."""
    lines = words.aligned([(run.id, paint.dim(words.plain(run.source))) for run in runs], room=width)
    return "\n".join([paint.bold("Published figures, by the names to use here"), *lines])


def _table(comparison: Comparison, measure: Measure, paint: Paint, width: int | None) -> Iterator[str]:
    if not comparison.rows:
        return
    is_one_shape = len({(row.point.context_tokens, row.point.output_tokens) for row in comparison.rows}) == 1
    heads = ["streams" if is_one_shape else "streams  context  output", *map(marked_id, comparison.runs)]
    rows = [[_label(row, is_one_shape=is_one_shape), *_texts(comparison, row, measure)] for row in comparison.rows]
    yield paint.bold(_UNITS[measure])
    yield from _in_parts([heads, *rows], width)


def _in_parts(rows: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    """Yield the lines of a table of numbers. If it is too wide, each part has the first column and some others."""
    widths = [max(map(words.width, column)) for column in zip(*rows, strict=True)]
    parts: list[list[int]] = []
    room = 0
    for column in range(1, len(widths)):
        if not parts or (width is not None and room < 2 + widths[column]):
            parts.append([])
            room = 0 if width is None else width - widths[0]
        parts[-1].append(column)
        room -= 2 + widths[column]
    for columns in parts:
        lines = words.aligned([[row[n] for n in (0, *columns)] for row in rows], numbers=range(1, len(columns) + 1))
        yield from lines


def _label(row: ComparisonRow, *, is_one_shape: bool) -> str:
    point = row.point
    shape = f"  {count(point.context_tokens):>7}  {count(point.output_tokens):>6}"
    return f"{count(point.concurrency):>7}{'' if is_one_shape else shape}"


def _texts(comparison: Comparison, row: ComparisonRow, measure: Measure) -> list[str]:
    """Return the text of each run's cell, with the ratio to the first run."""
    values = [
        None if cell is None else measure.value_in(cell, run.subject)
        for cell, run in zip(row.cells, comparison.runs, strict=True)
    ]
    first = values[0]
    texts = []
    for position, (value, cell) in enumerate(zip(values, row.cells, strict=True)):
        text = _value(value, measure) + ("" if cell is None else MARKS[cell.status])
        if position and first and value is not None:
            text += f"  {value / first:5.2f}x"
        elif position:
            text += " " * 8
        texts.append(text)
    return texts


def _value(value: float | None, measure: Measure) -> str:
    if value is None:
        return "."
    return latency(value) if measure.is_better_low else number(value)


def _bests(comparison: Comparison, paint: Paint, width: int | None) -> Iterator[str]:
    rows = []
    for run, cell in zip(comparison.runs, comparison.bests, strict=True):
        subject = run.subject
        facts = ", ".join(filter(None, (subject.model_id or subject.model, subject.hardware)))
        where = paint.dim(f"  ({words.plain(facts)})" if facts else "")
        rows.append((marked_id(run), f"{_best(run, cell)}{where}"))
    yield from words.aligned(rows, room=width)


def _best(run: Run, cell: Cell | None) -> str:
    if cell is None:
        return "its throughput is unknown"
    parts = [f"at most {number(Measure.REQUESTS.value_in(cell, run.subject))}{MARKS[cell.status]} requests/s"]
    if cell.point.concurrency is not None:
        parts[0] += f" at {words.plural(cell.point.concurrency, 'stream')}"
    if (tokens := Measure.OUTPUT.value_in(cell, run.subject)) is not None:
        parts.append(f"{number(tokens)} output tokens/s")
    if (ttft := Measure.TTFT.value_in(cell, run.subject)) is not None:
        parts.append(f"TTFT {latency(ttft)}")
    if (per_usd := Measure.TOKENS_PER_USD.value_in(cell, run.subject)) is not None:
        parts.append(f"{number(per_usd)} tokens per USD")
    return ", ".join(parts)


def scaling_text(scaling: Scaling) -> str:
    """Return the gain of more chips."""
    return (
        f"{scaling.chips:g} times the chips, {scaling.ratio:.2f} times the requests: {scaling.per_doubling:.2f} a "
        f"doubling  ({scaling.fewer} -> {scaling.more}{'; doubted' if scaling.is_doubted else ''})"
    )


def _notes(comparison: Comparison, paint: Paint) -> Iterator[str]:
    for scaling in comparison.scalings:
        yield scaling_text(scaling)
    statuses = {cell.status for row in comparison.rows for cell in row.cells if cell is not None}
    statuses |= {cell.status for cell in comparison.bests if cell is not None}
    for status in CellStatus:
        if status in statuses and MARKS[status]:
            yield paint.dim(f"  {MARKS[status]}  {LEGEND[status]}")
    for note in comparison.notes:
        yield paint.dim(words.plain(note))
