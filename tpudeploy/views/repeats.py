"""What a person was told before: a sweep asks the same places again and again, for hours. Programs hear all of it."""

from __future__ import annotations

from collections import defaultdict
from typing import TypeAlias

from tpudeploy.domain import events
from tpudeploy.domain.slices import Phase

_Place: TypeAlias = "tuple[str, str, str]"  # address, zone, provisioning
# What every request may come to, and what follows a refusal. Whatever else happens is news.
_USUAL = {Phase.CREATING, Phase.QUEUED, Phase.LEAVING, Phase.HUSK}


class Repeats:
    """Each kind of refusal is told once a place, until a request there comes further. `Waiting` sums up the others.

    It remembers by place, not by request: there is no end of those.
    """

    def __init__(self) -> None:
        self._refused: defaultdict[_Place, set[str]] = defaultdict(set)
        self._silent: dict[_Place, str] = {}

    def is_new(self, event: events.Event) -> bool:
        """Whether to tell it. To be asked once for every event, in their order."""
        match event:
            case events.Outlook():
                return False  # shown beside the lines, or not at all
            case events.LockHeld() | events.ChangeLeft():
                return False  # the error, or the end of the run, says it in a sentence
            case events.Requested():
                return self._is_first(event)
            case events.NotGranted() if event.landed:
                return True  # a slice was there, and is not: each time it is news
            case events.NotGranted():
                known = self._refused[_place(event)]
                is_new = event.kind not in known
                known.add(event.kind)
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
