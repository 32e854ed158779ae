"""Format a benchmark while it runs and afterwards: a row per cell, a heat table per answer length, and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import log

from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import Cell, CellStatus, Ended, Run, Slo, Spread
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import EMULATED, count, latency, number

Place = tuple[int | None, int | None]  # streams, tokens of a prompt
# Beside a figure that has a caveat: the mark, and its explanation.
MARKS: Mapping[CellStatus, str] = {
    CellStatus.SKIPPED_LEN: "-",
    CellStatus.FAILED: "F",
    CellStatus.COPY_SUSPECT: "=",
    CellStatus.CACHE_SUSPECT: "P",
    CellStatus.ROOFLINE_SUSPECT: "R",
    CellStatus.CONTRADICTORY: "X",
    CellStatus.CLIENT_BOUND: "C",
    CellStatus.FEW_STREAMS: "S",
    CellStatus.OVERSUBSCRIBED: "Q",
    CellStatus.OK: "",
}
LEGEND: Mapping[CellStatus, str] = {
    CellStatus.SKIPPED_LEN: "longer than the engine accepts: not measured",
    CellStatus.FAILED: "requests failed",
    CellStatus.COPY_SUSPECT: "another subject has the same figure",
    CellStatus.CACHE_SUSPECT: "prompts came from the prefix cache",
    CellStatus.ROOFLINE_SUSPECT: "faster than the chips can be",
    CellStatus.CONTRADICTORY: "figures that cannot all be true",
    CellStatus.CLIENT_BOUND: "the client was the limit",
    CellStatus.FEW_STREAMS: "fewer streams ran than were requested",
    CellStatus.OVERSUBSCRIBED: "requests queued: more than run at once",
}
EMULATOR = "emulator"  # beside the id of a run that was measured there, wherever its figures are shown
_STYLES = {CellStatus.OK: "green", CellStatus.FAILED: "red", CellStatus.SKIPPED_LEN: "dim"}  # others: yellow
_SHADES = " ░▒▓█"
# The columns of a cell's figures, with their widths; its status follows them.
_COLUMNS = (
    ("cell", 7),
    ("streams", 7),
    ("context", 7),
    ("output", 6),
    ("req/s", 7),
    ("TTFT p50", 8),
    ("p99", 6),
    ("ITL p50", 8),
    ("out tok/s", 9),
)
_OPTIONAL = (7, 8, 6)  # the first columns for which a narrow terminal has no room
_STATUS = len("status")
_OPTIONAL_OF_RUNS = (3, 6, 5, 4)  # of the list of runs: driver, cost, believed, cells
_NOTHING = "."
_MOST_WORDS = 160  # characters of a server's error beside its cell; the run has all of it
_MOST_REASONS = 3  # of contradictory cells below the summary; the run has all of them
_MARGIN = 10  # columns for the number of streams, before the figures
_ENDS: Mapping[Ended, str] = {
    Ended.NOT_YET: "Under way, or killed",
    Ended.COMPLETE: "Complete",
    Ended.DURATION: "Ended by --duration",
    Ended.COST: "Ended by --max-cost",
    Ended.INTERRUPTED: "Interrupted",
}


def marked_id(run: Run) -> str:
    """Return the id of a run, with the mark of the emulator where it was measured there."""
    return f"{run.id} ({EMULATOR})" if run.subject.is_emulated else run.id


def row_header(paint: Paint, *, width: int | None = None) -> str:
    """Return the titles of the columns for which a terminal of `width` columns has room."""
    return paint.bold(_joined([f"{title:>{cells}}" for title, cells in _COLUMNS], width) + "  status")


def row(run: Run, cell: Cell, paint: Paint, *, width: int | None = None) -> str:
    """Return the row of a cell that ended, with the reason where its figures are not trusted, below it if need be."""
    figures = cell.figures
    texts = ["", "", "", "", ""]
    if figures is not None:
        texts = [
            number(figures.requests_per_second),
            _quantile(figures.ttft_seconds, "p50"),
            _quantile(figures.ttft_seconds, "p99"),
            _quantile(figures.itl_seconds, "p50"),
            number(figures.output_tokens_per_second),
        ]
    status = paint.styled(_STYLES.get(cell.status, "yellow"), cell.status)
    reasons = "".join(f": {text}" for text in (*cell.reasons[:1], _commonest_error(cell)) if text)
    cells = [*_row_start(run, len(run.cells), cell.point), *texts]
    padded = [f"{text:>{column[1]}}" for text, column in zip(cells, _COLUMNS, strict=True)]
    line = f"{_joined(padded, width)}  {status}{words.plain(reasons)}"
    return "\n".join(words.wrapped(line, width, indent=" " * (_COLUMNS[0][1] + 2)))


def unfinished_row(run: Run, point: Point) -> str:
    """Return the row of the cell that is being measured."""
    elapsed = f", {words.duration(run.seconds)} so far" if run.seconds else ""
    start = _row_start(run, len(run.cells) + 1, point)
    padded = [f"{text:>{cells}}" for text, (_, cells) in zip(start, _COLUMNS, strict=False)]
    return f"{'  '.join(padded)}  measuring{elapsed} …"


def _row_start(run: Run, ordinal: int, point: Point) -> tuple[str, ...]:
    sizes = map(count, (point.concurrency, point.context_tokens, point.output_tokens))
    return (f"{ordinal}/{len(run.sweep.points)}", *sizes)


def _joined(cells: Sequence[str], width: int | None) -> str:
    """Return the cells of a row without those for which a terminal has no room."""
    columns = list(range(len(_COLUMNS)))
    for column in _OPTIONAL:
        if width is None or sum(_COLUMNS[n][1] + 2 for n in columns) + _STATUS <= width:
            break
        columns.remove(column)
    return "  ".join(cells[n] for n in columns)


def _commonest_error(cell: Cell) -> str:
    """Return the most frequent error of a cell that failed, on one line, or ""."""
    if cell.status is not CellStatus.FAILED or not cell.errors:
        return ""
    text = " ".join(max(cell.errors, key=lambda error: cell.errors[error]).split())
    return text if len(text) <= _MOST_WORDS else f"{text[: _MOST_WORDS - 1]}…"


def result(run: Run, paint: Paint, *, path: str, width: int | None) -> str:
    """Return a whole run. `path` is its file; tables wider than `width` are printed in parts (None: never)."""
    note = paint.yellow(EMULATED) if run.subject.is_emulated else ""
    outputs = dict.fromkeys(point.output_tokens for point in run.sweep.points)
    tables = ["\n".join(_table(run, output, paint, width)) for output in outputs]
    blocks = [_title(run, paint), note, *tables, _summary(run, paint), f"Run {run.id}, kept in {path}"]
    return "\n\n".join(block for block in blocks if block)


def listed(runs: Sequence[Run], paint: Paint, *, width: int | None = None) -> str:
    """Return one line for each run, with fewer columns on a narrow terminal."""
    if not runs:
        return "This folder has no runs. `tpudeploy bench PROFILE` measures one."
    rows: list[tuple[str, ...]] = [("run", "of", "slice", "driver", "cells", "believed", "cost", "")]
    rows += [_entry(run) for run in runs]
    head, *lines = words.aligned(rows, room=width, optional=_OPTIONAL_OF_RUNS)
    return "\n".join([paint.bold(head), *lines])


def _entry(run: Run) -> tuple[str, ...]:
    subject = run.subject
    trusted = sum(cell.is_trusted and cell.figures is not None for cell in run.cells)
    notes = (
        "" if run.turn is None else f"{run.turn.side} of {run.turn.experiment}",
        EMULATOR if subject.is_emulated else "",
        "" if run.ended is Ended.COMPLETE else _ENDS[run.ended].lower(),
    )
    return (
        run.id,
        words.plain(subject.replica or subject.deployment or subject.model),
        subject.hardware or "?",
        str(run.driver),
        f"{len(run.cells)}/{len(run.sweep.points)}",
        str(trusted),
        "" if run.usd is None else f"${run.usd:.2f}",
        ", ".join(filter(None, notes)),
    )


def _title(run: Run, paint: Paint) -> str:
    subject = run.subject
    router = f"through the router at {subject.url}" if subject.replicas else ""
    where = ", ".join(filter(None, (subject.hardware, router, subject.zone, subject.provisioning)))
    version = subject.engine.get("version")
    engine = words.plain(f"vLLM {version}") if version else ""
    facts = ", ".join(filter(None, (words.plain(subject.model_id or subject.model), where, engine)))
    return f"{paint.bold(words.plain(subject.replica or subject.deployment or subject.url or run.source))}  {facts}"


def _table(run: Run, output: int | None, paint: Paint, columns: int | None) -> Iterator[str]:
    """Yield the heat table of one answer length: a row per number of streams, a column per prompt length."""
    cells = {
        (cell.point.concurrency, cell.point.context_tokens): cell
        for cell in run.cells
        if cell.point.output_tokens == output
    }
    streams, contexts = _axes(point for point in run.sweep.points if point.output_tokens == output)
    slo = run.sweep.slo
    rates = {place: _rate(cell, slo) for place, cell in cells.items()}
    shares = heat_shares(rates)
    texts = {place: f"{number(rates[place])}{MARKS[cell.status]}" for place, cell in cells.items()}
    width = max([8, *(len(count(context)) + 1 for context in contexts), *map(len, texts.values())])
    measure = "requests/s" if slo == Slo() else f"requests/s within {_objective(slo)}"
    yield paint.bold(f"{measure}, {output_text(output)}") + paint.dim("  (streams down, context across)")
    most = len(contexts) if columns is None else max((columns - _MARGIN) // (width + 2), 1)
    for begin in range(0, len(contexts), most):
        part = contexts[begin : begin + most]
        yield " " * _MARGIN + " ".join(count(context).rjust(width + 1) for context in part)
        for number_of_streams in streams:
            row_cells = []
            for context in part:
                place = (number_of_streams, context)
                text = texts.get(place, _NOTHING).rjust(width)
                row_cells.append(_heat(cells.get(place), text, shares.get(place, 0.0), paint))
            yield f"{count(number_of_streams):>{_MARGIN - 2}}  " + " ".join(row_cells)


def _axes(points: Iterable[Point]) -> tuple[list[int | None], list[int | None]]:
    """Return the numbers of streams and the prompt lengths, each from the smallest up."""
    pairs = {(point.concurrency, point.context_tokens) for point in points}
    return ordered({streams for streams, _ in pairs}), ordered({context for _, context in pairs})


def _heat(cell: Cell | None, text: str, share: float, paint: Paint) -> str:
    shade = _SHADES[round(share * (len(_SHADES) - 1))]
    if cell is None or cell.status is CellStatus.SKIPPED_LEN:
        return shade + paint.dim(text)
    return shade + (text if cell.is_trusted else paint.yellow(text))


def _rate(cell: Cell, slo: Slo) -> float | None:
    """Return the requests per second: with an objective, only those that met it."""
    if cell.figures is None or slo == Slo():
        return cell.requests_per_second
    return cell.figures.goodput_requests_per_second


def _objective(slo: Slo) -> str:
    parts = {"TTFT": slo.ttft_seconds, "TPOT": slo.tpot_seconds}
    return ", ".join(f"{name} {seconds:g} s" for name, seconds in parts.items() if seconds is not None)


def _summary(run: Run, paint: Paint) -> str:
    counts = Counter(cell.status for cell in run.cells)
    statuses = ", ".join(f"{counts[status]} {status}" for status in reversed(CellStatus) if counts[status])
    cost = "" if run.usd is None else f", ${run.usd:.2f} of the slice"
    time = f" in {words.duration(run.seconds)}{cost}" if run.seconds else ""
    lines = [f"{_ENDS[run.ended]}: {len(run.cells)} of {len(run.sweep.points)} cells{time}: {statuses or 'none'}."]
    lines += [paint.dim(f"  {MARKS[status]}  {text}") for status, text in LEGEND.items() if counts[status]]
    lines += [f"     {words.plain(reason)}" for reason in _contradictions(run)]
    if run.subject.replicas:
        lines.append(f"  {answers_text(run)}")
    errors: Counter[str] = Counter()
    for cell in run.cells:
        errors.update(cell.errors)
    for text, times in errors.most_common(3):
        lines.append(f"  {words.plural(times, 'request')}: {words.plain(text)}")
    if run.remaining_points and run.ended is not Ended.COMPLETE:
        lines.append(f"{len(run.remaining_points)} cells are left: --resume {run.id} continues.")
    return "\n".join(lines)


def _contradictions(run: Run) -> Iterator[str]:
    """Return the first reasons of contradictory cells."""
    cells = (cell for cell in run.cells if cell.status is CellStatus.CONTRADICTORY)
    return islice(dict.fromkeys(reason for cell in cells for reason in cell.reasons), _MOST_REASONS)


def answers_text(run: Run) -> str:
    """Return which replicas behind a router answered how many of the requests of a run."""
    counts: Counter[str] = Counter()
    for cell in run.cells:
        counts.update({} if cell.evidence is None else cell.evidence.answers)
    texts = [
        f"{address} {counts[address]:,}" if address in counts else f"{address} unknown"
        for address in run.subject.replicas
    ]
    return f"Requests answered by each replica, with those of the warm-up: {', '.join(texts)}."


def _quantile(spread: Spread | None, name: str) -> str:
    value = None if spread is None else getattr(spread, name)
    return "" if value is None else latency(value)


def heat_shares(rates: Mapping[Place, float | None]) -> dict[Place, float]:
    """Return the strength of each cell's shade, 0 to 1, by the logarithm, because a sweep doubles from cell to cell."""
    positive = {place: rate for place, rate in rates.items() if rate}
    if not positive:
        return {}
    least, most = min(positive.values()), max(positive.values())
    span = log(most / least)
    return {place: log(rate / least) / span if span else 0.0 for place, rate in positive.items()}


def ordered(sizes: set[int | None]) -> list[int | None]:
    """Return sizes from the smallest up; an unknown one comes first."""
    return sorted(sizes, key=lambda size: size or 0)


def output_text(output: int | None) -> str:
    if output is None:
        return "answers of unknown length"
    return f"{words.plural(output, 'token')} out"


def load_text(context: int | None, output: int | None) -> str:
    """Return the lengths of prompts and answers as text: `1,024 tokens in, 128 out`."""
    prompt = "prompts of unknown length" if context is None else f"{context:,} tokens in"
    return f"{prompt}, {'answers of unknown length' if output is None else f'{output:,} out'}"
