"""How a server serves, by the statistics that vLLM logs every ten seconds while requests run.

The line's parts are those of vLLM 0.32.0 (v1/metrics/loggers.py, LoggingStatLogger.log and its aggregate); what may be
missing there is optional here. Counts of a line are of that moment, its preemptions since the line before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from tpudeploy.boot_log.said import number
from tpudeploy.domain.bootlog import Line, Load
from tpudeploy.domain.metrics import Figures
from tpudeploy.metrics.load import Budget
from tpudeploy.metrics.metrics import readings

_STATISTICS = re.compile(
    r"^(?P<who>Engine \d+|\d+ Engines Aggregated): Avg prompt throughput: (?P<prompt>[\d.]+) tokens/s, "
    r"Avg generation throughput: (?P<generation>[\d.]+) tokens/s, "
    r"Running: (?P<running>\d+) reqs, Waiting: (?P<waiting>\d+) reqs"
    r"(?:, Deferred: (?P<deferred>\d+) reqs)?(?:, KV fetch: [^,]*, [^,]*, [^,]*)?"
    r"(?:, Preemptions: (?P<preemptions>\d+))?"
    r"(?:, \w+ KV cache usage: (?P<used>[\d.]+)%)?"
)
_LATEST = 30  # lines of one engine: five minutes at the default interval


def load(lines: Sequence[Line], budget: Budget) -> Load | None:
    """Return how the latest statistics judge the server, or None where the log has none.

    Of several engines the figures are added up, and the fullest cache counts. What is judged is what holds for most of
    the lines: one full moment is no diagnosis.
    """
    engines: dict[str, list[dict[str, float]]] = {}
    for line in lines:
        match = _STATISTICS.search(line.text)
        if match is not None:
            engines.setdefault(match["who"], []).append({k: number(v) or 0.0 for k, v in match.groupdict().items()})
    if not engines:
        return None
    latest = [rows[-_LATEST:] for rows in engines.values()]

    def typical(part: str) -> float:
        return sum(median(row[part] for row in rows) for rows in latest)

    figures = Figures(
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
