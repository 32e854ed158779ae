"""The pictures of a page: heat maps, and curves of throughput against latency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tpudeploy.features.benchmark.recommendation import OperatingPoint
from tpudeploy.features.benchmark.report.overlay import MILLISECONDS, value_scale
from tpudeploy.features.benchmark.run import Cell, Run
from tpudeploy.features.benchmark.view import MARKS, heat_shares, ordered, output_text
from tpudeploy.text.words import count, latency, number
from tpudeploy.views.page.chart import Chart, ChartAxis, ChartLine

_STRONGEST = 0.55  # of the colour: text on it stays readable in both schemes
_FEWEST = 2  # dots of a curve


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatCell:
    """`level` is the strength of its colour, "" without a figure. `is_doubted`: its figure is not trusted."""

    text: str
    level: str
    reasons: str
    is_doubted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """The cells of one answer length: streams down, prompt lengths across; None where a cell was not measured."""

    output: str
    contexts: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]


def heat_maps(run: Run) -> Iterator[HeatMap]:
    """Yield one map for each answer length of the sweep."""
    for output in dict.fromkeys(point.output_tokens for point in run.sweep.points):
        cells = {(c.point.concurrency, c.point.context_tokens): c for c in run.cells if c.point.output_tokens == output}
        shares = heat_shares({place: cell.requests_per_second for place, cell in cells.items()})
        drawn = {place: _heat_cell(cell, shares.get(place)) for place, cell in cells.items()}
        streams, contexts = ordered({place[0] for place in cells}), ordered({place[1] for place in cells})
        yield HeatMap(
            output=output_text(output),
            contexts=tuple(map(count, contexts)),
            rows=tuple((count(n), tuple(drawn.get((n, context)) for context in contexts)) for n in streams),
        )


def _heat_cell(cell: Cell, share: float | None) -> HeatCell:
    rate = number(cell.requests_per_second) if cell.requests_per_second else ""
    return HeatCell(
        text=f"{rate}{MARKS[cell.status]}",
        level="" if share is None else f"{_STRONGEST * share:.2f}",
        reasons="; ".join(cell.reasons),
        is_doubted=not cell.is_trusted,
    )


def curve(title: str, cells: Sequence[Cell], points: Sequence[OperatingPoint]) -> Chart | None:
    """Return the chart of one load: requests per second across, milliseconds to the first token up.

    It is None for fewer than two cells with both figures. The marks are joined by their number of streams: beyond the
    most that a server takes, the line turns back.
    """
    rows = [
        (cell.requests_per_second, cell.ttft_seconds.middle * MILLISECONDS, cell)
        for cell in cells
        if cell.requests_per_second is not None and cell.ttft_seconds is not None
    ]
    if len(rows) < _FEWEST:
        return None
    rows.sort(key=lambda row: row[0])
    order = sorted(range(len(rows)), key=lambda at: rows[at][2].point.concurrency or 0)
    operating_points = {point.cell.point for point in points}
    line = ChartLine(
        label=title,
        style=0,
        values=tuple(milliseconds for _, milliseconds, _ in rows),
        titles=tuple(_title(rate, cell) for rate, _, cell in rows),
        doubts=tuple(not cell.is_trusted for _, _, cell in rows),
        points=tuple(cell.point in operating_points for _, _, cell in rows),
        labels=tuple(count(cell.point.concurrency) for _, _, cell in rows),
        order=tuple(order),
    )
    scale = value_scale([milliseconds for _, milliseconds, _ in rows])
    return Chart(
        title=title,
        x=ChartAxis(label="requests/s"),
        y=ChartAxis(label=f"TTFT, median, ms{' (log scale)' if scale == 'log' else ''}", scale=scale),
        x_values=tuple(rate for rate, _, _ in rows),
        lines=(line,),
    )


def _title(rate: float, cell: Cell) -> str:
    assert cell.ttft_seconds is not None  # the chart has no mark without it
    first = latency(cell.ttft_seconds.middle)
    text = f"{count(cell.point.concurrency)} streams: {number(rate)} requests/s, first token {first}"
    return text if cell.is_trusted else f"{text}\nDoubted ({MARKS[cell.status]}): {'; '.join(cell.reasons)}"
