"""A cloud of queued resources in virtual time: what a policy asks of a world, and what a look shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

from bench.hunting.courses import GONE, REFUSED, Turn, course, refusal_of
from bench.hunting.setting import CHIPS, DELETING, MINUTE, Deletion
from bench.hunting.worlds import Place, World

from tpudeploy.adapters.google.states import QUEUED_RESOURCE
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Phase, Refusal, Slice

# Google takes a deletion in these states, and does not do it.
_STUBBORN = frozenset({"CREATING", "PROVISIONING", "SUSPENDING", "DELETING"})


@dataclass(slots=True)
class Held:
    """One request that Google lists: what it is now, and what it turns into if nobody deletes it."""

    name: str
    place: Place
    model: Provisioning
    course: Iterator[Turn]
    now: Turn
    upcoming: Turn | None = None
    active_at: float | None = None
    is_given_back: bool = False
    undeleted: bool = False
    deletes_when_active: bool = False


class Cloud:
    """Time is an argument, and never goes back. `slices` is what a look shows; a refusal is shown until forgotten."""

    def __init__(self, world: World, metadata: Mapping[str, str] | None = None) -> None:
        self.slices: dict[str, Slice] = {}
        self.held: dict[str, Held] = {}
        self.creates = 0
        # Of the slices that were ACTIVE and are no longer: how many we gave back, how many Google took, chip-minutes.
        self.doubles = 0
        self.doomed = 0
        self.wasted = 0.0
        self._setting = world.setting
        self._places = {(place.zone, place.backend): place for place in world.places}
        self._metadata = metadata or {}
        self._agenda: list[tuple[float, int, Turn, Held]] = []
        self._numbers = count()

    def ask(
        self,
        now: float,
        name: str,
        zone: Zone,
        model: Provisioning,
        lapses: float,
        *,
        backend: Backend = Backend.QUEUED_RESOURCE,
    ) -> Refusal | None:
        """The refusal is a plain "no" to the call itself; others are shown by a look."""
        self.creates += 1
        place = self._places[zone, backend]
        if not place.has_quota:
            return refusal_of("quota-zero", zone, model)
        if self._is_over_quota(place):
            return refusal_of("quota-exhausted", zone, model)
        to_come = course(place, model, self._setting.refusals, now, lapses)
        holding = Held(name=name, place=place, model=model, course=to_come, now=Turn(now, "CREATING"))
        self.held[name] = holding
        self._show(holding)
        self._await_next(holding)
        self.pass_until(now)
        return None

    def release(self, now: float, name: str) -> None:
        holding = self.held.get(name)
        if holding is None:
            return
        if holding.now.state in _STUBBORN:
            self._ignore(holding)
            return
        holding.is_given_back = True
        holding.course = iter((Turn(now, "DELETING"), Turn(now + DELETING, GONE)))
        self._await_next(holding)
        self.pass_until(now)

    def active_since(self, name: str) -> float:
        """When it became ACTIVE, in seconds; infinite for not yet."""
        holding = self.held.get(name)
        return (
            math.inf
            if holding is None or holding.active_at is None or holding.now.state != "ACTIVE"
            else holding.active_at
        )

    def close(self, now: float, winner: str | None) -> None:
        """Settle what still stands beside the one that is kept."""
        for holding in self.held.values():
            if holding.name != winner and holding.active_at is not None and holding.now.state == "ACTIVE":
                self._end(holding, now)

    def forget(self, name: str) -> None:
        """Nobody looks at this name any more."""
        self.slices.pop(name, None)

    def next_turn(self) -> float:
        """When anything changes if nobody asks for anything; infinite for never."""
        agenda = self._agenda
        while agenda and agenda[0][2] is not agenda[0][3].upcoming:
            heappop(agenda)
        return agenda[0][0] if agenda else math.inf

    def pass_until(self, now: float) -> None:
        while self.next_turn() <= now:
            holding = heappop(self._agenda)[3]
            before = holding.now.state
            holding.now = turn = holding.upcoming or holding.now
            if before == "ACTIVE" and holding.active_at is not None:
                self._end(holding, turn.at)
            if turn.state == "ACTIVE":
                holding.active_at = turn.at
                if holding.deletes_when_active:
                    holding.is_given_back = True
                    holding.course = iter((Turn(turn.at, "DELETING"), Turn(turn.at + DELETING, GONE)))
            if turn.state in {GONE, REFUSED}:
                del self.held[holding.name]
            self._show(holding)
            self._await_next(holding)

    def _ignore(self, holding: Held) -> None:
        deletion = self._setting.deletion
        holding.undeleted = deletion is Deletion.FAILS
        holding.deletes_when_active |= deletion is Deletion.LATE and holding.now.state == "PROVISIONING"
        self._show(holding)

    def _end(self, holding: Held, at: float) -> None:
        """What was ACTIVE is so no longer."""
        assert holding.active_at is not None
        self.wasted += CHIPS * (at - holding.active_at) / MINUTE
        self.doubles += holding.is_given_back
        self.doomed += not holding.is_given_back

    def _await_next(self, holding: Held) -> None:
        holding.upcoming = turn = next(holding.course, None)
        if turn is not None:
            heappush(self._agenda, (turn.at, next(self._numbers), turn, holding))

    def _show(self, holding: Held) -> None:
        turn = holding.now
        if turn.state == GONE:
            self.slices.pop(holding.name, None)
            return
        self.slices[holding.name] = Slice(
            name=holding.name,
            zone=holding.place.zone,
            phase=Phase.REFUSED if turn.state == REFUSED else QUEUED_RESOURCE[turn.state],
            raw_state=turn.state,
            refusal=turn.refusal,
            undeleted=refusal_of("delete-refused", holding.place.zone, holding.model) if holding.undeleted else None,
            provisioning=holding.model,
            metadata=self._metadata,
        )

    def _is_over_quota(self, place: Place) -> bool:
        """Whatever stands counts, husks too, until it is gone."""
        quota = self._setting.quota
        if quota is None:
            return False
        pool = place.zone.region, place.backend
        standing = sum((holding.place.zone.region, holding.place.backend) == pool for holding in self.held.values())
        return (standing + 1) * CHIPS > quota
