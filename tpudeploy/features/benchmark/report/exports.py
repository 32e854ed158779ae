"""The figures of a run for other tools: CSV, and a Vega-Lite chart of the same rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence

from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.benchmark.run import Cell, Run, Spread
from tpudeploy.features.benchmark.view import marked_id

HEAD = (
    "streams", "context", "output", "status", "requests/s", "goodput/s", "input tok/s", "output tok/s",
    "TTFT p50 s", "TTFT p95 s", "TTFT p99 s", "ITL p50 s", "TPOT p50 s", "E2E p50 s", "requests", "failed", "emulated",
    "tokens per USD", "run", "model", "slice",
)  # fmt: skip
_CURVE = {"x": "requests/s", "y": "TTFT p50 s"}
_SIZES = 4  # columns before the figures
_AFTER = 5  # columns after them


def rows(run: Run) -> Iterator[tuple[str, ...]]:
    """Yield a row for each cell, in the order of the sweep; "" for an unknown figure.

    A column says whether the emulator measured it, so that a row that is copied elsewhere still does.
    """
    for cell in sorted(run.cells, key=lambda cell: cell.point.rank):
        point = cell.point
        sizes = (point.concurrency, point.context_tokens, point.output_tokens)
        emulated = "yes" if run.subject.is_emulated else "no"
        subject = run.subject
        of_run = (
            emulated,
            _text(Measure.TOKENS_PER_USD.value_in(cell, subject)),
            run.id,
            subject.model_id or subject.model,
            subject.accelerator_type,
        )
        yield (*("" if size is None else str(size) for size in sizes), str(cell.status), *_figures(cell), *of_run)


def _figures(cell: Cell) -> Iterator[str]:
    figures = cell.figures
    if figures is None:
        yield from [""] * (len(HEAD) - _SIZES - _AFTER)
        return
    yield _text(figures.requests_per_second)
    yield _text(figures.goodput_requests_per_second)
    yield _text(figures.input_tokens_per_second)
    yield _text(figures.output_tokens_per_second)
    yield from (_quantile(figures.ttft_seconds, name) for name in ("p50", "p95", "p99"))
    yield from (_quantile(spread, "p50") for spread in (figures.itl_seconds, figures.tpot_seconds, figures.e2e_seconds))
    yield "" if figures.requests is None else str(figures.requests)
    yield "" if figures.requests_failed is None else str(figures.requests_failed)


def to_csv(runs: Sequence[Run]) -> str:
    """Return CSV whose head has names and units."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([HEAD, *(row for run in runs for row in rows(run))])
    return out.getvalue()


def to_vega_lite(runs: Sequence[Run]) -> str:
    """Return a chart of throughput against the time to the first token, a line for each run and load, with its data."""
    table = (row for run in runs for row in rows(run))
    values = [{name: _value(text) for name, text in zip(HEAD, row, strict=True)} for row in table]
    encoding = {axis: {"field": field, "type": "quantitative"} for axis, field in _CURVE.items()}
    chart = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": ", ".join(f"Run {marked_id(run)}" for run in runs),
        "data": {"values": values},
        "mark": {"type": "line", "point": True},
        "encoding": {
            **encoding,
            "color": {"field": "context", "type": "nominal"},
            "strokeDash": {"field": "output", "type": "nominal"},
            **({"shape": {"field": "run", "type": "nominal"}} if len(runs) > 1 else {}),
            "order": {"field": "streams", "type": "quantitative"},
            "tooltip": [{"field": name} for name in HEAD],
        },
    }
    return json.dumps(chart, indent=1, ensure_ascii=False) + "\n"


def _value(text: str) -> str | float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return text


def _text(figure: float | None) -> str:
    return "" if figure is None else f"{figure:.6g}"


def _quantile(spread: Spread | None, name: str) -> str:
    return "" if spread is None else _text(getattr(spread, name))
