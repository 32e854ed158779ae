"""A start's parts, from the machine's log or, where that cannot be had, from its own short account of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tpudeploy.boot_log.read import read
from tpudeploy.domain.bootlog import Phase, Reading
from tpudeploy.domain.slices import BootReport
from tpudeploy.domain.status import Timeline

# As templates/boot/report.sh names its phases; those of what is gathered are noted as parts, with their ends.
_CONTAINER = "starting"
_NAMES = {"docker": "docker", "image": "image", "secrets": "secrets", _CONTAINER: "container"}
_SERVES = "serving"


def timeline(address: str, slice_name: str, log: str, report: BootReport | None) -> Timeline | None:
    """None where neither says anything of a start."""
    told = read(log)
    reading = told if told.phases else _account("" if report is None else report.timeline)
    if not reading.phases:
        return None
    return Timeline(
        address=address,
        slice_name=slice_name,
        reading=reading,
        critical=critical_path(reading.phases),
        cache="" if report is None else report.cache,
        is_whole=reading is told,
    )


def critical_path(phases: Sequence[Phase]) -> tuple[Phase, ...]:
    """From the part that ended last back to the first, each time to the one that ended last before it began.

    Parts that ended a second too late to have been waited for are taken for it: times are whole seconds.
    """
    path: list[Phase] = []
    left = [phase for phase in phases if phase.seconds is not None]
    while left:
        last = max(left, key=lambda phase: (_end(phase), phase.seconds))
        path.append(last)
        left = [phase for phase in left if phase.began < last.began and _end(phase) <= last.began + 1]
    return tuple(phase for phase in reversed(path) if phase.seconds)


def _end(phase: Phase) -> float:
    return phase.began + (phase.seconds or 0.0)


def _account(text: str) -> Reading:
    """Lines of `NAME BEGAN ENDED`, and of phases that end where the next begins: `NAME BEGAN`; seconds of the epoch."""
    rows = [words for words in map(str.split, text.splitlines()) if all(word.isdecimal() for word in words[1:])]
    marks = [(words[0], float(words[1])) for words in rows if len(words) == 2]  # noqa: PLR2004 - of a phase
    parts = {words[0]: (float(words[1]), float(words[2])) for words in rows if len(words) == 3}  # noqa: PLR2004 - of a part
    start = min((at for _, at in marks), default=0.0)
    end = max((*(at for _, at in marks), *(ended for _, ended in parts.values())), default=start)
    phases = [
        Phase(name=n, began=began - start, seconds=max(0.0, ended - began)) for n, (began, ended) in parts.items()
    ]
    phases += (phase for phase in _phases(marks, start) if phase.name not in parts)
    return Reading(
        phases=tuple(sorted(phases, key=lambda phase: phase.began)),
        graphs=0,
        seconds=end - start,
        is_serving=any(name == _SERVES for name, _ in marks),
        cause=None,
    )


def _phases(marks: Sequence[tuple[str, float]], start: float) -> Iterator[Phase]:
    """Each phase from its first mark to the next phase's; the server reports its milestones under one name."""
    firsts = [mark for n, mark in enumerate(marks) if mark[0] not in {name for name, _ in marks[:n]}]
    for (name, at), (_, following) in pairwise(firsts):
        if name in _NAMES:
            yield Phase(name=_NAMES[name], began=at - start, seconds=following - at)
    for name, at in firsts[-1:]:
        if name in _NAMES:
            yield Phase(name=_NAMES[name], began=at - start, seconds=None)
