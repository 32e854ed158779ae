"""The last start of a server: its time, its compile cache and its parts, by its log or the machine's own report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tpudeploy.boot_log import phases
from tpudeploy.boot_log.lines import SERVER_STARTS, parse_lines, server_starts
from tpudeploy.boot_log.read import read
from tpudeploy.boot_log.reading import LogLine, ParsedLog, StartPhase, Timeline
from tpudeploy.boot_log.settings import effective_settings
from tpudeploy.domain.slices import BootReport
from tpudeploy.domain.starts import MeasuredStart
from tpudeploy.sizing.numbers import parse_number

# templates/boot/cache.sh writes it once the server has completed a prompt.
_COUNTS = re.compile(r"(\d+) programs were here, (\d+) were compiled anew")
_SCRIPT = re.compile(rf"^cache: .*?: {_COUNTS.pattern}")
_RESOLUTION = 1.0  # seconds: the times of a log are whole ones
_LOOKUPS = re.compile(r"(\d+) of (\d+)")
# templates/boot/report.sh writes a phase as its name and the second of the epoch when it began, and a part that is
# fetched side by side with others with its end as well.
_MARK, _PART = 2, 3
_CONTAINER, _SERVES = "starting", "serving"
_NAMES = {"docker": "docker", "image": "image", "secrets": "secrets", _CONTAINER: "container"}


def last_start(text: str) -> MeasuredStart | None:
    """Return the start of the last server in a log; None where it is not whole in it, or not dated.

    A start that is shorter than the compilation in it was read wrongly, and isn't returned.
    """
    lines = list(parse_lines(text))
    servers = server_starts(lines)
    if not servers:
        return None
    server = lines[servers[-1] :]
    began = _container_start(lines, servers)
    ready = next((line.at for line in server if phases.READY.search(line.text)), None)
    if began is None or ready is None:
        return None
    settings = effective_settings("\n".join(text.splitlines()[server[0].number - 1 :]))
    cached, programs = _programs(server, settings.get("cache_hits", ""))
    compile_seconds = parse_number(settings.get("compile_seconds", ""))
    if ready < began or (compile_seconds or 0.0) > ready - began + _RESOLUTION:
        return None
    return MeasuredStart(
        seconds=ready - began,
        compile_seconds=compile_seconds,
        programs_cached=cached,
        programs=programs,
    )


def _container_start(lines: Sequence[LogLine], servers: Sequence[int]) -> float | None:
    """Return when its container was started; in a log without the script's lines, when it wrote its arguments."""
    previous = servers[-2] if len(servers) > 1 else 0
    times = [line.at for line in lines[previous : servers[-1]] if line.text.startswith(SERVER_STARTS)]
    dated = [at for at in times if at is not None]
    return dated[-1] if dated else lines[servers[-1]].at


def _programs(server: Sequence[LogLine], hits: str) -> tuple[int | None, int | None]:
    """Return how many programs were cached, and all: by the script, which counts files, else by jax's look-ups."""
    counts = next((match for line in server if (match := _SCRIPT.search(line.text))), None)
    if counts is not None:
        return int(counts[1]), int(counts[1]) + int(counts[2])
    lookups = _LOOKUPS.fullmatch(hits)
    return (None, None) if lookups is None else (int(lookups[1]), int(lookups[2]))


def reported_start(report: BootReport) -> MeasuredStart | None:
    """Return the start that a machine reports itself; None where its report does not have one.

    A change in place adds its phases to those of the boot before: the last ones count.
    """
    marks = dict(_rows(report.timeline, _MARK))
    began, ended = marks.get(_CONTAINER), marks.get(_SERVES)
    if began is None or ended is None or ended[0] < began[0]:
        return None
    seconds = ended[0] - began[0]
    counts = _COUNTS.search(report.cache)
    if counts is None:
        return MeasuredStart(seconds=seconds)
    return MeasuredStart(seconds=seconds, programs_cached=int(counts[1]), programs=int(counts[1]) + int(counts[2]))


def _rows(text: str, length: int) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield the name and the times of each row of a report's timeline that has `length` words."""
    for words in map(str.split, text.splitlines()):
        if len(words) == length and all(word.isdecimal() for word in words[1:]):
            yield words[0], tuple(map(float, words[1:]))


def timeline(address: str, slice_name: str, log: str, report: BootReport | None) -> Timeline | None:
    """Return the parts of the last start, or None where neither log nor report has any."""
    reading = logged = read(log)
    if not logged.phases:
        reading = _reported_reading("" if report is None else report.timeline)
    if not reading.phases:
        return None
    return Timeline(
        address=address,
        slice_name=slice_name,
        reading=reading,
        critical=critical_path(reading.phases),
        cache="" if report is None else report.cache,
        is_whole=reading is logged,
    )


def critical_path(phases: Sequence[StartPhase]) -> tuple[StartPhase, ...]:
    """Return the path from the part that ended last back to the first, each time to the one that ended last before it.

    A part that ended up to a second too late to have been waited for counts too: times are whole seconds.
    """
    path: list[StartPhase] = []
    remaining = [phase for phase in phases if phase.seconds is not None]
    while remaining:
        last = max(remaining, key=lambda phase: (_end(phase), phase.seconds))
        path.append(last)
        remaining = [phase for phase in remaining if phase.began < last.began and _end(phase) <= last.began + 1]
    return tuple(phase for phase in reversed(path) if phase.seconds)


def _end(phase: StartPhase) -> float:
    return phase.began + (phase.seconds or 0.0)


def _reported_reading(text: str) -> ParsedLog:
    """Return the reading of a machine's own report; its times are seconds of the epoch."""
    text = _last_start_rows(text)
    marks = [(name, times[0]) for name, times in _rows(text, _MARK)]
    parts = dict(_rows(text, _PART))
    start = min((at for _, at in marks), default=0.0)
    end = max((*(at for _, at in marks), *(ended for _, ended in parts.values())), default=start)
    reported = [
        StartPhase(name=name, began=began - start, seconds=max(0.0, ended - began))
        for name, (began, ended) in parts.items()
    ]
    reported += (phase for phase in _marked_phases(marks, start) if phase.name not in parts)
    return ParsedLog(
        phases=tuple(sorted(reported, key=lambda phase: phase.began)),
        graphs=0,
        seconds=end - start,
        is_serving=any(name == _SERVES for name, _ in marks),
        cause=None,
    )


def _last_start_rows(text: str) -> str:
    """Return the rows of the last start: a change in place adds its rows to those of the boot before."""
    rows = text.splitlines()
    ends = [n for n, row in enumerate(rows[:-1]) if row.startswith(f"{_SERVES} ")]
    return "\n".join(rows[ends[-1] + 1 :] if ends else rows)


def _marked_phases(marks: Sequence[tuple[str, float]], start: float) -> Iterator[StartPhase]:
    """Yield each phase from its first mark to the next phase's; the server reports its milestones under one name."""
    firsts = [mark for n, mark in enumerate(marks) if mark[0] not in {name for name, _ in marks[:n]}]
    for (name, at), (_, following) in pairwise([*firsts, ("", None)]):
        if name in _NAMES and at is not None:
            yield StartPhase(name=_NAMES[name], began=at - start, seconds=None if following is None else following - at)
