"""Runs side by side: a row a load, what each came to, and how the later ones stand to the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpudeploy.domain.benchmark import Cell, CellStatus, Run
from tpudeploy.domain.comparison import Comparison, Measure, Row
from tpudeploy.views import words
from tpudeploy.views.bench import LEGEND, MARKS, marked_id, number, seconds
from tpudeploy.views.paint import Paint

_UNITS = {
    Measure.REQUESTS: "requests/s",
    Measure.OUTPUT: "output tokens/s",
    Measure.INPUT: "prompt tokens/s",
    Measure.TTFT: "time to the first token (median, or the mean where that is all there is)",
    Measure.TTFT_P99: "time to the first token (99 of 100 requests)",
    Measure.TPOT: "time per output token (median, or the mean where that is all there is)",
    Measure.TOKENS_PER_USD: "output tokens per USD",
}


def comparison(of: Comparison, measure: Measure, paint: Paint) -> str:
    """All of it."""
    blocks = ["\n".join(_table(of, measure, paint)), "\n".join(_bests(of, paint)), "\n".join(_more(of, paint))]
    return "\n\n".join(block for block in blocks if block)


def published(runs: Sequence[Run], paint: Paint) -> str:
    """What there is to compare with, a line each."""
    width = max(len(run.id) for run in runs)
    lines = [f"{run.id.ljust(width)}  {paint.dim(words.plain(run.source))}" for run in runs]
    return "\n".join([paint.bold("Published figures, by their names here"), *lines])


def _table(of: Comparison, measure: Measure, paint: Paint) -> Iterator[str]:
    if not of.rows:
        return
    lines = [_texts(of, row, measure) for row in of.rows]
    heads = list(map(marked_id, of.runs))
    widths = [max(len(head), *(len(line[n]) for line in lines)) for n, head in enumerate(heads)]
    is_one_shape = len({(row.point.context_tokens, row.point.output_tokens) for row in of.rows}) == 1
    yield paint.bold(_UNITS[measure])
    yield _label(None, is_one_shape=is_one_shape) + "".join(
        f"  {head.rjust(width)}" for head, width in zip(heads, widths, strict=True)
    )
    for row, line in zip(of.rows, lines, strict=True):
        texts = (f"  {text.rjust(width)}" for text, width in zip(line, widths, strict=True))
        yield (_label(row, is_one_shape=is_one_shape) + "".join(texts)).rstrip()


def _label(row: Row | None, *, is_one_shape: bool) -> str:
    if row is None:
        return "streams" if is_one_shape else "streams  context  output"
    point = row.point
    more = "" if is_one_shape else f"  {point.context_tokens:>7,}  {point.output_tokens:>6,}"
    return f"{point.concurrency:>7,}{more}"


def _texts(of: Comparison, row: Row, measure: Measure) -> list[str]:
    values = [
        None if cell is None else measure.value_in(cell, run.subject)
        for cell, run in zip(row.cells, of.runs, strict=True)
    ]
    first = values[0]
    texts = []
    for n, (value, cell) in enumerate(zip(values, row.cells, strict=True)):
        shown = _shown(value, measure) + ("" if cell is None else MARKS[cell.status])
        ratio = f"  {value / first:5.2f}x" if n and first and value is not None else "" if not n else " " * 8
        texts.append(f"{shown}{ratio}")
    return texts


def _shown(value: float | None, measure: Measure) -> str:
    if value is None:
        return "."
    return seconds(value) if measure.is_better_low else number(value)


def _bests(of: Comparison, paint: Paint) -> Iterator[str]:
    width = max(len(marked_id(run)) for run in of.runs)
    for run, cell in zip(of.runs, of.bests, strict=True):
        yield f"{marked_id(run).ljust(width)}  {_best(run, cell)}{paint.dim(_where(run))}"


def _best(run: Run, cell: Cell | None) -> str:
    if cell is None:
        return "no throughput is told"
    parts = [f"at most {number(Measure.REQUESTS.value_in(cell, run.subject))}{MARKS[cell.status]} requests/s"]
    if cell.point.concurrency:
        parts[0] += f" at {cell.point.concurrency:,} streams"
    if (tokens := Measure.OUTPUT.value_in(cell, run.subject)) is not None:
        parts.append(f"{number(tokens)} output tokens/s")
    if (ttft := Measure.TTFT.value_in(cell, run.subject)) is not None:
        parts.append(f"TTFT {seconds(ttft)}")
    if (per_usd := Measure.TOKENS_PER_USD.value_in(cell, run.subject)) is not None:
        parts.append(f"{number(per_usd)} tokens per USD")
    return ", ".join(parts)


def _where(run: Run) -> str:
    of = run.subject
    told = ", ".join(filter(None, (of.model_id or of.model, of.accelerator_type)))
    return f"  ({words.plain(told)})" if told else ""


def _more(of: Comparison, paint: Paint) -> Iterator[str]:
    for each in of.scalings:
        yield (
            f"{each.chips:g} times the chips, {each.ratio:.2f} times the requests: {each.per_doubling:.2f} a doubling"
            f"  ({each.fewer} -> {each.more}{'; doubted' if each.is_doubted else ''})"
        )
    statuses = {cell.status for row in of.rows for cell in row.cells if cell is not None}
    statuses |= {cell.status for cell in of.bests if cell is not None}
    for status in CellStatus:
        if status in statuses and MARKS[status]:
            yield paint.dim(f"  {MARKS[status]}  {LEGEND[status]}")
    for note in of.notes:
        yield paint.dim(words.plain(note))
