"""A whole log → Reading."""

from __future__ import annotations

from collections.abc import Sequence

from tpudeploy.boot_log import cause, timeline
from tpudeploy.boot_log.lines import lines
from tpudeploy.boot_log.load import load
from tpudeploy.boot_log.said import said
from tpudeploy.domain.bootlog import Cause, Line, Reading
from tpudeploy.domain.budget import HbmBudget


def read(text: str, *, budget: HbmBudget | None = None) -> Reading:
    """Of several starts in one log, the last. `budget` is the profile's: remedies are then for its settings.

    Takes any text: what is cut, garbled or no log at all has no phases, and at worst an unknown cause.
    """
    boot = last_start(list(lines(text)))
    start = _last_server(boot)
    ready = next((n for n, line in enumerate(start) if timeline.READY.search(line.text)), None)
    found = cause.first(start if ready is None else start[ready:], said(start, budget), is_serving=ready is not None)
    until = len(boot) if ready is None else len(boot) - len(start) + ready + 1
    dated = [line.at for line in boot[:until] if line.at is not None]
    return Reading(
        phases=timeline.phases(boot),
        graphs=timeline.graphs(boot),
        seconds=max(dated) - dated[0] if dated else 0.0,
        is_serving=ready is not None and (found is None or cause.is_partial(found)),
        cause=found,
        notes=tuple(cause.notes(boot)),
        load=None if ready is None or found is not None else load(start[ready:], budget),
    )


def cause_of(words: str, *, budget: HbmBudget | None = None) -> Cause | None:
    """What a line or two are a sign of, where they are known."""
    every = list(lines(words))
    return cause.first(every, said(every, budget), is_serving=True)


def has_ended(text: str) -> bool:
    """Whether the last boot in it serves, or said that it failed."""
    start = last_start(list(lines(text)))
    return any(timeline.READY.search(line.text) or line.text.startswith("failed: ") for line in start)


def last_start(every: Sequence[Line]) -> Sequence[Line]:
    """Return the lines from where the last boot began: one that came up says nothing by how the one before it died."""
    boots = [n for n, line in enumerate(every) if line.text.startswith("booted: ")]
    return every[boots[-1] :] if boots else _last_server(every)


def _last_server(boot: Sequence[Line]) -> Sequence[Line]:
    """Return the lines from where the last server of a boot began; the first has imports before its flags."""
    servers = [n for n, line in enumerate(boot) if line.text.startswith("non-default args:")]
    return boot[servers[-1] :] if len(servers) > 1 else boot
