"""The figures for other people's tools: CSV, and a Vega-Lite chart of the same rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

from tpudeploy.domain.benchmark import Cell, Run, Spread
from tpudeploy.views.bench import marked_id

HEAD = (
    "streams", "context", "output", "status", "requests/s", "goodput/s", "input tok/s", "output tok/s",
    "TTFT p50 s", "TTFT p95 s", "TTFT p99 s", "ITL p50 s", "TPOT p50 s", "E2E p50 s", "requests", "failed", "emulated",
)  # fmt: skip
_CURVE = {"x": "requests/s", "y": "TTFT p50 s"}


def rows(run: Run) -> Iterator[tuple[str, ...]]:
    """Yield a row for each cell, in the order of the sweep; "" for an unknown figure.

    The last column says whether the emulator measured it, so that a row that is copied elsewhere still does.
    """
    for cell in sorted(run.cells, key=lambda c: (c.point.output_tokens, c.point.context_tokens, c.point.concurrency)):
        yield (*_row(cell), "yes" if run.subject.is_emulated else "no")


def _row(cell: Cell) -> Iterator[str]:
    point, of = cell.point, cell.figures
    yield from (str(point.concurrency), str(point.context_tokens), str(point.output_tokens), str(cell.status))
    if of is None:
        yield from [""] * (len(HEAD) - 5)
        return
    rates = (
        of.requests_per_second,
        of.goodput_requests_per_second,
        of.input_tokens_per_second,
        of.output_tokens_per_second,
    )
    yield from map(_figure, rates)
    yield from (_quantile(of.ttft_seconds, which) for which in ("p50", "p95", "p99"))
    yield from (_quantile(each, "p50") for each in (of.itl_seconds, of.tpot_seconds, of.e2e_seconds))
    yield from ("" if of.requests is None else str(of.requests), str(of.requests_failed))


def to_csv(run: Run) -> str:
    """With a head of names and units."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([HEAD, *rows(run)])
    return out.getvalue()


def to_vega_lite(run: Run) -> str:
    """Throughput against the time to the first token, a line a load; the data stand in it."""
    values = [{name: _value(text) for name, text in zip(HEAD, row, strict=True)} for row in rows(run)]
    encoding = {axis: {"field": field, "type": "quantitative"} for axis, field in _CURVE.items()}
    chart = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": f"Run {marked_id(run)}",
        "data": {"values": values},
        "mark": {"type": "line", "point": True},
        "encoding": {
            **encoding,
            "color": {"field": "context", "type": "nominal"},
            "strokeDash": {"field": "output", "type": "nominal"},
            "order": {"field": "streams", "type": "quantitative"},
            "tooltip": [{"field": name} for name in HEAD],
        },
    }
    return json.dumps(chart, indent=1, ensure_ascii=False) + "\n"


def _value(of: str) -> str | float | None:
    try:
        return float(of) if of else None
    except ValueError:
        return of


def _figure(of: float | None) -> str:
    return "" if of is None else f"{of:.6g}"


def _quantile(of: Spread | None, which: str) -> str:
    return "" if of is None else _figure(getattr(of, which))
