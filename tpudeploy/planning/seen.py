"""What a plan found of the slices it touches, and whether that still holds: a saved plan is for the world it saw."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from tpudeploy.domain.plan import Action, Change, Precondition
from tpudeploy.domain.slices import BootReport
from tpudeploy.domain.state import State
from tpudeploy.reconcile.fate import Fate, Judged, Moment, judge

# A request that still waits may be granted, or come further, without making another plan of it.
_ASKED = "asked"
_ALIVE = {Fate.HIDDEN, Fate.WAITING}


def seen(state: State, moment: Moment, changes: Iterable[Change]) -> tuple[Precondition, ...]:
    """Every slice of the replicas that `changes` touch."""
    touched = [c.replica for c in changes if c.action is not Action.NO_OP]
    reports = moment.observed.reports
    return tuple(
        Precondition(name=attempt.name, print=_print(judge(attempt, moment), reports.get(attempt.name)))
        for index in touched
        for attempt in state.record(index).attempts
    )


def changed(before: Iterable[Precondition], now: Iterable[Precondition]) -> tuple[str, ...]:
    """The names of those that are no longer as they were."""
    prints = {each.name: each.print for each in now}
    return tuple(each.name for each in before if not _holds(each, prints))


def _holds(before: Precondition, now: Mapping[str, str]) -> bool:
    found = now.get(before.name)
    return found == before.print or (before.print == _ASKED and found not in {None, *Fate})


def _print(judged: Judged, report: BootReport | None) -> str:
    """Addresses and how far a boot has come are left out: they pass."""
    if judged.fate in _ALIVE:
        return _ASKED
    if judged.fate is not Fate.UP or judged.slice is None:
        return judged.fate
    shown = judged.slice
    runs = "" if report is None else report.spec
    facts = [shown.accelerator_type, shown.created_at, dict(shown.labels), dict(shown.metadata), runs]
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
