"""A benchmark as it goes and as it came out: a row a cell, a heat table a length of answer, and what to make of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log

from tpudeploy.domain.benchmark import Cell, CellStatus, Ended, Run, Slo, Spread
from tpudeploy.domain.load import Point
from tpudeploy.views import words
from tpudeploy.views.paint import Paint

# Beside a figure that is not simply so.
MARKS: Mapping[CellStatus, str] = {
    CellStatus.SKIPPED_LEN: "-",
    CellStatus.FAILED: "F",
    CellStatus.COPY_SUSPECT: "=",
    CellStatus.CACHE_SUSPECT: "P",
    CellStatus.ROOFLINE_SUSPECT: "R",
    CellStatus.CLIENT_BOUND: "C",
    CellStatus.FEW_STREAMS: "S",
    CellStatus.OVERSUBSCRIBED: "Q",
    CellStatus.OK: "",
}
LEGEND: Mapping[CellStatus, str] = {
    CellStatus.SKIPPED_LEN: "longer than the engine takes: not asked",
    CellStatus.FAILED: "requests failed",
    CellStatus.COPY_SUSPECT: "the same figure stands under another subject",
    CellStatus.CACHE_SUSPECT: "prompts came from the prefix cache",
    CellStatus.ROOFLINE_SUSPECT: "faster than the chips can be",
    CellStatus.CLIENT_BOUND: "the client was the limit",
    CellStatus.FEW_STREAMS: "fewer streams ran than were asked for",
    CellStatus.OVERSUBSCRIBED: "requests queued: more than run at once",
}
_SHADES = " ░▒▓█"
_HEAD = "   cell  streams  context  output     req/s  TTFT p50     p99   ITL p50  out tok/s  status"
EMULATOR = "emulator"  # beside the id of a run that was measured there, wherever its figures stand
EMULATED = "On the emulator: no figure here says anything about a TPU."
_NOTHING = "."
_MOST_WORDS = 160  # characters of a server's error beside its cell; the run has all of it
_MARGIN = 10  # columns: how many streams, before the figures
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


def head(paint: Paint) -> str:
    """Above the rows."""
    return paint.bold(_HEAD)


def row(run: Run, cell: Cell, paint: Paint) -> str:
    """One cell that has ended, and why it is not believed where it is not."""
    of, point = cell.figures, cell.point
    numbers = ("", "", "", "", "")
    if of is not None:
        ttft, itl = of.ttft_seconds, of.itl_seconds
        numbers = (
            number(of.requests_per_second),
            _seconds(ttft, "p50"),
            _seconds(ttft, "p99"),
            _seconds(itl, "p50"),
            number(of.output_tokens_per_second),
        )
    rate, p50, p99, gap, tokens = numbers
    count = f"{len(run.cells)}/{len(run.sweep.points)}"
    why = "".join(f": {text}" for text in (*cell.reasons[:1], _commonest_error(cell)) if text)
    return (
        f"{count:>7}  {point.concurrency:>7,}  {point.context_tokens:>7,}  {point.output_tokens:>6,}  {rate:>8}"
        f"  {p50:>8}  {p99:>6}  {gap:>8}  {tokens:>9}  {_coloured(cell.status, paint)}{words.plain(why)}"
    )


def _commonest_error(cell: Cell) -> str:
    """Return what the server said most often while it failed, on one line; "" where the cell did not fail."""
    if cell.status is not CellStatus.FAILED or not cell.errors:
        return ""
    text = " ".join(max(cell.errors, key=lambda each: cell.errors[each]).split())
    return text if len(text) <= _MOST_WORDS else f"{text[: _MOST_WORDS - 1]}…"


def under_way(run: Run, point: Point) -> str:
    """The cell that is being measured, where its row will stand."""
    count = f"{len(run.cells) + 1}/{len(run.sweep.points)}"
    return (
        f"{count:>7}  {point.concurrency:>7,}  {point.context_tokens:>7,}  {point.output_tokens:>6,}  measuring"
        f"{f', {words.duration(run.seconds)} so far' if run.seconds else ''} …"
    )


def result(run: Run, paint: Paint, *, kept: str, width: int | None) -> str:
    """All of a run. `kept` is the file it stands in; `width` as in `views.zones`: what is wider is told in parts."""
    note = paint.yellow(EMULATED) if run.subject.is_emulated else ""
    blocks = [_title(run, paint), note, *_tables(run, paint, width), _summary(run, paint)]
    return "\n\n".join(block for block in (*blocks, f"Run {run.id}, kept in {kept}") if block)


def listed(runs: Sequence[Run], paint: Paint) -> str:
    """A line a run."""
    if not runs:
        return "No run is kept here. `tpudeploy bench PROFILE` measures one."
    rows: list[tuple[str, ...]] = [("run", "of", "slice", "driver", "cells", "believed", "cost", "")]
    rows += [_entry(run) for run in runs]
    widths = [max(len(line[i]) for line in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in rows]
    return "\n".join([paint.bold(lines[0]), *lines[1:]])


def _entry(run: Run) -> tuple[str, ...]:
    of, done = run.subject, f"{len(run.cells)}/{len(run.sweep.points)}"
    believed = sum(cell.status in _BELIEVED and cell.figures is not None for cell in run.cells)
    cost = "" if run.usd is None else f"${run.usd:.2f}"
    ended = "" if run.ended is Ended.COMPLETE else _ENDS[run.ended].lower()
    ended = ", ".join(filter(None, (EMULATOR if of.is_emulated else "", ended)))
    if run.turn is not None:
        ended = ", ".join(filter(None, (f"{run.turn.side} of {run.turn.experiment}", ended)))
    who = words.plain(of.replica or of.deployment or of.model)
    return run.id, who, of.accelerator_type or "?", str(run.driver), done, str(believed), cost, ended


_BELIEVED = {CellStatus.OK, CellStatus.OVERSUBSCRIBED}


def _title(run: Run, paint: Paint) -> str:
    of = run.subject
    where = ", ".join(filter(None, (of.accelerator_type, of.zone, of.provisioning)))
    engine = f"vLLM {of.engine['version']}" if of.engine.get("version") else ""
    told = ", ".join(filter(None, (words.plain(of.model_id or of.model), where, words.plain(engine))))
    return f"{paint.bold(words.plain(of.replica or of.deployment or of.url or run.source))}  {told}"


def _tables(run: Run, paint: Paint, width: int | None) -> Iterator[str]:
    outputs = dict.fromkeys(point.output_tokens for point in run.sweep.points)
    for output in outputs:
        cells = {
            (cell.point.concurrency, cell.point.context_tokens): cell
            for cell in run.cells
            if cell.point.output_tokens == output
        }
        yield "\n".join(_table(run, output, cells, paint, width))


def _table(
    run: Run, output: int, cells: Mapping[tuple[int, int], Cell], paint: Paint, columns: int | None
) -> Iterator[str]:
    """Streams down, context across."""
    points = [point for point in run.sweep.points if point.output_tokens == output]
    streams, contexts = (sorted({getattr(p, name) for p in points}) for name in ("concurrency", "context_tokens"))
    slo = run.sweep.slo
    rates = {at: rate for at, cell in cells.items() if (rate := _rate(cell, slo)) is not None}
    above = [rate for rate in rates.values() if rate > 0]
    ends = (min(above), max(above)) if above else (1.0, 1.0)
    texts = {at: f"{number(rates.get(at))}{MARKS[cell.status]}" for at, cell in cells.items()}
    width = max([8, *(len(f"{context:,}") + 1 for context in contexts), *map(len, texts.values())])
    tokens = f"{output:,} token{'s' if output > 1 else ''} out" if output else "outputs not told"
    what = "requests/s" if slo == Slo() else f"requests/s within {_objective(slo)}"
    yield paint.bold(f"{what}, {tokens}") + paint.dim("  (streams down, context across)")
    whole = {
        (count, context): _heat(
            cells.get((count, context)),
            texts.get((count, context), _NOTHING).rjust(width),
            _shade(rates.get((count, context)), ends),
            paint,
        )
        for count in streams
        for context in contexts
    }
    most = len(contexts) if columns is None else max((columns - _MARGIN) // (width + 2), 1)
    for begin in range(0, len(contexts), most):
        yield from _part(whole, streams, contexts[begin : begin + most], width)


def _part(
    whole: Mapping[tuple[int, int], str], streams: Sequence[int], contexts: Sequence[int], width: int
) -> Iterator[str]:
    yield " " * _MARGIN + " ".join(f"{context:,}".rjust(width + 1) for context in contexts)
    for count in streams:
        yield f"{count:>{_MARGIN - 2},}  " + " ".join(whole[count, context] for context in contexts)


def _heat(cell: Cell | None, text: str, shade: str, paint: Paint) -> str:
    if cell is None or cell.status is CellStatus.SKIPPED_LEN:
        return shade + paint.dim(text)
    return shade + (text if cell.status in _BELIEVED else paint.yellow(text))


def _shade(rate: float | None, ends: tuple[float, float]) -> str:
    """By the logarithm: a sweep doubles from cell to cell."""
    least, most = ends
    share = log(rate / least) / log(most / least) if rate and most > least else 0.0
    return _SHADES[round(share * (len(_SHADES) - 1))]


def _rate(cell: Cell, slo: Slo) -> float | None:
    """With an objective, of the requests that kept it."""
    of = cell.figures
    if of is None:
        return None
    return of.requests_per_second if slo == Slo() else of.goodput_requests_per_second


def _objective(of: Slo) -> str:
    parts = {"TTFT": of.ttft_seconds, "TPOT": of.tpot_seconds}
    return ", ".join(f"{name} {seconds:g} s" for name, seconds in parts.items() if seconds is not None)


def _summary(run: Run, paint: Paint) -> str:
    counts = Counter(cell.status for cell in run.cells)
    told = ", ".join(f"{counts[status]} {status}" for status in reversed(CellStatus) if counts[status])
    cost = "" if run.usd is None else f", ${run.usd:.2f} of the slice"
    took = f" in {words.duration(run.seconds)}{cost}" if run.seconds else ""
    lines = [f"{_ENDS[run.ended]}: {len(run.cells)} of {len(run.sweep.points)} cells{took}: {told or 'none'}."]
    lines += [paint.dim(f"  {MARKS[status]}  {text}") for status, text in LEGEND.items() if counts[status]]
    lines += list(_why(run.cells))
    if run.remaining_points and run.ended is not Ended.COMPLETE:
        lines.append(f"{len(run.remaining_points)} cells are left: go on with --resume {run.id}.")
    return "\n".join(lines)


def _why(cells: Iterable[Cell]) -> Iterator[str]:
    """What failed, in the server's own words: the commonest."""
    errors: Counter[str] = Counter()
    for cell in cells:
        errors.update(cell.errors)
    for text, count in errors.most_common(3):
        yield f"  {count:,} request{'s' if count > 1 else ''}: {words.plain(text)}"


def _coloured(status: CellStatus, paint: Paint) -> str:
    match status:
        case CellStatus.OK:
            return paint.green(status)
        case CellStatus.FAILED:
            return paint.red(status)
        case CellStatus.SKIPPED_LEN:
            return paint.dim(status)
        case _:
            return paint.yellow(status)


def _seconds(of: Spread | None, which: str) -> str:
    value = None if of is None else getattr(of, which)
    return "" if value is None else seconds(value)


def seconds(value: float) -> str:
    """Milliseconds where they are few."""
    return f"{value * 1000:.1f}ms" if value < 0.1 else f"{value:.3f}s"  # noqa: PLR2004 - three digits either way


def number(of: float | None) -> str:
    """Three digits at least."""
    if of is None:
        return ""
    return f"{of:,.0f}" if of >= 100 else f"{of:.3g}"  # noqa: PLR2004 - three digits
