"""What people do by hand, or with a loop in a shell: one request at a time, looked at every fifteen seconds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from bench.hunting.cloud import Cloud
from bench.hunting.outcome import Outcome, next_look
from bench.hunting.setting import HORIZON, LASTING, MINUTE
from bench.hunting.worlds import Place, World

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning

# How long a queue is stood in before the next zone's is tried.
HOLD = 30 * MINUTE
# How long a sweep rests before it begins anew.
PAUSE = 5 * MINUTE
VALID_UNTIL = 2 * 60 * MINUTE


def one_queue(world: World) -> Outcome:
    """The first zone's queue, again and again."""
    person = _Person(world)
    place = next(iter(_offering(world, Provisioning.FLEX_START)))
    while person.is_patient and not person.gets(place, Provisioning.FLEX_START):
        pass
    return person.outcome()


def queue_after_queue(world: World) -> Outcome:
    """One zone's queue after the other, each for a while, round and round."""
    person = _Person(world)
    while person.is_patient:
        for place in _offering(world, Provisioning.FLEX_START):
            if person.gets(place, Provisioning.FLEX_START, hold=HOLD):
                return person.outcome()
    return person.outcome()


def sweep(world: World) -> Outcome:
    """One zone after the other, whatever fails fast; then a pause, and again."""
    person = _Person(world)
    while person.is_patient:
        for place in _offering(world, Provisioning.SPOT):
            if person.gets(place, Provisioning.SPOT):
                return person.outcome()
        person.rests(PAUSE)
    return person.outcome()


def blacklist(world: World) -> Outcome:
    """One zone after the other, whatever fails fast; what has refused once is never asked again."""
    person = _Person(world)
    any(person.gets(place, Provisioning.SPOT) for place in _offering(world, Provisioning.SPOT))
    return person.outcome()


BASELINES: Mapping[str, Callable[[World], Outcome]] = {
    "one-queue": one_queue,
    "queue-after-queue": queue_after_queue,
    "sweep": sweep,
    "blacklist": blacklist,
}


def _offering(world: World, model: Provisioning) -> Iterable[Place]:
    """All zones, where none offers it: a person asks nevertheless."""
    places = world.of_api(Backend.QUEUED_RESOURCE)
    return [place for place in places if model in place.offers] or places


class _Person:
    """Before one cloud, with a clock."""

    def __init__(self, world: World) -> None:
        self._cloud = Cloud(world)
        self._boot = world.setting.boot
        # A call about the zone that is listed second takes this long, to create and to look.
        self._slow = {world.places[1].zone: world.setting.slow} if world.setting.slow else {}
        self._now = 0.0
        self._kept: str | None = None
        self._usable_at = math.inf

    @property
    def is_patient(self) -> bool:
        return self._kept is None and self._now < HORIZON

    def gets(self, place: Place, model: Provisioning, hold: float = math.inf) -> bool:
        """Ask, wait until it serves, and see whether it lasts; give up what is dead, and what queues after `hold` seconds.

        What did not last is gone afterwards.
        """
        slow = self._slow.get(place.zone, 0.0)
        if slow:
            self._looks_after(self._now + slow)
        cloud, name, enough = self._cloud, str(self._cloud.creates), self._now + hold
        if cloud.ask(self._now, name, place.zone, model, lapses=self._now + VALID_UNTIL) is not None:
            self._looks_after(0.0)
            return False
        while name in cloud.held:
            self._looks_after(min(cloud.next_turn(), enough) + slow)
            holding = cloud.held.get(name)
            state = holding.now.state if holding is not None else ""
            if state == "ACTIVE" and self._lasts(name):
                self._kept = name
                return True
            if state in {"FAILED", "SUSPENDED"} or (state == "WAITING_FOR_RESOURCES" and self._now >= enough):
                cloud.release(self._now, name)
                enough = math.inf
        cloud.forget(name)
        return False

    def _lasts(self, name: str) -> bool:
        """Stay until it has served for long enough, or is no longer there."""
        boot = self._cloud.active_since(name) + self._boot
        while self._cloud.active_since(name) < math.inf:
            if self._now >= boot:
                self._usable_at = min(self._usable_at, self._now)
            if self._now >= boot + LASTING:
                return True
            self._looks_after(min(self._cloud.next_turn(), boot if self._now < boot else boot + LASTING))
        self._usable_at = math.inf
        return False

    def rests(self, seconds: float) -> None:
        self._looks_after(self._now + seconds)

    def outcome(self) -> Outcome:
        return Outcome.of(self._cloud, now=self._now, usable_at=self._usable_at, winner=self._kept)

    def _looks_after(self, moment: float) -> None:
        self._now = next_look(self._now, moment)
        self._cloud.pass_until(self._now)
