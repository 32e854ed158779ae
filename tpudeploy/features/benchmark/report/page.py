"""The page of a run: its figures, its operating points, other runs beside it, and the machines that served."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count as count_from

from tpudeploy.boot_log.reading import Timeline
from tpudeploy.domain.verify import Details
from tpudeploy.features.benchmark.comparison import Comparison, Measure
from tpudeploy.features.benchmark.comparison_view import scaling_text
from tpudeploy.features.benchmark.recommendation import OperatingPoint
from tpudeploy.features.benchmark.report import overlay
from tpudeploy.features.benchmark.report.drawing import curve, heat_maps
from tpudeploy.features.benchmark.report.exports import HEAD, rows
from tpudeploy.features.benchmark.report.labels import run_labels
from tpudeploy.features.benchmark.run import CellStatus, Run
from tpudeploy.features.benchmark.view import LEGEND, MARKS, Place, answers_text, load_text, marked_id
from tpudeploy.text import words
from tpudeploy.text.words import EMULATED, count, latency, number
from tpudeploy.views.page import render
from tpudeploy.views.page.chart import Chart

_GIB = 1024**3
_TWO = 2
Bar = tuple[str, float, str]  # name, width in percent, text


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContent:
    """The content of a page. `digest` is the content hash of the run; an empty part is left out."""

    run: Run
    digest: str
    points: Mapping[Place, Sequence[OperatingPoint]]
    comparison: Comparison | None = None
    details: Sequence[Details] = ()
    timelines: Sequence[Timeline] = ()

    @property
    def runs(self) -> Sequence[Run]:
        return (self.run,) if self.comparison is None else self.comparison.runs


def page(report: ReportContent) -> str:
    run, comparison = report.run, report.comparison
    panels, curves = tuple(overlay.panels(report.runs)), tuple(_curves(report))
    charts = [*curves, *(chart for panel in panels for chart in panel.charts)]
    numbers = count_from(len(curves))
    marks = {cell.status for cell in run.cells if MARKS[cell.status]}
    head, cells = _cell_table(report.runs)
    return render(
        "run.html.j2",
        __package__,
        charts=charts,
        title=_title(report),
        heading=_heading(report),
        notes=list(_notes(report)),
        points=[(load_text(*load), [_card(point) for point in points]) for load, points in report.points.items()],
        curves=overlay.chart_group(curves, count_from()),
        panels=overlay.panel_groups(panels, numbers),
        is_several=len(report.runs) > 1,
        heat_maps=list(heat_maps(run)),
        legend="; ".join(f"{MARKS[status]} {LEGEND[status]}" for status in CellStatus if status in marks),
        bests=list(_bests(comparison)),
        remarks=list(_remarks(comparison)),
        memory=list(_memory(report.details)),
        starts=list(_starts(report.timelines)),
        settings=list(_settings(run)),
        head=head,
        rows=cells,
    )


def _cell_table(runs: Sequence[Run]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the head and the rows of all cells, without empty columns; of several runs, each row names its server."""
    table = [(label, *row) for label, run in zip(run_labels(runs), runs, strict=True) for row in rows(run)]
    head = ("server", *HEAD)
    own = [place for place in range(1, len(head)) if any(row[place] for row in table)]
    columns = [0, *own] if len(runs) > 1 else own
    return tuple(head[place] for place in columns), [tuple(row[place] for place in columns) for row in table]


def _heading(report: ReportContent) -> str:
    """Return the heading: of two runs what differs between them."""
    subject = report.run.subject
    if len(report.runs) == _TWO:
        return " against ".join(run_labels(report.runs))
    if len(report.runs) > _TWO:
        return f"{len(report.runs)} runs compared"
    return subject.replica or subject.deployment or subject.model


def _title(report: ReportContent) -> str:
    subject = report.run.subject
    if len(report.runs) > 1:
        return f"{_heading(report)}: {subject.model_id or subject.model}"
    return f"{subject.deployment or subject.model_id or subject.model}: run {marked_id(report.run)}"


def _notes(report: ReportContent) -> Iterator[str]:
    if len(report.runs) > 1:
        pairs = zip(run_labels(report.runs), report.runs, strict=True)
        yield "; ".join(f"{label}: {marked_id(run)}" for label, run in pairs)
    run, subject = report.run, report.run.subject
    began = words.moment(run.began_at) if run.began_at else ""
    version = subject.engine.get("version")
    engine = f"vLLM {version}" if version else ""
    model = subject.model_id or subject.model
    facts = (model, subject.hardware, subject.zone, subject.provisioning, began, engine)
    yield ", ".join(filter(None, facts))
    yield f"Run {run.id}, {len(run.cells)} of {len(run.sweep.points)} cells, by {run.driver}, {report.digest}"
    if subject.replicas:
        yield f"Through the router at {subject.url}. {answers_text(run)}"
    if subject.is_emulated:
        yield EMULATED
    if run.source:
        yield run.source


def _card(point: OperatingPoint) -> tuple[str, str, str]:
    cell = point.cell
    figures = [f"{count(cell.point.concurrency)} streams"]
    if cell.requests_per_second is not None:
        figures.append(f"{number(cell.requests_per_second)} requests/s")
    if cell.ttft_seconds is not None:
        figures.append(f"first token {latency(cell.ttft_seconds.middle)}")
    return point.aim.capitalize(), ", ".join(figures), point.rule


def _curves(report: ReportContent) -> Iterator[Chart]:
    """Yield the curve of each load that has one."""
    cells = sorted(report.run.cells, key=lambda cell: (cell.point.context_tokens or 0, cell.point.output_tokens or 0))
    for load in dict.fromkeys((cell.point.context_tokens, cell.point.output_tokens) for cell in cells):
        of_load = [cell for cell in cells if (cell.point.context_tokens, cell.point.output_tokens) == load]
        drawn = curve(load_text(*load), of_load, report.points.get(load, ()))
        if drawn is not None:
            yield drawn


def _bests(comparison: Comparison | None) -> Iterator[Bar]:
    """Yield a bar for the most requests per second of each run."""
    if comparison is None:
        return
    rates = [
        (run, cell, Measure.REQUESTS.value_in(cell, run.subject) or 0.0)
        for run, cell in zip(comparison.runs, comparison.bests, strict=True)
        if cell is not None
    ]
    names = dict(zip((run.id for run in comparison.runs), run_labels(comparison.runs), strict=True))
    most = max((rate for _, _, rate in rates), default=0.0)
    for run, cell, rate in rates:
        if most:
            yield names[run.id], 100 * rate / most, f"{number(rate)}{MARKS[cell.status]} requests/s"


def _remarks(comparison: Comparison | None) -> Iterator[str]:
    if comparison is not None:
        yield from map(scaling_text, comparison.scalings)
        yield from comparison.notes


def _memory(engines: Iterable[Details]) -> Iterator[tuple[str, list[tuple[str, str, list[tuple[str, float]]]]]]:
    """Yield the bars of one chip of each engine: what was planned above what was measured."""
    for details in engines:
        if any(share.planned or share.measured for share in details.memory):
            yield details.address, _memory_bars(details)


def _memory_bars(details: Details) -> list[tuple[str, str, list[tuple[str, float]]]]:
    most = max(max(share.planned or 0, share.measured or 0) for share in details.memory)
    bars = []
    for share in details.memory:
        sizes = {"is-first": share.planned, "is-second": share.measured}
        widths = [(kind, 100 * size / most) for kind, size in sizes.items() if size is not None]
        text = " / ".join("unknown" if size is None else f"{size / _GIB:.2f} GiB" for size in sizes.values())
        if widths:
            bars.append((share.name, text, widths))
    return bars


def _starts(timelines: Sequence[Timeline]) -> Iterator[tuple[str, list[tuple[str, str, float, float]], str]]:
    """Yield when each part of a start ran; the parts that made it long have a colour of their own."""
    for timeline in timelines:
        phases = [(phase, phase.seconds) for phase in timeline.reading.phases if phase.seconds is not None]
        end = max((phase.began + length for phase, length in phases), default=0.0)
        if not end:
            continue
        critical = {phase.name for phase in timeline.critical}
        bars = []
        for phase, length in phases:
            begin, width = 100 * phase.began / end, 100 * length / end
            kind = "is-second" if phase.name in critical else "is-first"
            bars.append((f"{phase.name}, {words.duration(length)}", kind, begin, min(width, 100 - begin)))
        cache = f" Compile cache: {timeline.cache}." if timeline.cache else ""
        yield timeline.address, bars, f"{words.duration(end)} in all; the second colour shows what made it long.{cache}"


def _settings(run: Run) -> Iterator[tuple[str, str]]:
    subject = run.subject
    values = {
        "image": subject.image,
        "image digest": subject.image_digest,
        "profile": subject.profile_fingerprint,
        "server": subject.spec_fingerprint,
        "price": "" if subject.usd_per_hour is None else f"${subject.usd_per_hour:.2f} an hour",
        **{name.replace("_", " "): value for name, value in sorted(subject.engine.items())},
    }
    return ((name, value) for name, value in values.items() if value)
