"""The start of the server that runs now: how long it took, and what it had from the compile cache.

Its log tells it, and where that cannot be had, the machine's own account of its phases.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tpudeploy.boot_log import timeline
from tpudeploy.boot_log.effective import effective
from tpudeploy.boot_log.lines import lines
from tpudeploy.boot_log.said import number
from tpudeploy.domain.benchmark import Start
from tpudeploy.domain.bootlog import Line
from tpudeploy.domain.slices import BootReport

_ARGUMENTS = "non-default args:"  # the first line that every `vllm serve` writes of itself
_CONTAINER = "starting: "
# What templates/boot/cache.sh says once the server has completed a prompt.
_COUNTED = re.compile(r"(\d+) programs were here, (\d+) were compiled anew")
_SCRIPT = re.compile(rf"^cache: .*?: {_COUNTED.pattern}")
_MARK = 2  # words of a line of the report's timeline that says when a phase began: its name, seconds of the epoch
_LOOKED_UP = re.compile(r"(\d+) of (\d+)")


def last_start(text: str) -> Start | None:
    """Return the start of the last server in a log; None where it is not whole in it, or not dated."""
    every = list(lines(text))
    servers = [n for n, line in enumerate(every) if line.text.startswith(_ARGUMENTS)]
    if not servers:
        return None
    server = every[servers[-1] :]
    began, ended = _began(every, servers), _ready(server)
    if began is None or ended is None:
        return None
    told = effective("\n".join(text.splitlines()[server[0].number - 1 :]))
    cached, programs = _programs(server, told.get("cache_hits", ""))
    return Start(
        seconds=max(0.0, ended - began),
        compile_seconds=number(told.get("compile_seconds", "")),
        programs_cached=cached,
        programs=programs,
    )


def reported_start(report: BootReport) -> Start | None:
    """Return the start that a machine reports itself; None where its report does not tell one.

    A change in place adds its phases to those of the boot before: the last ones count.
    """
    rows = [words for words in map(str.split, report.timeline.splitlines()) if len(words) == _MARK]
    marks = {words[0]: float(words[1]) for words in rows if words[1].isdecimal()}
    began, ended = marks.get("starting"), marks.get("serving")
    if began is None or ended is None or ended < began:
        return None
    counted = _COUNTED.search(report.cache)
    if counted is None:
        return Start(seconds=ended - began)
    cached, anew = int(counted[1]), int(counted[2])
    return Start(seconds=ended - began, programs_cached=cached, programs=cached + anew)


def _began(every: Sequence[Line], servers: Sequence[int]) -> float | None:
    """When its container was started; of a log without the script's lines, when it wrote its arguments."""
    *_, last = servers
    before = servers[-2] if len(servers) > 1 else 0
    containers = [line.at for line in every[before:last] if line.text.startswith(_CONTAINER) and line.at is not None]
    return containers[-1] if containers else every[last].at


def _ready(server: Sequence[Line]) -> float | None:
    return next((line.at for line in server if timeline.READY.search(line.text)), None)


def _programs(server: Sequence[Line], hits: str) -> tuple[int | None, int | None]:
    """By the script, which counts files before and after; else by jax, where it logs each look-up."""
    counted = next((found for line in server if (found := _SCRIPT.search(line.text))), None)
    if counted is not None:
        return int(counted[1]), int(counted[1]) + int(counted[2])
    looked_up = _LOOKED_UP.fullmatch(hits)
    return (None, None) if looked_up is None else (int(looked_up[1]), int(looked_up[2]))
