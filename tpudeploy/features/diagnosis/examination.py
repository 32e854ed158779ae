"""One server as it was examined: what its metrics said in a window, the bounds of its chips, and the findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.metrics import EngineFigures
from tpudeploy.features.benchmark.roofline import Roofline
from tpudeploy.features.diagnosis.findings import ServerEvidence, ServerFinding, Weight, findings
from tpudeploy.features.diagnosis.window import serving_window
from tpudeploy.metrics.advice import Budget
from tpudeploy.text.words import latency


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerExamination:
    """One server. `figures` are numbers by name, in seconds or counts; `texts` are the same in words.

    `silent` says why there are none.
    """

    address: str
    url: str
    seconds: float
    figures: Mapping[str, float]
    texts: Mapping[str, str]
    findings: tuple[ServerFinding, ...] = ()
    silent: str = ""

    @property
    def problems(self) -> tuple[ServerFinding, ...]:
        return tuple(finding for finding in self.findings if finding.weight is Weight.PROBLEM)


def examine(
    address: str,
    url: str,
    looks: tuple[EngineFigures | Unknown, EngineFigures | Unknown],
    seconds: float,
    *,
    budget: Budget,
    roofline: Roofline | None,
) -> ServerExamination:
    """Return what two looks at a server's metrics say. A server that one of them missed is silent."""
    before, now = looks
    if isinstance(before, Unknown) or isinstance(now, Unknown):
        missing = now if isinstance(now, Unknown) else before
        assert isinstance(missing, Unknown)
        return ServerExamination(
            address=address, url=url, seconds=seconds, figures={}, texts={}, silent=missing.because
        )
    evidence = ServerEvidence(window=serving_window(before, now, seconds), budget=budget, roofline=roofline)
    rows = tuple(_rows(evidence))
    return ServerExamination(
        address=address,
        url=url,
        seconds=seconds,
        figures={name: figure for name, figure, _ in rows},
        texts={name: text for name, _, text in rows},
        findings=findings(evidence),
    )


def _rows(server: ServerEvidence) -> Iterator[tuple[str, float, str]]:
    """Yield name, number and words of each figure that is known."""
    window, within = server.window, server.window.within
    if within.running is not None:
        yield "running", window.running, f"{window.running:,.0f} requests"
    if within.waiting:
        waiting = sum(within.waiting.values())
        yield "waiting", waiting, f"{waiting:,.0f} requests"
    if within.kv_cache_used is not None:
        yield "kv_cache_used", within.kv_cache_used, f"{within.kv_cache_used:.1%}"
    if within.preemptions is not None:
        yield "preemptions", within.preemptions, f"{within.preemptions:,.0f} {within.since}"
    if within.finished:
        yield "finished", window.requests, f"{window.requests:,.0f} requests {within.since}"
    yield from _latency("ttft_seconds", window.ttft_seconds, server.least_ttft_seconds)
    yield from _latency("tpot_seconds", window.tpot_seconds, server.least_tpot_seconds)
    if within.queued is not None and within.queued.mean is not None:
        yield "queue_seconds", within.queued.mean, latency(within.queued.mean)


def _latency(name: str, measured: float | None, least: float | None) -> Iterator[tuple[str, float, str]]:
    if measured is None:
        return
    bound = "" if least is None else f" (the chips need at least {latency(least)})"
    yield name, measured, f"{latency(measured)} on average{bound}"
    if least is not None:
        yield f"least_{name}", least, latency(least)
