"""Suppress repeated event lines for people: a sweep asks the same places for hours. Programs get every event."""

from __future__ import annotations

from collections import defaultdict
from typing import TypeAlias

from tpudeploy.domain import events
from tpudeploy.domain.slices import Phase

_Place: TypeAlias = "tuple[str, str, str]"  # address, zone, provisioning
# Phases that any request may reach, and that follow a refusal. Every other phase is news.
_USUAL = {Phase.CREATING, Phase.QUEUED, Phase.SUSPENDING, Phase.LEAVING, Phase.HUSK}


class Repeats:
    """Shows each kind of refusal once per place, until a request there gets further. `Waiting` summarises the others.

    It stores places, not requests, because the number of requests is unbounded.
    """

    def __init__(self) -> None:
        self._refused: defaultdict[_Place, set[str]] = defaultdict(set)
        self._silent: dict[_Place, str] = {}

    def is_new(self, event: events.Event) -> bool:
        """Return whether to show an event. Call it once for each event, in order."""
        match event:
            case events.Outlook():
                return False  # only the live table shows it
            case events.LockHeld() | events.ChangeLeft():
                return False  # the error or the run's summary says it
            case events.Requested():
                return self._is_first(event)
            case events.NotGranted() if event.landed:
                return True  # a granted slice failed: always news
            case events.NotGranted():
                kinds = self._refused[_place(event)]
                is_new = event.kind not in kinds
                kinds.add(event.kind)
                return is_new
            case events.PhaseChanged() if event.phase not in _USUAL:
                self._refused.pop(_place(event), None)
                self._silent.pop(_place(event), None)
            case events.PhaseChanged() | events.Released() | events.Gone():
                return self._silent.get(_place(event)) != event.name
        return True

    def _is_first(self, event: events.Requested) -> bool:
        if _place(event) not in self._refused:
            return True
        self._silent[_place(event)] = event.name
        return False


def _place(event: events.Requested | events.NotGranted | events.PhaseChanged | events.Released | events.Gone) -> _Place:
    return event.address, event.zone, event.provisioning
