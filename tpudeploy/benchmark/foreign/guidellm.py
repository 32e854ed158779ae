"""guidellm's JSON: a benchmark of each strategy in `benchmarks` (0.8, src/guidellm/benchmark/schemas)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpudeploy.benchmark.foreign.reading import Result, number, spread, times, whole
from tpudeploy.domain.benchmark import Evidence, Figures, Spread
from tpudeploy.domain.load import Point

_S, _MS = 1.0, 1e-3


def is_it(tree: Mapping[str, Any]) -> bool:
    found = tree.get("benchmarks")
    return isinstance(found, list) and all(isinstance(each, dict) and "metrics" in each for each in found)


def read(tree: Mapping[str, Any]) -> Sequence[Result]:
    return tuple(_cell(each) for each in tree["benchmarks"])


def _cell(tree: Mapping[str, Any]) -> Result:
    metrics = tree["metrics"]
    totals = metrics.get("request_totals") or tree.get("request_totals")
    rate = _mean(metrics, "requests_per_second")
    given, made = _mean(metrics, "prompt_token_count"), _mean(metrics, "output_token_count")
    figures = Figures(
        requests=int(number(totals, "successful") or 0),
        requests_failed=int(number(totals, "errored") or 0),
        window_seconds=number(tree, "duration"),
        requests_per_second=rate,
        input_tokens_per_second=times(rate, given),
        output_tokens_per_second=_mean(metrics, "output_tokens_per_second"),
        prompt_tokens_mean=given,
        output_tokens_mean=made,
        ttft_seconds=_spread(metrics, "time_to_first_token_ms", _MS),
        itl_seconds=_spread(metrics, "inter_token_latency_ms", _MS),
        tpot_seconds=_spread(metrics, "time_per_output_token_ms", _MS),
        e2e_seconds=_spread(metrics, "request_latency", _S),
    )
    point = Point(concurrency=_streams(tree), context_tokens=whole(given), output_tokens=whole(made))
    return Result(
        point=point,
        figures=figures,
        evidence=Evidence(streams_mean=_mean(metrics, "request_concurrency")),
        model=str(((tree.get("config") or {}).get("backend") or {}).get("model") or ""),
        seconds=number(tree, "duration") or 0.0,
    )


def _streams(tree: Mapping[str, Any]) -> int:
    """Raise ValueError for a strategy that keeps no number of streams going."""
    strategy = (tree.get("config") or {}).get("strategy") or {}
    streams = number(strategy, "streams")
    if streams is None and strategy.get("type_") == "synchronous":
        return 1
    if streams is None:
        raise ValueError(f"its strategy `{strategy.get('type_')}` keeps no fixed number of streams")
    return int(streams)


def _mean(metrics: Mapping[str, Any], name: str) -> float | None:
    return number(metrics, name, "successful", "mean")


def _spread(metrics: Mapping[str, Any], name: str, scale: float) -> Spread | None:
    found = (metrics.get(name) or {}).get("successful") or {}
    values = {
        "mean": number(found, "mean"),
        "deviation": number(found, "std_dev"),
        "p50": number(found, "median"),
        "most": number(found, "max"),
        **{name: number(found, "percentiles", name) for name in ("p90", "p95", "p99")},
    }
    count = number(found, "count")
    return spread(values, count=None if count is None else int(count), scale=scale)
