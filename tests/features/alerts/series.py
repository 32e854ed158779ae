"""CASES: days of a deployment of two servers as series of samples, and what fires at which minute of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MODEL = "google/gemma-4-E2B-it"
INTERVAL = "15s"
# Four samples a minute, in promtool's own notation: `0x8` is two minutes and a sample of 0.
QUIET = "0x60"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`samples` is metric (with labels of its own) → samples; `fires` minute → exactly what fires.

    A metric is that of the first server, or `metric@1` that of the second one.
    """

    about: str
    samples: Mapping[str, str]
    fires: Mapping[float, set[str]]
    up: tuple[str, ...] = ("1x60", "1x60")

    def to_promtool(self) -> dict[str, Any]:
        samples = {**{f"up|{n}": values for n, values in enumerate(self.up)}, **self.samples}
        series = [{"series": _series(name), "values": values} for name, values in samples.items()]
        return {
            "name": self.about,
            "interval": INTERVAL,
            "input_series": series,
            "promql_expr_test": [_expected(minute, names) for minute, names in self.fires.items()],
        }


def _series(name: str) -> str:
    metric, _, own = name.partition("|")
    if metric == "up":
        return f'up{{job="gemma",instance="{own}"}}'
    metric, _, server = metric.partition("@")
    labels = f'job="gemma",instance="{server or 0}",engine="0",model_name="{MODEL}"'
    return f"vllm:{metric}{{{labels}{',' if own else ''}{own}}}"


def _expected(minute: float, names: set[str]) -> dict[str, Any]:
    labels = [f'{{alertname="{name}"}}' for name in sorted(names)]
    return {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing",deployment="gemma"})',
        "eval_time": f"{int(minute * 60)}s",
        "exp_samples": [{"labels": each, "value": 1} for each in labels],
    }


def buckets(fast: str, slow: str) -> dict[str, str]:
    """First tokens within 1 s, and within 20 s: each the samples of a cumulative count."""
    return {
        'time_to_first_token_seconds_bucket|le="1.0"': fast,
        'time_to_first_token_seconds_bucket|le="20.0"': slow,
        'time_to_first_token_seconds_bucket|le="+Inf"': slow,
    }


CASES = (
    Case(
        about="a quiet day",
        samples={
            "num_requests_running": QUIET,
            "num_requests_waiting": QUIET,
            'num_requests_waiting_by_reason|reason="capacity"': QUIET,
            "kv_cache_usage_perc": "0.2x60",
            "generation_tokens_total": QUIET,
            "num_preemptions_total": QUIET,
            **buckets(QUIET, QUIET),
        },
        fires={0: set(), 3: set(), 14: set()},
    ),
    Case(
        about="a busy day that it is fit for",
        samples={
            "num_requests_running": "3x60",
            "num_requests_waiting": "0 5 0 0x57",
            'num_requests_waiting_by_reason|reason="capacity"': "0 5 0 0x57",
            "kv_cache_usage_perc": "0.85x60",
            "generation_tokens_total": "0+100x60",
            "num_preemptions_total": "7x60",
            **buckets("0+96x60", "0+100x60"),
        },
        fires={0.5: set(), 1: set(), 3: set(), 14: set()},
    ),
    Case(
        about="nothing is served, and no server says so: a machine that was preempted takes its agent along",
        samples={},
        up=("1x8 _x52", "1x8 _x52"),
        # A series counts until it is five minutes old, unless its scrape is still tried and fails.
        fires={6: set(), 9: {"VllmDown"}},
    ),
    Case(
        about="both servers refuse connections",
        samples={},
        up=("1x8 0x52", "1x8 0x52"),
        fires={2: set(), 2.5: set(), 4: {"VllmDown"}},
    ),
    Case(
        about="a server that is being restarted for less than a minute",
        samples={},
        up=("1x8 0x2 1x50", "1x8 0x2 1x50"),
        fires={2.5: set(), 3: set(), 5: set()},
    ),
    Case(
        about="one of two servers is gone",
        samples={},
        up=("1x60", "1x8 0x52"),
        fires={2: set(), 4: {"VllmReplicaDown"}},
    ),
    Case(
        about="the engine hangs with requests in it",
        samples={"num_requests_running": "2x60", "generation_tokens_total": "0+100x8 800x52"},
        fires={2: set(), 3: set(), 5: {"VllmNoProgress"}},
    ),
    Case(
        about="a graph is compiled for 132 s, as a published run had it",
        samples={"num_requests_running": "2x60", "generation_tokens_total": "0+100x8 800x8 900+100x40"},
        fires={3.5: set(), 4.25: {"VllmNoProgress"}, 5: set()},
    ),
    Case(
        about="a prefill of 55 s after a quiet hour",
        samples={"num_requests_running": "0x20 2x40", "generation_tokens_total": "0x24 100+100x36"},
        fires={5.5: set(), 6: set(), 7: set()},
    ),
    Case(
        about="the KV cache is full for a minute",
        samples={"kv_cache_usage_perc": "0.2x8 0.86x52"},
        fires={2.5: set(), 4: {"VllmKvCacheNearlyFull"}},
    ),
    Case(
        about="the KV cache is full, and requests wait for it",
        samples={
            "kv_cache_usage_perc": "0.99x60",
            "num_requests_waiting": "3x60",
            'num_requests_waiting_by_reason|reason="capacity"': "3x60",
        },
        fires={
            0.25: set(),
            4: {"VllmKvCacheNearlyFull", "VllmQueueSaturated"},
            6: {"VllmKvCacheNearlyFull", "VllmQueueSaturated", "VllmKvCacheExhausted"},
        },
    ),
    Case(
        about="the KV cache is full, and requests wait for something else",
        samples={
            "kv_cache_usage_perc": "0.99x60",
            "num_requests_waiting": "3x60",
            'num_requests_waiting_by_reason|reason="capacity"': QUIET,
            'num_requests_waiting_by_reason|reason="deferred"': "3x60",
        },
        fires={10: {"VllmKvCacheNearlyFull", "VllmQueueSaturated"}},
    ),
    Case(
        about="requests wait for half a minute",
        samples={"num_requests_waiting": "0x4 1x56"},
        fires={1.25: set(), 1.5: set(), 1.75: {"VllmQueueSaturated"}},
    ),
    Case(
        about="requests wait now and then",
        samples={"num_requests_waiting": "0 9 0 9 0 9 0 9 0 9 0 9 0 9 0 9 0 9 0 9 0 9 0 9"},
        fires={2: set(), 4: set()},
    ),
    Case(
        about="every place of the batch is taken",
        samples={"num_requests_running": "4x60", "generation_tokens_total": "0+100x60"},
        fires={4: set(), 6: {"VllmBatchFull"}},
    ),
    Case(
        about="one of two servers runs all that it can, and the other one has room",
        samples={
            "num_requests_running": "4x60",
            "num_requests_running@1": "3x60",
            "generation_tokens_total": "0+100x60",
            "generation_tokens_total@1": "0+100x60",
        },
        fires={6: set(), 10: set()},
    ),
    Case(
        about="both servers are full: one alert of each kind for both",
        samples={
            "num_requests_running": "4x60",
            "num_requests_running@1": "4x60",
            "generation_tokens_total": "0+100x60",
            "generation_tokens_total@1": "0+100x60",
            "num_requests_waiting": "1x60",
            "num_requests_waiting@1": "2x60",
            "kv_cache_usage_perc": "0.9x60",
            "kv_cache_usage_perc@1": "0.95x60",
        },
        fires={6: {"VllmBatchFull", "VllmQueueSaturated", "VllmKvCacheNearlyFull"}},
    ),
    Case(
        about="one of two servers hangs, and the other one generates",
        samples={
            "num_requests_running": "2x60",
            "num_requests_running@1": "2x60",
            "generation_tokens_total": "0+100x8 800x52",
            "generation_tokens_total@1": "0+100x60",
        },
        fires={2: set(), 5: {"VllmNoProgress"}},
    ),
    Case(
        about="the cache of one server is full, and requests wait at the other one",
        samples={
            "kv_cache_usage_perc": "0.99x60",
            "kv_cache_usage_perc@1": "0.1x60",
            'num_requests_waiting_by_reason|reason="capacity"': QUIET,
            'num_requests_waiting_by_reason@1|reason="capacity"': "3x60",
        },
        fires={10: {"VllmKvCacheNearlyFull"}},
    ),
    Case(
        about="requests are preempted for minutes",
        samples={"num_preemptions_total": "0x8 1+1x51"},
        fires={2: set(), 4: {"VllmPreempting"}},
    ),
    Case(
        about="the engine was restarted, and its counters with it",
        samples={"num_preemptions_total": "40x20 0x40", "generation_tokens_total": "900x20 0x40"},
        fires={5.5: set(), 7: set()},
    ),
    Case(
        about="one in ten waits long for its first token",
        samples=buckets("0+90x60", "0+100x60"),
        fires={4: set(), 8: {"VllmTtftHigh"}},
    ),
)
