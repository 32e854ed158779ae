"""ROWS: the rows of a dashboard, from whether deployments serve down to their processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.metrics.advice import KV_CACHE_FULL

# Selectors by the dashboard's variables: for an engine's metrics, and for a process's, which have no model's name.
ENGINE = '{job=~"$job",instance=~"$instance",model_name=~"$model_name"}'
PROCESS = '{job=~"$job",instance=~"$instance"}'
_FIRST_TOKENS = "vllm:time_to_first_token_seconds_bucket"


class PanelType(StrEnum):
    """Grafana's panel types."""

    STAT = "stat"
    TIME_SERIES = "timeseries"
    HEATMAP = "heatmap"


class PanelLimit(StrEnum):
    """A line in a panel, whose value comes from the profile."""

    TTFT = "ttft_seconds"
    BATCH = "max_num_seqs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """`lines` maps a legend to PromQL. `unit` is Grafana's name. `limit` is a number, or a value of the profile.

    `of_completions`: an engine that only pools has no such figure.
    """

    title: str
    about: str
    unit: str
    lines: Mapping[str, str]
    kind: PanelType = PanelType.TIME_SERIES
    limit: float | PanelLimit | None = None
    of_completions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelRow:
    title: str
    panels: tuple[Panel, ...]
    height: int = 8


def _rate(metric: str, *by: str, selector: str = ENGINE) -> str:
    """Return a counter's growth per second. Grafana's interval is never shorter than four scrapes."""
    grouped = f" by ({', '.join(by)}) " if by else ""
    return f"sum{grouped}(rate({metric}{selector}[$__rate_interval]))"


def _quantile(share: float, histogram: str) -> str:
    return f"histogram_quantile({share:g}, {_rate(f'vllm:{histogram}_bucket', 'le')})"


def _quantiles(histogram: str) -> dict[str, str]:
    return {f"p{share * 100:g}": _quantile(share, histogram) for share in (0.5, 0.95, 0.99)}


ROWS = (
    PanelRow(
        title="Now",
        height=4,
        panels=(
            Panel(
                title="Servers up",
                about="Servers whose /metrics could be read.",
                unit="short",
                lines={"up": f"count(up{PROCESS} == 1) or vector(0)"},
                kind=PanelType.STAT,
            ),
            Panel(
                title="Running",
                about="Requests in the batches of all servers.",
                unit="short",
                lines={"running": f"sum(vllm:num_requests_running{ENGINE})"},
                kind=PanelType.STAT,
            ),
            Panel(
                title="Waiting",
                about="Requests that have not begun. Above zero for long, there are more requests than can be served.",
                unit="short",
                lines={"waiting": f"sum(vllm:num_requests_waiting{ENGINE})"},
                kind=PanelType.STAT,
                limit=1,
            ),
            Panel(
                title="KV cache",
                about="The fullest server's. Blocks that only the prefix cache holds count as free.",
                unit="percentunit",
                lines={"used": f"max(vllm:kv_cache_usage_perc{ENGINE})"},
                kind=PanelType.STAT,
                limit=KV_CACHE_FULL,
            ),
            Panel(
                title="First token, p95",
                of_completions=True,
                about="As the server sees it, interpolated between the buckets of its histogram.",
                unit="s",
                lines={"p95": _quantile(0.95, "time_to_first_token_seconds")},
                kind=PanelType.STAT,
                limit=PanelLimit.TTFT,
            ),
            Panel(
                title="Generated",
                of_completions=True,
                about="Tokens a second of all servers.",
                unit="short",
                lines={"tokens/s": _rate("vllm:generation_tokens_total")},
                kind=PanelType.STAT,
            ),
        ),
    ),
    PanelRow(
        title="Load",
        panels=(
            Panel(
                title="Requests",
                about="Running and waiting, by server. The line is serving.max_num_seqs: no more run at once.",
                unit="short",
                lines={
                    "running {{instance}}": f"sum by (instance) (vllm:num_requests_running{ENGINE})",
                    "waiting {{instance}}": f"sum by (instance) (vllm:num_requests_waiting{ENGINE})",
                },
                limit=PanelLimit.BATCH,
            ),
            Panel(
                title="Why requests wait",
                about="For room in cache and batch (capacity), or for something passing (deferred).",
                unit="short",
                lines={"{{reason}}": f"sum by (reason) (vllm:num_requests_waiting_by_reason{ENGINE})"},
            ),
            Panel(
                title="KV cache",
                about="Share of its blocks that running requests hold. Above the line an alert begins to count.",
                unit="percentunit",
                lines={"{{instance}} {{engine}}": f"max by (instance, engine) (vllm:kv_cache_usage_perc{ENGINE})"},
                limit=KV_CACHE_FULL,
            ),
            Panel(
                title="Preemptions",
                about="Requests put aside for want of cache, a second. Their tokens are computed again.",
                unit="short",
                lines={"{{instance}}": _rate("vllm:num_preemptions_total", "instance")},
            ),
        ),
    ),
    PanelRow(
        title="Latency, as the server sees it",
        panels=(
            Panel(
                title="Time to first token",
                of_completions=True,
                about="Interpolated between buckets; above 0.5 s they are far apart. Measure with a client to compare.",
                unit="s",
                lines=_quantiles("time_to_first_token_seconds"),
                limit=PanelLimit.TTFT,
            ),
            Panel(
                title="Between tokens",
                of_completions=True,
                about="Seconds from one token of an answer to the next.",
                unit="s",
                lines=_quantiles("inter_token_latency_seconds"),
            ),
            Panel(
                title="Whole answer",
                about="Seconds from a request's arrival to its last token.",
                unit="s",
                lines=_quantiles("e2e_request_latency_seconds"),
            ),
            Panel(
                title="Time in queue",
                about="Seconds a request waited before it began.",
                unit="s",
                lines=_quantiles("request_queue_time_seconds"),
            ),
        ),
    ),
    PanelRow(
        title="Work",
        panels=(
            Panel(
                title="Tokens a second",
                about="Of prompts, as they come in, and of answers.",
                unit="short",
                lines={"prompt": _rate("vllm:prompt_tokens_total"), "generated": _rate("vllm:generation_tokens_total")},
            ),
            Panel(
                title="Answers by how they ended",
                about="A second. `length` is cut off by max_tokens, `abort` by the client.",
                unit="reqps",
                lines={"{{finished_reason}}": _rate("vllm:request_success_total", "finished_reason")},
            ),
            Panel(
                title="Prefix cache hits",
                about="Share of prompt tokens that were in the cache already.",
                unit="percentunit",
                lines={"hits": f"{_rate('vllm:prefix_cache_hits_total')} / {_rate('vllm:prefix_cache_queries_total')}"},
            ),
            Panel(
                title="Lengths, p95",
                about="Tokens of prompts and of answers.",
                unit="short",
                lines={
                    "prompt": _quantile(0.95, "request_prompt_tokens"),
                    "answer": _quantile(0.95, "request_generation_tokens"),
                },
            ),
        ),
    ),
    PanelRow(
        title="Time to first token, all of it",
        panels=(
            Panel(
                title="First tokens",
                of_completions=True,
                about="How many requests fell into each bucket of the server's histogram.",
                unit="s",
                lines={"{{le}}": f"sum by (le) (increase({_FIRST_TOKENS}{ENGINE}[$__rate_interval]))"},
                kind=PanelType.HEATMAP,
            ),
        ),
    ),
    PanelRow(
        title="Process",
        panels=(
            Panel(
                title="Memory",
                about="Of the API server's process, on the host. HBM is in no metric: `tpudeploy size` knows it.",
                unit="bytes",
                lines={"{{instance}}": f"sum by (instance) (process_resident_memory_bytes{PROCESS})"},
            ),
            Panel(
                title="CPU",
                about="Cores that the API server's process keeps busy. Near one, it is what holds tokens up.",
                unit="short",
                lines={"{{instance}}": _rate("process_cpu_seconds_total", "instance", selector=PROCESS)},
            ),
            Panel(
                title="Open files",
                about="Connections are among them.",
                unit="short",
                lines={"{{instance}}": f"sum by (instance) (process_open_fds{PROCESS})"},
            ),
        ),
    ),
)
