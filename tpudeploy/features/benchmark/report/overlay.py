"""Charts that show all runs together: one chart for each measure, over the number of streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.benchmark.offer import Load
from tpudeploy.features.benchmark.report.labels import run_labels
from tpudeploy.features.benchmark.run import Cell, Run
from tpudeploy.features.benchmark.view import LEGEND, MARKS, load_text, marked_id
from tpudeploy.text.words import count, latency, number
from tpudeploy.views.page.chart import Chart, ChartAxis, ChartLine, ChartScale

MEASURES: tuple[tuple[Measure, str, str], ...] = (
    (Measure.OUTPUT, "Throughput", "output tokens/s"),
    (Measure.REQUESTS, "Request rate", "requests/s"),
    (Measure.TTFT, "Time to the first token (TTFT)", "median, ms"),
    (Measure.TPOT, "Time per output token (TPOT)", "median, ms"),
    (Measure.TOKENS_PER_USD, "Tokens per dollar", "output tokens per USD"),
)
_MOST_LINES = 8
_LOG_FROM = 20.0  # the ratio of the largest value to the smallest from which an axis is logarithmic
MILLISECONDS = 1000.0  # in a second: latencies are drawn in them


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayPanel:
    """The charts of one load, of one run, or of all. `keys` are the label and style of each line."""

    heading: str
    keys: tuple[tuple[str, int], ...]
    charts: tuple[Chart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
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


def panels(runs: Sequence[Run], labels: Sequence[str] = ()) -> Iterator[OverlayPanel]:
    """Yield one panel with all lines; or, of many lines, one for each load that runs share, and one for each run.

    `labels` are the names of the runs; without them, what differs between them.
    """
    names = labels or _names(runs)
    series = [each for run, name in zip(runs, names, strict=True) for each in _series_of(run, name)]
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
    for run, name in zip(runs, names, strict=True):
        yield from _panel(name, [replace(each, label=_short(each.load)) for each in single if each.run is run])


def _names(runs: Sequence[Run]) -> Sequence[str]:
    return run_labels(runs) if len(runs) > 1 else tuple(map(run_label, runs))


def chart_group(charts: Sequence[Chart], numbers: Iterator[int]) -> dict[str, object]:
    """Return the numbers and titles of charts on a page, and which marks of them need a key."""
    lines = [line for chart in charts for line in chart.lines]
    return {
        "charts": [(next(numbers), chart.title) for chart in charts],
        "has_points": any(any(line.points) for line in lines),
        "has_doubts": any(any(line.doubts) for line in lines),
    }


def panel_groups(every: Sequence[OverlayPanel], numbers: Iterator[int]) -> list[dict[str, object]]:
    """Return each panel as its template takes it."""
    return [{"heading": each.heading, "lines": each.keys, **chart_group(each.charts, numbers)} for each in every]


def _series_of(run: Run, label: str) -> Iterator[_Series]:
    loads: dict[Load, list[Cell]] = {}
    for cell in run.cells:
        if cell.figures is not None and cell.point.concurrency:
            loads.setdefault(cell.point.load, []).append(cell)
    for cells in loads.values():
        cells.sort(key=lambda cell: cell.point.concurrency or 0)
        yield _Series(label=label, run=run, cells=tuple(cells))


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
    keys = tuple((each.label, index) for index, each in enumerate(series))
    yield OverlayPanel(heading=heading, keys=keys, charts=charts)


def _chart(measure: Measure, title: str, unit: str, series: Sequence[_Series]) -> Chart | None:
    """Return the chart of a measure; None where no run has its figure."""
    figures = [{figure.streams: figure for figure in _figures_of(each, measure, unit)} for each in series]
    every = [figure for of_series in figures for figure in of_series.values()]
    if not every or max(figure.value for figure in every) <= 0:
        return None
    streams = tuple(sorted({figure.streams for figure in every}))
    lines = tuple(
        _line(each.label, index, [of_series.get(at) for at in streams])
        for index, (each, of_series) in enumerate(zip(series, figures, strict=True))
        if of_series
    )
    x_scale = ChartScale.LOG if len(streams) > 1 else ChartScale.LINEAR  # a sweep doubles the streams
    y_scale = value_scale([figure.value for figure in every])
    return Chart(
        title=title,
        x=ChartAxis(label=f"streams{_note(x_scale)}", scale=x_scale),
        y=ChartAxis(label=f"{unit}{_note(y_scale)}", scale=y_scale),
        x_values=tuple(map(float, streams)),
        lines=lines,
    )


def _line(label: str, style: int, figures: Sequence[_Figure | None]) -> ChartLine:
    return ChartLine(
        label=label,
        style=style,
        values=tuple(None if figure is None else figure.value for figure in figures),
        titles=tuple("" if figure is None else figure.title for figure in figures),
        doubts=tuple(figure is not None and figure.is_doubted for figure in figures),
    )


def value_scale(values: Sequence[float]) -> ChartScale:
    """Return the scale for these values: logarithmic where they differ a lot."""
    least, most = min(values), max(values)
    return ChartScale.LOG if least > 0 and most / least > _LOG_FROM else ChartScale.LINEAR


def _note(scale: ChartScale) -> str:
    return " (log scale)" if scale is ChartScale.LOG else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    """The value of a measure in one cell, as it is drawn. `title` is shown over its mark."""

    streams: int
    value: float
    title: str
    is_doubted: bool


def _figures_of(series: _Series, measure: Measure, unit: str) -> Iterator[_Figure]:
    """Yield the figure of each cell that has one."""
    for cell in series.cells:
        value = measure.value_in(cell, series.run.subject)
        if value is not None:
            text = latency(value) if measure.is_better_low else f"{number(value)} {unit}"
            drawn = value * MILLISECONDS if measure.is_better_low else value
            title = _hover(series, cell, text)
            streams = cell.point.concurrency or 1
            yield _Figure(streams=streams, value=drawn, title=title, is_doubted=not cell.is_trusted)


def _hover(series: _Series, cell: Cell, figure: str) -> str:
    """Return what a reader sees over a mark: the figure, its place, and why it is doubted."""
    lines = [series.label, f"{count(cell.point.concurrency)} streams: {figure}"]
    if not cell.is_trusted:
        lines.append(f"Doubted ({MARKS[cell.status]}): {'; '.join(cell.reasons) or LEGEND[cell.status]}")
    return "\n".join(lines)
