"""An article about measured servers, as sections of sentences and tables. A table without a figure is left out.

`markdown.py` and `page.py` write the same sections. Every table says what its figures are: medians, or means where a
source has no medians. Servers are labelled by what differs between them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from math import exp, log, sqrt
from statistics import fmean, variance

from tpudeploy.domain.starts import MeasuredStart
from tpudeploy.features.benchmark.compare import compare, scalings
from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.benchmark.comparison_view import scaling_text
from tpudeploy.features.benchmark.offer import Load, Point
from tpudeploy.features.benchmark.published import baseline_of, published
from tpudeploy.features.benchmark.report.labels import short_models
from tpudeploy.features.benchmark.run import Cell, CellStatus, Driver, Run, Subject
from tpudeploy.features.benchmark.student import quantile
from tpudeploy.features.benchmark.view import LEGEND, MARKS, load_text, ordered
from tpudeploy.text.words import EMULATED, count, latency, number, plain, plural, some

_FEWEST = 2  # of something that a table compares, or of repeats with an interval
_SHARE = 0.975  # of Student's t below the upper end of a 95 % interval
_WARM = 0.5  # of the programs of a start: with at least these in the cache, it was warm
_MILLION = 1e6
_NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleTable:
    """A table. `head` and `rows` have the same columns; figures begin with the column `figures`."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    figures: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleSection:
    """A title, and what follows it in order. `code` are texts that are shown as they are."""

    title: str
    parts: tuple[ArticleTable | str, ...]
    code: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleServer:
    """A server of an article: its runs, all on one subject but for the place, and the cells that count, by load.

    A cell that was measured several times has several figures.
    """

    label: str
    runs: tuple[Run, ...]
    cells: Mapping[Point, tuple[Cell, ...]]

    @property
    def subject(self) -> Subject:
        return self.runs[-1].subject

    @property
    def has_medians(self) -> bool:
        cells = (cell for cells in self.cells.values() for cell in cells)
        return all(cell.ttft_seconds is None or cell.ttft_seconds.p50 is not None for cell in cells)


def of_run(label: str, run: Run) -> ArticleServer:
    """Return a single run as a server of an article."""
    cells = {cell.point: (cell,) for cell in run.cells if cell.figures is not None}
    return ArticleServer(label=label, runs=(run,), cells=cells)


def imported_servers(runs: Iterable[Run]) -> tuple[ArticleServer, ...]:
    """Return the servers of others' tables among some runs."""
    tables = [run for run in runs if run.driver is Driver.GKE_QUICKSTART]
    engines = [run.subject.engine for run in tables]
    labels = [f"by others, {engine.get('version') or engine.get('server') or 'unknown server'}" for engine in engines]
    return tuple(map(of_run, labels, tables))


def sections(
    servers: Sequence[ArticleServer], notes: Iterable[str] = (), others: Sequence[ArticleServer] = ()
) -> tuple[ArticleSection, ...]:
    """Return the sections of an article, each with at least one figure or sentence.

    `others` stand only beside the best server of the same model and slice.
    """
    kept = [server for server in servers if server.cells]
    beside = partial(_beside_published, others=others)
    makers = (_bests, _peaks, _grids, _against_first, _scaling, beside, _history, _starts, _recommendations)
    parts = [section for make in makers if (section := make(kept)) is not None] if kept else []
    return (*parts, _methods(servers, tuple(notes)))


def emulated_note(servers: Iterable[ArticleServer]) -> str:
    return EMULATED if any(run.subject.is_emulated for server in servers for run in server.runs) else ""


def _bests(servers: Sequence[ArticleServer]) -> ArticleSection | None:
    """Return the best cell of each server, with all that is known of it."""
    measures = (Measure.REQUESTS, Measure.OUTPUT, Measure.INPUT, Measure.TTFT, Measure.TPOT, Measure.TOKENS_PER_USD)
    names = ("requests/s", "output tokens/s", "prompt tokens/s", "TTFT", "TPOT", "output tokens per USD")
    head = ("server", "load", "streams", *names, "USD an hour", "USD per million output tokens")
    rows = []
    for server in servers:
        point = _best_point(server)
        if point is None:
            continue
        price = server.subject.usd_per_hour
        per_usd = _value(server, point, Measure.TOKENS_PER_USD)
        rows.append(
            (
                server.label,
                load_text(*point.load),
                count(point.concurrency) if point.concurrency is not None else "not stated",
                *(_text(server, point, measure) for measure in measures),
                "" if price is None else f"{price:.2f}",
                "" if not per_usd else f"{_MILLION / per_usd:.3g}",
            )
        )
    table = _table(head, rows, figures=2)
    if table is None:
        return None
    has_latency = {"TTFT", "TPOT"} & {*table.head}
    return ArticleSection(title="The best of each server", parts=(table, *([_means(servers)] if has_latency else [])))


def _peaks(servers: Sequence[ArticleServer]) -> ArticleSection | None:
    """Return the highest rate of each model on each slice, whatever the load and the settings."""
    models = short_models([_model(server) for server in servers])
    slices = list(dict.fromkeys(_hardware(server) for server in servers))
    if len(models) * len(slices) < _FEWEST:
        return None
    rows = [(short, *(_peak(servers, model, each) for each in slices)) for model, short in models.items()]
    table = _table(("model", *slices), [row for row in rows if {*row[1:]} != {_NOT_MEASURED}])
    return None if table is None else ArticleSection(title="Peak requests/s by model and slice", parts=(table,))


def _peak(servers: Sequence[ArticleServer], model: str, hardware: str) -> str:
    own = [server for server in servers if (_model(server), _hardware(server)) == (model, hardware)]
    rates = [
        rate for each in own for point in each.cells if (rate := _value(each, point, Measure.REQUESTS)) is not None
    ]
    return number(max(rates)) if rates else _NOT_MEASURED


def _hardware(server: ArticleServer) -> str:
    return server.subject.hardware or "other"


def _grids(servers: Sequence[ArticleServer]) -> ArticleSection | None:
    """Return the rates: a grid of each server, or one table of all where each has one load."""
    loads = [list(dict.fromkeys(point.load for point in server.cells)) for server in servers]
    has_one_each = all(len(own) == 1 for own in loads)
    grids = _one_grid(servers, [own[0] for own in loads]) if has_one_each else _all_grids(servers)
    parts = list(grids)
    doubts = {cell.status for s in servers for cells in s.cells.values() for cell in cells if not cell.is_trusted}
    parts += [f"({MARKS[status]}) {LEGEND[status]}." for status in CellStatus if status in doubts]
    return ArticleSection(title="Requests per second", parts=tuple(parts)) if parts else None


def _one_grid(servers: Sequence[ArticleServer], loads: Sequence[Load]) -> Iterator[ArticleTable | str]:
    """Yield the rates of servers that have one load each: streams down, servers across."""
    streams = ordered({point.concurrency for server in servers for point in server.cells})
    pairs = list(zip(servers, loads, strict=True))
    rows = [(count(each), *(_rate_at(server, load, each) for server, load in pairs)) for each in streams]
    table = _table(("streams", *(server.label for server in servers)), rows, figures=0)
    if len(set(loads)) == 1:
        yield f"{load_text(*loads[0])}."
    if table is not None:
        yield table


def _all_grids(servers: Sequence[ArticleServer]) -> Iterator[ArticleTable | str]:
    for server in servers:
        yield from _grid(server)


def _grid(server: ArticleServer) -> Iterator[ArticleTable | str]:
    """Yield the grid of each length of answers: streams down, prompts across."""
    for output in ordered({point.output_tokens for point in server.cells}):
        points = [point for point in server.cells if point.output_tokens == output]
        contexts = ordered({point.context_tokens for point in points})
        streams = ordered({point.concurrency for point in points})
        rows = [(count(each), *(_rate_at(server, (context, output), each) for context in contexts)) for each in streams]
        table = _table(("streams", *(f"{count(context)} in" for context in contexts)), rows)
        if table is not None:
            answers = "answers of unknown length" if output is None else f"{output:,} tokens out"
            yield f"**{_escape(server.label)}**, {answers}:"
            yield table


def _against_first(servers: Sequence[ArticleServer]) -> ArticleSection | None:
    """Return how much faster each server is than the first at the same load, with an interval over repeats."""
    if len(servers) < _FEWEST:
        return None
    first, *others = servers
    rows = []
    for point in sorted(first.cells, key=lambda each: each.rank):
        texts = [_change(first, other, point) for other in others]
        rows.append((f"{_streams(point)}, {load_text(*point.load)}", *texts))
    table = _table(("load", *(other.label for other in others)), [row for row in rows if any(row[1:])])
    if table is None:
        return None
    has_interval = any("…" in text for row in table.rows for text in row)
    how = " In brackets, 95 % intervals over repeats." if has_interval else " Without repeats there are no intervals."
    text = f"Requests per second against {first.label}.{how}"
    return ArticleSection(title="Per cent against the baseline", parts=(_escape(text), table))


def _streams(point: Point) -> str:
    return "unknown streams" if point.concurrency is None else plural(point.concurrency, "stream")


def _change(first: ArticleServer, other: ArticleServer, point: Point) -> str:
    a, b = _values(first, point, Measure.REQUESTS), _values(other, point, Measure.REQUESTS)
    if not a or not b:
        return ""
    change = exp(fmean(map(log, b)) - fmean(map(log, a))) - 1
    interval = _interval(a, b)
    return f"{change:+.1%}" if interval is None else f"{change:+.1%} ({interval[0]:+.1%} … {interval[1]:+.1%})"


def _interval(a: Sequence[float], b: Sequence[float]) -> tuple[float, float] | None:
    """Return the interval of the ratio less 1, by Welch's test of the logarithms; None without repeats."""
    if len(a) < _FEWEST or len(b) < _FEWEST:
        return None
    x, y = list(map(log, a)), list(map(log, b))
    parts = (variance(x) / len(x), variance(y) / len(y))
    error = sqrt(sum(parts))
    if not error:
        return None
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (len(x) - 1) + parts[1] ** 2 / (len(y) - 1))
    reach = quantile(_SHARE, max(1, int(freedom))) * error
    middle = fmean(y) - fmean(x)
    return exp(middle - reach) - 1, exp(middle + reach) - 1


def _scaling(servers: Sequence[ArticleServer]) -> ArticleSection | None:
    best: dict[tuple[str, str], ArticleServer] = {}
    for server in sorted(servers, key=_value_at_best):
        best[_model(server), server.subject.hardware] = server
    labels = {run.id: server.label for server in servers for run in server.runs}
    lines = []
    for scaling in scalings([server.runs[-1] for server in servers if server in best.values()]):
        text = scaling_text(scaling)
        for id_, label in labels.items():
            text = text.replace(f"({id_} ", f"({label} ").replace(f"-> {id_}", f"-> {label}")
        lines.append(f"- {_escape(text)}")
    return ArticleSection(title="Scaling", parts=("\n".join(dict.fromkeys(lines)),)) if lines else None


def _beside_published(servers: Sequence[ArticleServer], others: Sequence[ArticleServer] = ()) -> ArticleSection | None:
    """Return figures of one's own beside published ones of the same model and slice, whatever the answer length."""
    own = [server for server in servers if not server.runs[-1].driver.is_of_others]
    parts = [
        *_beside_tables(own, {run.id for server in servers for run in server.runs}, is_listed=_has_published(servers))
    ]
    listed = [server for server in servers if server.runs[-1].driver is Driver.GKE_QUICKSTART]
    for other in (*listed, *others):
        best_alike = max((each for each in own if _is_alike(each, other.runs[-1])), key=_value_at_best, default=None)
        parts += [] if best_alike is None else _best_beside(best_alike, other)
    return ArticleSection(title="Beside published figures", parts=tuple(parts)) if parts else None


def _beside_tables(
    own: Sequence[ArticleServer], ids: Collection[str], *, is_listed: bool
) -> Iterator[ArticleTable | str]:
    """Yield own figures beside published tables of the same model and slice; with `is_listed`, beside `ids` alone."""
    for baseline in published().values():
        alike = [server for server in own if _is_alike(server, baseline)]
        if alike and (not is_listed or baseline.id in ids):
            yield from _beside(max(alike, key=_value_at_best), baseline)


def _has_published(servers: Sequence[ArticleServer]) -> bool:
    return any(server.runs[-1].driver is Driver.PUBLISHED for server in servers)


def _value_at_best(server: ArticleServer) -> float:
    point = _best_point(server)
    return 0.0 if point is None else _value(server, point, Measure.REQUESTS) or 0.0


def _is_alike(server: ArticleServer, baseline: Run) -> bool:
    one, other = server.subject, baseline.subject
    return (_model(server), one.accelerator_type) == (other.model_id, other.accelerator_type) and bool(one.chips)


def _beside(server: ArticleServer, baseline: Run) -> Iterator[ArticleTable | str]:
    """Yield a table of both by streams, after the difference in method; nothing without a common number of streams."""
    cells = tuple(own[0] for own in server.cells.values())
    points = tuple(cell.point for cell in cells)
    if {point.concurrency for point in points}.isdisjoint(cell.point.concurrency for cell in baseline.cells):
        return
    run = replace(server.runs[-1], cells=cells, sweep=replace(server.runs[-1].sweep, points=points))
    comparison = compare([run, baseline])
    head = ("streams", "measured", "published", "measured / published")
    rows = []
    for row in comparison.rows:
        one, other = (None if cell is None else cell.requests_per_second for cell in row.cells)
        if one and other:
            rows.append((count(row.point.concurrency), number(one), number(other), f"{one / other:.2f}"))
    table = _table(head, rows)
    if table is not None:
        notes = " ".join(comparison.notes).replace(run.id, server.label).replace(baseline.id, "the published table")
        notes = f"{notes[:1].upper()}{notes[1:]}"
        yield f"Requests per second of {_escape(server.label)} beside a published table. {_escape(plain(notes))}"
        yield table


def _best_beside(server: ArticleServer, other: ArticleServer) -> Iterator[ArticleTable | str]:
    """Yield the best cells of a server and of others' table, whatever their loads, after the difference in method."""
    measures = {"requests/s": Measure.REQUESTS, "output tokens/s": Measure.OUTPUT, "TTFT": Measure.TTFT}
    rows = []
    for each, by in ((server, "measured"), (other, "others")):
        point = _best_point(each)
        if point is not None:
            texts = (_text(each, point, measure) for measure in measures.values())
            rows.append((each.label, by, load_text(*point.load), _streams(point), *texts))
    table = _table(("server", "by", "load", "streams", *measures), rows, figures=4)
    if table is not None:
        method = _escape(plain(other.runs[-1].source))
        yield f"The best of {_escape(server.label)} beside figures of others: {method}. Ours are of unique prompts."
        yield table


def _history(servers: Sequence[ArticleServer]) -> ArticleSection | None:
    """Return the runs beside each other: when, the peak, the least TTFT, how many cells passed, and the start."""
    rows = [_history_row(server.label, run) for server in servers for run in server.runs if run.cells]
    head = ("run", "date", "peak tokens/s", "least TTFT", "pass rate", "start")
    table = _table(head, rows, figures=2)
    if table is None or len(rows) < _FEWEST:
        return None
    return ArticleSection(title="The runs", parts=(table,))


def _history_row(label: str, run: Run) -> tuple[str, ...]:
    figures = [cell.figures for cell in run.cells if cell.figures is not None]
    totals = (_total_tokens(each.input_tokens_per_second, each.output_tokens_per_second) for each in figures)
    firsts = [each.ttft_seconds.middle for each in figures if each.ttft_seconds is not None]
    table = baseline_of(run)
    start = "" if run.start is None else f"{run.start.seconds:.0f} s {_start_kind(run.start)}".rstrip()
    published_at = "published" if table is None or not table.date else f"published, {table.date}"
    return (
        label,
        _date(run) if run.began_at else published_at,
        number(max((each for each in totals if each is not None), default=None)),
        latency(min(firsts)) if firsts else "",
        _pass_rate(run) if table is None else table.points_passed,
        start if table is None else table.start,
    )


def _date(run: Run) -> str:
    """Return the day on which a run was measured, or imported."""
    day = datetime.fromtimestamp(run.began_at, UTC).strftime("%-d %b %Y")
    return f"imported {day}" if run.source else day


def _pass_rate(run: Run) -> str:
    """Return the share of the cells with figures, "" for others' tables, which have no others."""
    if run.driver.is_of_others:
        return ""
    passed = sum(cell.figures is not None and cell.status is not CellStatus.FAILED for cell in run.cells)
    return f"{passed / len(run.cells):.0%} of {len(run.cells)}"


def _starts(servers: Sequence[ArticleServer]) -> ArticleSection | None:
    rows = []
    for server in servers:
        starts = [run.start for run in server.runs if run.start is not None]
        kinds = {kind: [s.seconds for s in starts if _start_kind(s) == kind] for kind in ("cold", "warm", "")}
        rows.append((server.label, *(f"{fmean(own):.0f} s" if own else "" for own in kinds.values())))
    table = _table(("server", "cold", "warm", "cache unknown"), rows)
    about = "From the container's start until the server takes requests; means where there are several. Cold starts"
    text = f"{about} compile, warm ones have most programs from the compile cache."
    return None if table is None else ArticleSection(title="Start times", parts=(text, table))


def _start_kind(start: MeasuredStart) -> str:
    if start.programs is None or start.programs_cached is None or not start.programs:
        return ""
    return "warm" if start.programs_cached >= _WARM * start.programs else "cold"


def _recommendations(servers: Sequence[ArticleServer]) -> ArticleSection | None:
    """Return which server to take for each load, and why. Cells that are not trusted recommend nothing."""
    loads = dict.fromkeys(point.load for server in servers for point in sorted(server.cells, key=lambda p: p.rank))
    lines: list[str] = []
    for load in loads:
        aims = (
            (Measure.REQUESTS, "most requests/s"),
            (Measure.TTFT, "fastest first token"),
            (Measure.TOKENS_PER_USD, "most output tokens per USD"),
        )
        for measure, title in aims:
            line = _recommended(servers, load, measure, title)
            lines += [line] if line else []
    if not lines:
        text = "No cell is trusted, so nothing is recommended: `tpudeploy bench show RUN` says why."
        if any(cell.is_trusted for server in servers for cells in server.cells.values() for cell in cells):
            text = "No load has trusted cells of two servers, so none is recommended over another."
        return ArticleSection(title="Recommendations", parts=(text,))
    return ArticleSection(title="Recommendations", parts=("\n".join(lines),))


def _recommended(servers: Sequence[ArticleServer], load: Load, measure: Measure, title: str) -> str:
    pairs = [
        (value, server, point)
        for server in servers
        for point, cells in server.cells.items()
        if point.load == load and all(cell.is_trusted for cell in cells)
        if (value := _value(server, point, measure)) is not None
    ]
    if len({server.label for _, server, _ in pairs}) < _FEWEST:
        return ""
    pairs.sort(key=lambda pair: pair[0], reverse=not measure.is_better_low)
    as_text = latency if measure.is_better_low else number
    best_of: dict[str, str] = {}
    for value, server, _ in pairs:
        best_of.setdefault(server.label, as_text(value))
    (label, text), *others = best_of.items()
    equals = [_escape(other) for other, other_text in others if other_text == text]
    where = f"{text} at {_streams(pairs[0][2])}"
    if equals:
        where += f", and so has {some(equals)}"
    if len(equals) < len(others):
        next_label, next_text = others[len(equals)]
        where += f"; next is {_escape(next_label)} with {next_text}"
    return f"- {load_text(*load)}, {title}: **{_escape(label)}** ({where})."


def _methods(servers: Sequence[ArticleServer], notes: tuple[str, ...]) -> ArticleSection:
    """Return all that repeats the measurements: what ran, where, with which settings, by which client."""
    lines = [f"- {_escape(plain(note))}" for note in notes]
    lines += [f"- **{_escape(each.label)}**: {_escape(plain('; '.join(_facts(each))))}." for each in servers]
    return ArticleSection(title="Methods", parts=("\n".join(lines),) if lines else ("Nothing was measured.",))


def _facts(server: ArticleServer) -> Iterator[str]:
    subject, run = server.subject, server.runs[-1]
    yield f"{subject.model_id or subject.model}{'@' + subject.model_revision if subject.model_revision else ''}"
    where = ", ".join(filter(None, (subject.hardware, subject.zone, subject.provisioning)))
    if where:
        yield where
    if subject.image:
        yield f"image {subject.image}{'@' + subject.image_digest if subject.image_digest else ''}"
    if subject.engine.get("version"):
        yield f"engine {subject.engine['version']}"
    if subject.profile_fingerprint:
        yield f"profile {subject.profile_fingerprint}, server {subject.spec_fingerprint}"
    if run.source:
        yield run.source
    if run.driver is not Driver.PUBLISHED:
        whole = "" if run.sweep.is_whole_window else " at most"
        window = f", {run.sweep.window_seconds:g} s{whole} a cell after a warm-up"
        yield f"load by {run.driver}{'' if run.source else window}"
        yield f"tpudeploy {run.version}"
        yield f"runs {', '.join(each.id for each in server.runs)}"


def _best_point(server: ArticleServer) -> Point | None:
    def rank(point: Point) -> tuple[bool, float]:
        is_trusted = all(cell.is_trusted for cell in server.cells[point])
        return is_trusted, _value(server, point, Measure.REQUESTS) or 0.0

    return max(server.cells, key=rank, default=None)


def _model(server: ArticleServer) -> str:
    return server.subject.model_id or server.subject.model


def _values(server: ArticleServer, point: Point, measure: Measure) -> list[float]:
    values = (measure.value_in(cell, server.subject) for cell in server.cells.get(point, ()))
    return [value for value in values if value]


def _value(server: ArticleServer, point: Point, measure: Measure) -> float | None:
    values = _values(server, point, measure)
    return fmean(values) if values else None


def _text(server: ArticleServer, point: Point, measure: Measure) -> str:
    """Return a figure, or "" without one; of several repeats, their mean."""
    value = _value(server, point, measure)
    if value is None:
        return ""
    text = latency(value) if measure.is_better_low else number(value)
    doubts = [cell.status for cell in server.cells[point] if not cell.is_trusted]
    return f"{text} ({MARKS[doubts[0]]})" if doubts else text


def _rate_at(server: ArticleServer, load: Load, streams: int | None) -> str:
    point = Point(concurrency=streams, context_tokens=load[0], output_tokens=load[1])
    return _text(server, point, Measure.REQUESTS) if point in server.cells else ""


def _total_tokens(input_rate: float | None, output_rate: float | None) -> float | None:
    rates = [rate for rate in (input_rate, output_rate) if rate is not None]
    return sum(rates) if rates else None


def _means(servers: Sequence[ArticleServer]) -> str:
    means = [server.label for server in servers if not server.has_medians]
    repeats = any(len(cells) > 1 for server in servers for cells in server.cells.values())
    text = "TTFT and TPOT are medians over requests"
    if means:
        text += f", but means for {_escape(', '.join(means))}, whose source has no medians"
    return f"{text}{'; of repeats, the mean is printed' if repeats else ''}."


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], figures: int = 1) -> ArticleTable | None:
    """Return a table without the columns that have no text, or None where no figure is left."""
    columns = [n for n in range(len(head)) if n < figures or any(row[n] for row in rows)]
    if not rows or not any(row[n] for row in rows for n in columns if n >= figures):
        return None
    body = tuple(tuple(row[n] or "-" for n in columns) for row in rows)
    return ArticleTable(head=tuple(head[n] for n in columns), rows=body, figures=figures)


def _escape(text: str) -> str:
    return text.replace("*", "\\*")
