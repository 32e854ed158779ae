"""The geometry of charts that show all runs together: one chart for each measure, over the number of streams.

Each chart is SVG of a few kilobytes without a script. A plotting library would be vendored: 4.8 MB in each page for
plotly, and a script for any of them, for five charts of lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log2, log10

from tpudeploy.domain.frozen import frozen, replace
from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.benchmark.offer import Load
from tpudeploy.features.benchmark.run import Cell, Run
from tpudeploy.features.benchmark.view import LEGEND, MARKS, load_text, marked_id
from tpudeploy.text.words import count, latency, number

MEASURES: tuple[tuple[Measure, str, str], ...] = (
    (Measure.OUTPUT, "Throughput", "output tokens/s"),
    (Measure.REQUESTS, "Request rate", "requests/s"),
    (Measure.TTFT, "Time to the first token (TTFT)", "median seconds"),
    (Measure.TPOT, "Time per output token (TPOT)", "median seconds"),
    (Measure.TOKENS_PER_USD, "Tokens per dollar", "output tokens per USD"),
)
_WIDTH, _HEIGHT, _LEFT, _TOP = 380, 260, 58, 30
_RIGHT, _BOTTOM = _WIDTH - 16, _HEIGHT - 46
FRAME = {"width": _WIDTH, "height": _HEIGHT, "left": _LEFT, "right": _RIGHT, "top": _TOP, "bottom": _BOTTOM}
# Colours repeat beyond this number of lines, with another dash.
COLOURS = 6
_MOST_LINES = 8
_LOG_FROM = 20.0  # the ratio of the largest value to the smallest from which an axis is logarithmic
_TICK_GAP = 30.0  # pixels between two labels of the x axis


@frozen
class CellMark:
    """One cell. `sign` is the mark of its doubt, "" for a figure that is trusted."""

    x: float
    y: float
    title: str
    sign: str


@frozen
class CellLine:
    """The cells of a run and a load. `colour` counts from 1."""

    colour: int
    is_dashed: bool
    marks: tuple[CellMark, ...]


@frozen
class Chart:
    """`x_ticks` and `y_ticks` are the pixels and the text of each label."""

    title: str
    x_title: str
    y_title: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    lines: tuple[CellLine, ...]


@frozen
class OverlayPanel:
    """The charts of one load, of one run, or of all. `keys` are the label, colour and dash of each line."""

    heading: str
    keys: tuple[tuple[str, int, bool], ...]
    charts: tuple[Chart, ...]

    @property
    def has_doubts(self) -> bool:
        return any(mark.sign for chart in self.charts for line in chart.lines for mark in line.marks)


@frozen
class _Series:
    label: str
    run: Run
    cells: tuple[Cell, ...]

    @property
    def load(self) -> Load:
        return self.cells[0].point.load


def run_label(run: Run) -> str:
    """Return the model and the slice of a run, by which a reader knows it, and its id."""
    subject = run.subject
    model = (subject.model_id or subject.model).rpartition("/")[2]
    where = f" on {subject.accelerator_type}" if subject.accelerator_type else ""
    return f"{model}{where} ({marked_id(run)})"


def panels(runs: Sequence[Run]) -> Iterator[OverlayPanel]:
    """Yield one panel with all lines; or, of many lines, one for each load that runs share, and one for each run."""
    series = [each for run in runs for each in _series_of(run)]
    if len(series) <= _MOST_LINES:
        yield from _panel("", [_with_load(each) if _has_loads(each.run) else each for each in series])
        return
    by_load: dict[Load, list[_Series]] = {}
    for each in series:
        by_load.setdefault(each.load, []).append(each)
    for load, lines in by_load.items():
        if len(lines) > 1:
            yield from _panel(load_text(*load), lines)
    single = [lines[0] for lines in by_load.values() if len(lines) == 1]
    for run in runs:
        yield from _panel(
            run_label(run), [replace(each, label=_short(each.load)) for each in single if each.run is run]
        )


def _series_of(run: Run) -> Iterator[_Series]:
    loads: dict[Load, list[Cell]] = {}
    for cell in run.cells:
        if cell.figures is not None and cell.point.concurrency:
            loads.setdefault(cell.point.load, []).append(cell)
    for cells in loads.values():
        cells.sort(key=lambda cell: cell.point.concurrency or 0)
        yield _Series(label=run_label(run), run=run, cells=tuple(cells))


def _has_loads(run: Run) -> bool:
    return len({cell.point.load for cell in run.cells}) > 1


def _with_load(series: _Series) -> _Series:
    """Return the series with its load in the label, for a panel of several loads."""
    return replace(series, label=f"{series.label}, {_short(series.load)}")


def _short(load: Load) -> str:
    prompt, answer = ("?" if tokens is None else count(tokens) for tokens in load)
    return f"{prompt} in, {answer} out"


def _panel(heading: str, series: Sequence[_Series]) -> Iterator[OverlayPanel]:
    charts = tuple(chart for row in MEASURES if (chart := _chart(*row, series)) is not None)
    if not charts:
        return
    keys = tuple((each.label, *_style(index)) for index, each in enumerate(series))
    yield OverlayPanel(heading=heading, keys=keys, charts=charts)


def _style(index: int) -> tuple[int, bool]:
    return index % COLOURS + 1, index % (2 * COLOURS) >= COLOURS


def _chart(measure: Measure, title: str, unit: str, series: Sequence[_Series]) -> Chart | None:
    """Return the chart of a measure; None where no run has its figure."""
    figures = [list(_figures_of(each, measure, unit)) for each in series]
    every = [figure for of_series in figures for figure in of_series]
    if not every or max(figure.value for figure in every) <= 0:
        return None
    streams = sorted({figure.streams for figure in every})
    x_axis, y_axis = _streams_axis(streams), _value_axis([figure.value for figure in every])
    lines = []
    for index, of_series in enumerate(figures):
        colour, is_dashed = _style(index)
        marks = tuple(
            CellMark(x=x_axis.pixel(each.streams), y=y_axis.pixel(each.value), title=each.title, sign=each.sign)
            for each in of_series
        )
        if marks:
            lines.append(CellLine(colour=colour, is_dashed=is_dashed, marks=marks))
    return Chart(
        title=title,
        x_title=f"streams{x_axis.note}",
        y_title=f"{unit}{y_axis.note}",
        x_ticks=tuple(_apart((x_axis.pixel(n), count(n)) for n in streams)),
        y_ticks=tuple((y_axis.pixel(value), _tick(value)) for value in y_axis.ticks),
        lines=tuple(lines),
    )


@frozen
class _Figure:
    """The value of a measure in one cell. `title` and `sign` are those of its mark."""

    streams: int
    value: float
    title: str
    sign: str


def _figures_of(series: _Series, measure: Measure, unit: str) -> Iterator[_Figure]:
    """Yield the figure of each cell that has one."""
    for cell in series.cells:
        value = measure.value_in(cell, series.run.subject)
        if value is not None:
            text = latency(value) if measure.is_better_low else f"{number(value)} {unit}"
            sign = "" if cell.is_trusted else MARKS[cell.status]
            streams = cell.point.concurrency or 1
            yield _Figure(streams=streams, value=value, title=_hover(series, cell, text), sign=sign)


def _hover(series: _Series, cell: Cell, figure: str) -> str:
    """Return what a reader sees over a mark: the figure, its place, and why it is doubted."""
    lines = [series.label, f"{count(cell.point.concurrency)} streams: {figure}"]
    if not cell.is_trusted:
        lines.append(f"Doubted: {'; '.join(cell.reasons) or LEGEND[cell.status]}")
    return "\n".join(lines)


@frozen
class _Axis:
    """An axis from `low` to `high` over the pixels from `begin` to `end`."""

    low: float
    high: float
    begin: float
    end: float
    is_log: bool
    ticks: tuple[float, ...] = ()

    @property
    def note(self) -> str:
        return " (log scale)" if self.is_log else ""

    def pixel(self, value: float) -> float:
        if self.high == self.low:
            return (self.begin + self.end) / 2
        low, high, at = self.low, self.high, value
        if self.is_log:
            low, high, at = log2(low), log2(high), log2(at)
        return self.begin + (at - low) / (high - low) * (self.end - self.begin)


def _streams_axis(streams: Sequence[int]) -> _Axis:
    """Return the axis of streams, which a sweep doubles: a logarithm sets them apart evenly."""
    return _Axis(low=streams[0], high=streams[-1], begin=_LEFT + 12, end=_RIGHT - 8, is_log=len(streams) > 1)


def _value_axis(values: Sequence[float]) -> _Axis:
    least, most = min(values), max(values)
    if least > 0 and most / least > _LOG_FROM:
        low, high = 10.0 ** floor(log10(least)), 10.0 ** ceil(log10(most))
        exponents = range(floor(log10(low)), ceil(log10(high)) + 1)
        return _Axis(
            low=low, high=high, begin=_BOTTOM, end=_TOP, is_log=True, ticks=tuple(10.0**power for power in exponents)
        )
    step = _round_step(most / 4)
    ticks = tuple(step * number_of for number_of in range(ceil(most / step - 1e-9) + 1))
    return _Axis(low=0.0, high=ticks[-1], begin=_BOTTOM, end=_TOP, is_log=False, ticks=ticks)


def _tick(value: float) -> str:
    """Return a label that is at most five characters wide: 0.05, 1,000, 20k, 100M."""
    for unit, size, least in (("G", 1e9, 1e9), ("M", 1e6, 1e6), ("k", 1e3, 1e4)):
        if value >= least:
            return f"{value / size:g}{unit}"
    return f"{value:,.12g}"


def _round_step(value: float) -> float:
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if value <= step * power * (1 + 1e-9))


def _apart(ticks: Iterator[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """Yield the labels that do not touch the one before."""
    previous = float("-inf")
    for x, text in ticks:
        if x - previous >= _TICK_GAP:
            yield x, text
            previous = x
