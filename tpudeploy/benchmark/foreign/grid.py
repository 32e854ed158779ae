"""A grid as people write it down: CSV with concurrency, context_len, throughput_req_sec, avg_latency_s, status.

It holds neither the number of requests nor the length of their answers: both are unknown.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence

from tpudeploy.benchmark.foreign.reading import Result, spread
from tpudeploy.domain.benchmark import Evidence, Figures
from tpudeploy.domain.load import Point

_COLUMNS = ("concurrency", "context_len", "throughput_req_sec", "avg_latency_s")
_LEFT_OUT = "skipped"
_WELL = {"success", "ok", ""}


def read(text: str) -> Sequence[Result]:
    rows = list(csv.DictReader(text.splitlines()))
    missing = [name for name in _COLUMNS if not rows or name not in rows[0]]
    if missing:
        raise ValueError(f"it is neither JSON nor a CSV grid: it has no column `{missing[0]}`")
    return tuple(_cell(row, number) for number, row in enumerate(rows, start=2))


def _cell(row: Mapping[str, str], line: int) -> Result:
    try:
        streams, context = int(row["concurrency"]), int(row["context_len"])
        rate, latency = float(row["throughput_req_sec"]), float(row["avg_latency_s"])
    except (ValueError, TypeError) as cause:
        raise ValueError(f"line {line}: {cause}") from cause
    point = Point(concurrency=streams, context_tokens=context, output_tokens=None)
    status = str(row.get("status") or "")
    told = f"the file says `{status}`"
    if status.startswith(_LEFT_OUT):
        return Result(point=point, figures=None, why=told)
    if status not in _WELL or rate <= 0:
        return Result(point=point, figures=Figures(requests=0, requests_failed=1), errors={told: 1})
    figures = Figures(
        requests=None,
        requests_failed=0,
        requests_per_second=rate,
        input_tokens_per_second=rate * context,
        prompt_tokens_mean=context,
        e2e_seconds=spread({"mean": latency}, count=None, scale=1.0),
    )
    return Result(point=point, figures=figures, evidence=Evidence(streams_by_latency=rate * latency))
