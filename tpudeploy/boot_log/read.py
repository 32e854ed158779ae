"""A whole log as a ParsedLog: its phases, its cause of failure, or how the server serves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from tpudeploy.boot_log import cause, phases
from tpudeploy.boot_log.lines import last_boot, last_server, parse_lines
from tpudeploy.boot_log.reading import Cause, Load, LogLine, ParsedLog
from tpudeploy.boot_log.settings import read_facts
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.metrics import EngineFigures
from tpudeploy.metrics.advice import Budget
from tpudeploy.metrics.readings import readings
from tpudeploy.sizing.numbers import parse_number

# vLLM logs these statistics every ten seconds while requests run (0.32.0 v1/metrics/loggers.py, LoggingStatLogger.log
# and its aggregate); what may be missing there is optional here. Counts of a line are of that moment, its preemptions
# since the line before.
_STATISTICS = re.compile(
    r"^(?P<who>Engine \d+|\d+ Engines Aggregated): Avg prompt throughput: (?P<prompt>[\d.]+) tokens/s, "
    r"Avg generation throughput: (?P<generation>[\d.]+) tokens/s, "
    r"Running: (?P<running>\d+) reqs, Waiting: (?P<waiting>\d+) reqs"
    r"(?:, Deferred: (?P<deferred>\d+) reqs)?(?:, KV fetch: [^,]*, [^,]*, [^,]*)?"
    r"(?:, Preemptions: (?P<preemptions>\d+))?"
    r"(?:, \w+ KV cache usage: (?P<used>[\d.]+)%)?"
)
# What `ports.Logs` puts before the lines of every worker of a slice but worker 0, which starts the server.
_WORKER = re.compile(r"^(worker \d+): ", re.MULTILINE)
_LATEST = 30  # lines of one engine: five minutes at the default interval


def read(text: str, *, budget: HbmBudget | None = None) -> ParsedLog:
    """Return the reading of the last start in a log. `budget` is the profile's: remedies are then for its settings.

    Of several hosts, it is that of worker 0, unless another one has failed and worker 0 has not.
    Takes any text: one that is cut, garbled or no log at all has no phases, and at worst an unknown cause.
    """
    head, *others = _logs_of_hosts(text)
    reading = _read_host(head, budget)
    if reading.cause is not None:
        return reading
    readings = (_read_host(other, budget) for other in others if _has_failed(other))
    return next((other for other in readings if other.cause is not None), reading)


def _logs_of_hosts(text: str) -> list[str]:
    """Return the log of each host, that of worker 0 first. The lines of the others are empty in it, so numbers stay."""
    if _WORKER.search(text) is None:
        return [text]
    lines = text.split("\n")
    workers = [match[1] if (match := _WORKER.match(line)) else "" for line in lines]
    return [
        "\n".join(
            line.removeprefix(f"{host}: ") if worker == host else ""
            for line, worker in zip(lines, workers, strict=True)
        )
        for host in sorted(set(workers) | {""})
    ]


def _read_host(text: str, budget: HbmBudget | None) -> ParsedLog:
    """Return the reading of the last start in the log of one host."""
    boot = last_boot(list(parse_lines(text)))
    start = last_server(boot)
    ready = next((n for n, line in enumerate(start) if phases.READY.search(line.text)), None)
    relevant = start if ready is None else start[ready:]
    first = cause.first_cause(relevant, read_facts(start, budget), is_serving=ready is not None)
    end = len(boot) if ready is None else len(boot) - len(start) + ready + 1
    last = phases.last_start(boot)
    times = [line.at for line in boot[len(boot) - len(last) : end] if line.at is not None]
    began = times[0] if times else 0.0
    return ParsedLog(
        phases=tuple(replace(each, began=max(0.0, each.began - began)) for each in phases.phases(last)),
        graphs=phases.count_graphs(last),
        seconds=max(times, default=began) - began,
        is_serving=ready is not None and (first is None or cause.is_partial(first)),
        cause=first,
        notes=tuple(cause.harmless_lines(boot)),
        load=None if ready is None or first is not None else _load(relevant, budget),
    )


def cause_of(words: str, *, budget: HbmBudget | None = None) -> Cause | None:
    """Return the cause that a line or two are a sign of, or None where they are not known."""
    lines = list(parse_lines(words))
    return cause.first_cause(lines, read_facts(lines, budget), is_serving=True)


_TAIL = 5  # lines by which the place of an earlier read is found again


def has_ended(text: str) -> bool:
    """Return whether the last boot in the log serves, or reported that it failed."""
    start = last_boot(list(parse_lines(text)))
    return any(phases.READY.search(line.text) or line.text.startswith("failed: ") for line in start)


def new_lines(before: tuple[str, ...], lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines that follow those of an earlier read. A log that keeps its newest lines alone moves on."""
    if lines[: len(before)] == before:
        return lines[len(before) :]
    tail = before[-_TAIL:]
    for end in range(len(lines), len(tail) - 1, -1):
        if lines[end - len(tail) : end] == tail:
            return lines[end:]
    return lines


def _has_failed(text: str) -> bool:
    """Return whether the last boot in the log of a host reported that it failed."""
    return any(line.text.startswith("failed: ") for line in last_boot(list(parse_lines(text))))


def _load(lines: Sequence[LogLine], budget: Budget) -> Load | None:
    """Return how the latest statistics judge the server, or None where the log has none.

    The figures of several engines are added up, and the fullest cache counts. A judgement holds for most of the lines:
    one full moment is no diagnosis.
    """
    engines: dict[str, list[dict[str, float]]] = {}
    for line in lines:
        match = _STATISTICS.search(line.text)
        if match is not None:
            row = {name: parse_number(value) or 0.0 for name, value in match.groupdict().items()}
            engines.setdefault(match["who"], []).append(row)
    if not engines:
        return None
    latest = [rows[-_LATEST:] for rows in engines.values()]

    def typical(part: str) -> float:
        return sum(median(row[part] for row in rows) for rows in latest)

    figures = EngineFigures(
        running=typical("running"),
        waiting={"capacity": typical("waiting") - typical("deferred"), "deferred": typical("deferred")},
        kv_cache_used=max(median(row["used"] for row in rows) for rows in latest) / 100,
        preemptions=sum(row["preemptions"] for rows in latest for row in rows),
        since="in these lines",
    )
    return Load(
        lines=sum(map(len, latest)),
        prompt_tokens_per_second=typical("prompt"),
        generation_tokens_per_second=typical("generation"),
        readings=readings(figures, budget),
    )
