"""Watched: the facts of a deployment for rules and panels, with every threshold, and targets from benchmark runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.task import TASKS
from tpudeploy.features.benchmark.recommendation import Aim, OperatingPoint
from tpudeploy.features.benchmark.run import Cell, Run
from tpudeploy.node.serving import served_model
from tpudeploy.sizing.serve import max_num_seqs_of

# Source, also of `KV_CACHE_FULL`: a published write-up of this stack says "alert when vllm:kv_cache_usage_perc > 0.85,
# or vllm:num_requests_waiting > 0 for 30 s".
WAITING_SECONDS = 30
# `for: 30s` requires at least two samples and two evaluations of the rules in that time.
SCRAPE_SECONDS = 15
# Edges of vLLM's own histogram (v1/metrics/loggers.py), in seconds. Between two of them a quantile is interpolated.
TTFT_EDGES = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)

# The margin above a measured time, because a value of a quiet day must not raise an alarm on a busy one.
ROOM = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A deployment to watch. `job` is the label of its scrape, `model` the label that its engine sets.

    `max_num_seqs` is None if unknown. `ttft_seconds` is None without a target for the first token.
    `ttft_source` is a caveat about that target to show with the rule, or "". `completes` and `pools`: whether its
    server may generate tokens, and whether it may answer without them; both where the task is unknown.
    """

    name: str
    job: str
    model: str
    port: int
    replicas: int
    max_num_seqs: int | None
    ttft_seconds: float | None
    tells_metrics: bool
    ttft_source: str = ""
    completes: bool = True
    pools: bool = False

    @property
    def engine(self) -> str:
        """The selector of its engines' metrics."""
        return f"{{job={quoted(self.job)},model_name={quoted(self.model)}}}"

    @property
    def scrape(self) -> str:
        """The selector of its machines, whether or not their engines answer."""
        return f"{{job={quoted(self.job)}}}"


def watched(deployment: Deployment, *, ttft_seconds: float | None, ttft_source: str = "") -> Watched:
    """Return the facts of a deployment, which is one job of Prometheus; its replicas are the instances."""
    facts = TASKS[deployment.task.task]
    return Watched(
        name=deployment.name,
        job=deployment.name,
        model=served_model(deployment),
        port=deployment.container.port,
        replicas=deployment.replicas,
        max_num_seqs=max_num_seqs_of(deployment),
        ttft_seconds=ttft_seconds if facts.completions else None,
        ttft_source=ttft_source if facts.completions else "",
        completes=bool(facts.completions),
        pools=bool(facts.trials),
        tells_metrics="--disable-log-stats" not in deployment.container.serve,
    )


def around(ttft_seconds: float) -> tuple[float, float] | None:
    """Return the two edges of the histogram around this value, or None where it is an edge or beyond the last one."""
    if ttft_seconds in TTFT_EDGES:
        return None
    upper = next((edge for edge in TTFT_EDGES if edge > ttft_seconds), None)
    lower = max((edge for edge in TTFT_EDGES if edge < ttft_seconds), default=0.0)
    return None if upper is None else (lower, upper)


def quoted(text: str) -> str:
    """Return a PromQL string. PromQL accepts every escape that JSON writes."""
    return json.dumps(text, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TtftTarget:
    """A limit for first tokens. `measured` is the time that 95 of 100 of them took in `cell`.

    `source` is a caveat to show with the limit: that the emulator measured it, or "".
    """

    seconds: float
    measured: float
    cell: Cell
    source: str = ""


def ttft_target(run: Run, points: Iterable[OperatingPoint]) -> TtftTarget | None:
    """Return the target from the slowest first tokens of the run's balanced points, or None without measurements.

    It is rounded up to an edge of the server's own histogram, which cannot resolve values between two edges.
    """
    balanced = [point.cell for point in points if point.aim is Aim.BALANCED]
    tails = [(cell.ttft_seconds.tail, cell) for cell in balanced if cell.ttft_seconds is not None]
    if not tails:
        return None
    slowest, cell = max(tails, key=lambda pair: pair[0])
    with_margin = ROOM * slowest
    limit = next((edge for edge in TTFT_EDGES if edge >= with_margin), with_margin)
    source = f"{limit:g} s is from run {run.id}, measured on the emulator, and says nothing about a TPU."
    return TtftTarget(seconds=limit, measured=slowest, cell=cell, source=source if run.subject.is_emulated else "")
