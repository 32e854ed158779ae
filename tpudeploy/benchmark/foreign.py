"""Results of other load clients. A file's content shows which client wrote it; FORMATS has a row for each.

Numbers are finite or unknown, and times are in seconds.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import isfinite
from typing import Any

from tpudeploy.domain.benchmark import Driver, Evidence, Figures, Spread
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.load import Point

Tree = Mapping[str, Any]
_MS = 1e-3
_UNITS = {"sec": 1.0, "s": 1.0, "ms": _MS, "us": 1e-6, "ns": 1e-9}
_GRID_COLUMNS = ("concurrency", "context_len", "throughput_req_sec", "avg_latency_s")
_GRID_OK = {"success", "ok", ""}
_GRID_SKIPPED = "skipped"  # the beginning of several statuses
# The names of a spread's fields, as each client writes them.
_VLLM_NAMES = {"mean": "mean", "deviation": "std", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}
_AIPERF_NAMES = {"mean": "avg", "deviation": "std", "most": "max"} | {p: p for p in ("p50", "p90", "p95", "p99")}
_GUIDELLM_NAMES = {"mean": "mean", "deviation": "std_dev", "p50": "median", "most": "max"}


@frozen
class Result:
    """One cell of another client. `model` is the served name, or "" where the file does not say.

    `figures` is None where the client left the cell out, because the engine cannot run it at once; `why` says so.
    """

    point: Point
    figures: Figures | None
    why: str = ""
    evidence: Evidence = Evidence()
    model: str = ""
    seconds: float | None = None
    errors: Mapping[str, int] = field(default_factory=dict)


def read(text: str) -> tuple[Driver, Sequence[Result]]:
    """Return the client that wrote a file, and its cells. Raise ValueError, with the reason, for any other file."""
    if not text.lstrip().startswith(("{", "[")):
        return Driver.GRID, _read_grid(text)
    try:
        tree = json.loads(text)
        form = next((form for form in FORMATS if isinstance(tree, dict) and form.matches(tree)), None)
        if form is None:
            raise ValueError(f"it is not a result of {', '.join(form.name for form in FORMATS)}")
        return form.driver, form.read(tree)
    except (KeyError, TypeError, AttributeError, RecursionError) as cause:
        raise ValueError(f"{type(cause).__name__}: {cause}") from cause


def _is_vllm(tree: Tree) -> bool:
    return {"completed", "total_input_tokens", "output_throughput"} <= tree.keys()


def _read_vllm(tree: Tree) -> Sequence[Result]:
    """Read `vllm bench serve --save-result`: one cell a file (vLLM 0.32, vllm/benchmarks/serve.py:1280,2258)."""
    completed, seconds = int(_needed(tree, "completed")), _needed(tree, "duration")
    tokens_in, tokens_out = _needed(tree, "total_input_tokens"), _needed(tree, "total_output_tokens")
    if _number(tree, "max_concurrency") is None:
        raise ValueError("it was not measured at a fixed concurrency (`--max-concurrency`)")
    prompt, answer = (tokens / completed if completed else None for tokens in (tokens_in, tokens_out))

    def latency(name: str, count: int | None) -> Spread | None:
        values = {ours: _number(tree, f"{theirs}_{name}_ms") for ours, theirs in _VLLM_NAMES.items()}
        return _spread(values, count=count, scale=_MS) if values["mean"] else None  # 0: nothing was measured

    e2e = latency("e2el", completed)
    figures = Figures(
        requests=completed,
        requests_failed=_count(_number(tree, "failed")),
        window_seconds=seconds,
        requests_per_second=_number(tree, "request_throughput"),
        goodput_requests_per_second=_number(tree, "request_goodput"),
        input_tokens_per_second=tokens_in / seconds,
        output_tokens_per_second=_number(tree, "output_throughput"),
        prompt_tokens_mean=prompt,
        output_tokens_mean=answer,
        ttft_seconds=latency("ttft", completed),
        itl_seconds=latency("itl", None),
        tpot_seconds=latency("tpot", None),
        e2e_seconds=e2e,
    )
    # Little's law. `max_concurrent_requests` counts by the second, and is twice the number that ran at once.
    streams = None if e2e is None else completed * e2e.mean / seconds
    return (
        Result(
            point=_point(int(_needed(tree, "max_concurrency")), prompt, answer),
            figures=figures,
            evidence=Evidence(streams_by_latency=streams),
            model=str(tree.get("model_id") or ""),
            seconds=seconds,
        ),
    )


def _is_guidellm(tree: Tree) -> bool:
    benchmarks = tree.get("benchmarks")
    return isinstance(benchmarks, list) and all(isinstance(each, dict) and "metrics" in each for each in benchmarks)


def _read_guidellm(tree: Tree) -> Sequence[Result]:
    """Read guidellm's JSON: a benchmark for each strategy (0.8, src/guidellm/benchmark/schemas)."""
    return tuple(_read_guidellm_cell(benchmark) for benchmark in tree["benchmarks"])


def _read_guidellm_cell(tree: Tree) -> Result:
    metrics, config = tree["metrics"], tree.get("config") or {}
    totals = metrics.get("request_totals") or tree.get("request_totals")

    def mean(name: str) -> float | None:
        return _number(metrics, name, "successful", "mean")

    def latency(name: str, scale: float) -> Spread | None:
        values = (metrics.get(name) or {}).get("successful") or {}
        quantiles = {quantile: _number(values, "percentiles", quantile) for quantile in ("p90", "p95", "p99")}
        values_by_name = {ours: _number(values, theirs) for ours, theirs in _GUIDELLM_NAMES.items()}
        return _spread({**values_by_name, **quantiles}, count=_number(values, "count"), scale=scale)

    rate, prompt, answer = mean("requests_per_second"), mean("prompt_token_count"), mean("output_token_count")
    figures = Figures(
        requests=_count(_number(totals, "successful")),
        requests_failed=_count(_number(totals, "errored")),
        window_seconds=_number(tree, "duration"),
        requests_per_second=rate,
        input_tokens_per_second=_product(rate, prompt),
        output_tokens_per_second=mean("output_tokens_per_second"),
        prompt_tokens_mean=prompt,
        output_tokens_mean=answer,
        ttft_seconds=latency("time_to_first_token_ms", _MS),
        itl_seconds=latency("inter_token_latency_ms", _MS),
        tpot_seconds=latency("time_per_output_token_ms", _MS),
        e2e_seconds=latency("request_latency", 1.0),
    )
    return Result(
        point=_point(_guidellm_streams(config.get("strategy") or {}), prompt, answer),
        figures=figures,
        evidence=Evidence(streams_mean=mean("request_concurrency")),
        model=str((config.get("backend") or {}).get("model") or ""),
        seconds=_number(tree, "duration"),
    )


def _guidellm_streams(strategy: Tree) -> int:
    """Return the streams of a strategy. Raise ValueError for one without a fixed number."""
    streams = _number(strategy, "streams")
    if streams is not None:
        return int(streams)
    if strategy.get("type_") == "synchronous":
        return 1
    raise ValueError(f"its strategy `{strategy.get('type_')}` keeps no fixed number of streams")


def _is_aiperf(tree: Tree) -> bool:
    return "aiperf_version" in tree or {"request_count", "request_latency"} <= tree.keys()


def _read_aiperf(tree: Tree) -> Sequence[Result]:
    """Read `profile_export_aiperf.json`: one cell a file, each metric with its unit (schema 1.4, aiperf 0.13)."""

    def average(name: str) -> float | None:
        return _number(tree, name, "avg")

    def scale(name: str) -> float:
        return _UNITS[str((tree.get(name) or {}).get("unit", "ms"))]  # a KeyError for a unit that is not of time

    def latency(name: str) -> Spread | None:
        values = {ours: _number(tree, name, theirs) for ours, theirs in _AIPERF_NAMES.items()}
        return _spread(values, count=_number(tree, name, "count"), scale=scale(name))

    rate, streams = average("request_throughput"), average("effective_concurrency")
    prompt, answer = average("input_sequence_length"), average("output_sequence_length")
    seconds = _product(average("benchmark_duration"), scale("benchmark_duration"))
    figures = Figures(
        requests=_count(average("request_count")),
        requests_failed=_count(average("error_request_count")),
        window_seconds=seconds,
        requests_per_second=rate,
        goodput_requests_per_second=average("goodput"),
        input_tokens_per_second=_product(rate, prompt),
        output_tokens_per_second=average("output_token_throughput"),
        prompt_tokens_mean=prompt,
        output_tokens_mean=answer,
        ttft_seconds=latency("time_to_first_token"),
        # Its inter-token latency is a mean of each request: the time per token.
        tpot_seconds=latency("inter_token_latency"),
        e2e_seconds=latency("request_latency"),
    )
    config = tree.get("input_config")
    names = ((config or {}).get("endpoint") or {}).get("model_names") if isinstance(config, Mapping) else None
    configured = _configured_concurrency(config)
    return (
        Result(
            # Without the configured number of streams, the measured mean is the nearest to it.
            point=_point(_whole(streams) if configured is None else configured, prompt, answer),
            figures=figures,
            evidence=Evidence(streams_mean=streams),
            model=str(names[0]) if isinstance(names, list) and names else "",
            seconds=seconds,
        ),
    )


def _configured_concurrency(config: Any) -> int | None:
    """Search the configuration for `concurrency`: its place changes with the version of aiperf, its name does not."""
    if isinstance(config, Mapping):
        own = _number(config, "concurrency")
        if own is not None:
            return int(own)
    elif not isinstance(config, list):
        return None
    children = config.values() if isinstance(config, Mapping) else config
    return next((value for value in map(_configured_concurrency, children) if value is not None), None)


def _read_grid(text: str) -> Sequence[Result]:
    """Read a grid as people write it down: CSV with `_GRID_COLUMNS` and `status`.

    It holds neither the number of requests and failures, nor the duration, nor the length of answers: all are unknown.
    """
    rows = list(csv.DictReader(text.splitlines()))
    missing = [name for name in _GRID_COLUMNS if not rows or name not in rows[0]]
    if missing:
        raise ValueError(f"it is neither JSON nor a CSV grid: it has no column `{missing[0]}`")
    return tuple(_read_grid_cell(row, line) for line, row in enumerate(rows, start=2))


def _read_grid_cell(row: Mapping[str, str], line: int) -> Result:
    try:
        streams, context = int(row["concurrency"]), int(row["context_len"])
        rate, latency = float(row["throughput_req_sec"]), float(row["avg_latency_s"])
    except (ValueError, TypeError) as cause:
        raise ValueError(f"line {line}: {cause}") from cause
    point = Point(concurrency=streams, context_tokens=context, output_tokens=None)
    status = str(row.get("status") or "")
    quoted = f"the file says `{status}`"
    if status.startswith(_GRID_SKIPPED):
        return Result(point=point, figures=None, why=quoted)
    if status not in _GRID_OK or rate <= 0:
        return Result(point=point, figures=Figures(requests=0, requests_failed=1), errors={quoted: 1})
    figures = Figures(
        requests=None,
        requests_failed=None,
        requests_per_second=rate,
        input_tokens_per_second=rate * context,
        prompt_tokens_mean=context,
        e2e_seconds=_spread({"mean": latency}, count=None, scale=1.0),
    )
    return Result(point=point, figures=figures, evidence=Evidence(streams_by_latency=rate * latency))


@frozen
class Format:
    """`matches` and `read` get the JSON tree; `read` raises ValueError, KeyError or TypeError for a damaged file."""

    driver: Driver
    name: str
    matches: Callable[[Tree], bool]
    read: Callable[[Tree], Sequence[Result]]


FORMATS = (
    Format(driver=Driver.VLLM, name="vllm bench serve", matches=_is_vllm, read=_read_vllm),
    Format(driver=Driver.GUIDELLM, name="guidellm", matches=_is_guidellm, read=_read_guidellm),
    Format(driver=Driver.AIPERF, name="aiperf", matches=_is_aiperf, read=_read_aiperf),
)


def _number(tree: Any, *path: str) -> float | None:
    """Return the finite number at that path, or None."""
    for name in path:
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    is_number = isinstance(tree, int | float) and not isinstance(tree, bool)
    return float(tree) if is_number and isfinite(tree) else None


def _needed(tree: Any, name: str) -> float:
    """Return the number of that name. Raise ValueError without one."""
    value = _number(tree, name)
    if value is None:
        raise ValueError(f"it has no `{name}`")
    return value


def _spread(values: Mapping[str, float | None], *, count: float | None, scale: float) -> Spread | None:
    """Return a spread from values by the names of its fields, in units of `scale` seconds; None without a mean."""
    scaled = {name: None if value is None else value * scale for name, value in values.items()}
    mean = scaled.get("mean")
    if mean is None:
        return None
    others = {name: scaled.get(name) for name in ("deviation", "p50", "p90", "p95", "p99", "most")}
    return Spread(count=_count(count), mean=mean, **others)


def _point(streams: int | None, prompt: float | None, answer: float | None) -> Point:
    return Point(concurrency=streams, context_tokens=_whole(prompt), output_tokens=_whole(answer))


def _whole(mean: float | None) -> int | None:
    """Return a mean number of tokens or streams, rounded; None where it is unknown, or 0: then nothing was measured."""
    return None if mean is None else round(mean) or None


def _count(number: float | None) -> int | None:
    """Return a number of requests; None where the file has none, because unknown is not 0."""
    return None if number is None else int(number)


def _product(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one * other
