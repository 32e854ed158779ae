"""`vllm bench serve --save-result`: one cell a file (vLLM 0.32, vllm/benchmarks/serve.py:1280,2258)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpudeploy.benchmark.foreign.reading import Result, needed, number, spread
from tpudeploy.domain.benchmark import Evidence, Figures, Spread
from tpudeploy.domain.load import Point

_MS = 1e-3
_NAMES = {"mean": "mean", "deviation": "std", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}


def is_it(tree: Mapping[str, Any]) -> bool:
    return {"completed", "total_input_tokens", "output_throughput"} <= tree.keys()


def read(tree: Mapping[str, Any]) -> Sequence[Result]:
    completed, seconds = int(needed(tree, "completed")), needed(tree, "duration")
    given, made = needed(tree, "total_input_tokens"), needed(tree, "total_output_tokens")
    if number(tree, "max_concurrency") is None:
        raise ValueError("it was not measured at a fixed concurrency (`--max-concurrency`)")
    latency = _spread(tree, "e2el", completed)
    figures = Figures(
        requests=completed,
        requests_failed=int(number(tree, "failed") or 0),
        window_seconds=seconds,
        requests_per_second=number(tree, "request_throughput"),
        goodput_requests_per_second=number(tree, "request_goodput"),
        input_tokens_per_second=given / seconds,
        output_tokens_per_second=number(tree, "output_throughput"),
        prompt_tokens_mean=given / completed if completed else None,
        output_tokens_mean=made / completed if completed else None,
        ttft_seconds=_spread(tree, "ttft", completed),
        itl_seconds=_spread(tree, "itl", None),
        tpot_seconds=_spread(tree, "tpot", None),
        e2e_seconds=latency,
    )
    # Little's law. `max_concurrent_requests` counts by the second, and reads twice what there was.
    held = None if latency is None else completed * latency.mean / seconds
    point = Point(
        concurrency=int(needed(tree, "max_concurrency")),
        context_tokens=round(given / completed) if completed else None,
        output_tokens=round(made / completed) if completed else None,
    )
    model = str(tree.get("model_id") or "")
    return (
        Result(point=point, figures=figures, evidence=Evidence(streams_by_latency=held), model=model, seconds=seconds),
    )


def _spread(tree: Mapping[str, Any], what: str, count: int | None) -> Spread | None:
    values = {name: number(tree, f"{theirs}_{what}_ms") for name, theirs in _NAMES.items()}
    # Where nothing was measured, it writes zeros.
    return spread(values, count=count, scale=_MS) if values["mean"] else None
