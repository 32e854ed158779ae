"""aiperf's `profile_export_aiperf.json`: one cell a file, each metric with its unit (schema 1.4, aiperf 0.13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpudeploy.benchmark.foreign.reading import Result, number, spread, times, whole
from tpudeploy.domain.benchmark import Evidence, Figures, Spread
from tpudeploy.domain.load import Point

_UNITS = {"sec": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_NAMES = {"mean": "avg", "deviation": "std", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "most": "max"}


def is_it(tree: Mapping[str, Any]) -> bool:
    return "aiperf_version" in tree or {"request_count", "request_latency"} <= tree.keys()


def read(tree: Mapping[str, Any]) -> Sequence[Result]:
    rate, held = _average(tree, "request_throughput"), _average(tree, "effective_concurrency")
    given, made = _average(tree, "input_sequence_length"), _average(tree, "output_sequence_length")
    seconds = _seconds(tree, "benchmark_duration")
    figures = Figures(
        requests=int(_average(tree, "request_count") or 0),
        requests_failed=int(_average(tree, "error_request_count") or 0),
        window_seconds=seconds,
        requests_per_second=rate,
        goodput_requests_per_second=_average(tree, "goodput"),
        input_tokens_per_second=times(rate, given),
        output_tokens_per_second=_average(tree, "output_token_throughput"),
        prompt_tokens_mean=given,
        output_tokens_mean=made,
        ttft_seconds=_spread(tree, "time_to_first_token"),
        # What it calls inter-token latency is a mean of each request: the time a token.
        tpot_seconds=_spread(tree, "inter_token_latency"),
        e2e_seconds=_spread(tree, "request_latency"),
    )
    asked = _concurrency(tree.get("input_config"))
    # Without the configured number of streams, the measured mean is the nearest to it.
    streams = asked if asked is not None else whole(held)
    point = Point(concurrency=streams, context_tokens=whole(given), output_tokens=whole(made))
    model = _first_model(tree.get("input_config"))
    return (
        Result(point=point, figures=figures, evidence=Evidence(streams_mean=held), model=model, seconds=seconds or 0.0),
    )


def _concurrency(config: Any) -> int | None:
    """Where it stands in the configuration changes from version to version; what it is called does not."""
    if isinstance(config, Mapping):
        own = number(config, "concurrency")
        found = [own] if own is not None else [_concurrency(each) for each in config.values()]
    else:
        found = [_concurrency(each) for each in config] if isinstance(config, list) else []
    return next((int(each) for each in found if each is not None), None)


def _first_model(config: Any) -> str:
    names = ((config or {}).get("endpoint") or {}).get("model_names") if isinstance(config, Mapping) else None
    return str(names[0]) if isinstance(names, list) and names else ""


def _average(tree: Mapping[str, Any], name: str) -> float | None:
    return number(tree, name, "avg")


def _seconds(tree: Mapping[str, Any], name: str) -> float | None:
    return times(_average(tree, name), _scale(tree, name))


def _scale(tree: Mapping[str, Any], name: str) -> float:
    """Raise KeyError for a unit that is no time."""
    return _UNITS[str((tree.get(name) or {}).get("unit", "ms"))]


def _spread(tree: Mapping[str, Any], name: str) -> Spread | None:
    values = {ours: number(tree, name, theirs) for ours, theirs in _NAMES.items()}
    count = number(tree, name, "count")
    return spread(values, count=None if count is None else int(count), scale=_scale(tree, name))
