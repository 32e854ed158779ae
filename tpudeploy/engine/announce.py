"""Saying that a replica serves, and sending clients there, before anything that they may hold begins to leave."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tpudeploy.domain import errors, events
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import address
from tpudeploy.domain.plan import Goal
from tpudeploy.domain.report import Endpoint
from tpudeploy.domain.slices import Health, Observed, Phase
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.step import Done, Forget, GiveUp, Release, Step
from tpudeploy.engine.about import about
from tpudeploy.engine.session import Session
from tpudeploy.ports import World


@frozen
class _Sent:
    """Where clients are to be sent: a slice, and how it is reached. `url` "": as the file says, if it says anything."""

    replica: int
    name: str
    url: str


class Announcer:
    """Remembers what was said of one deployment. The lowest replica's endpoint is the one that clients are given.

    A slice that leaves, or that has nothing to say any more, is not given to them: the file then names another that
    serves, or is withdrawn.
    """

    def __init__(self, world: World, goal: Goal) -> None:
        self._world = world
        self._goal = goal
        self._began = world.clock.now()
        self._endpoints: dict[int, Endpoint] = {}
        self._is_ensured = False

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(self._endpoints[replica] for replica in sorted(self._endpoints))

    def tell(self, held: Session, observed: Observed, steps: Iterable[Step]) -> None:
        """Emit `Serving` once for each slice, and see to it that clients are sent to one that stays.

        `steps` are what this look asks for, none of which was taken yet. Raise `errors.StateError` or `errors.Fault`.
        """
        known = tuple(steps)
        self._serves(held, [step for step in known if isinstance(step, Done)])
        leaving = {step.name for step in known if isinstance(step, Release | Forget)}
        failed = {step.name for step in known if isinstance(step, GiveUp) and not step.serves}
        standing = {
            attempt.name: record.index
            for record in held.state.records
            for attempt in record.attempts
            if attempt.name not in leaving and _stands(attempt, attempt.name in failed, observed)
        }
        self._endpoints = {r: e for r, e in self._endpoints.items() if e.slice_name in standing}
        self._send(held, self._target(held.state, standing, observed))

    def withdraw(self, held: Session) -> None:
        """Nothing serves any more. Raise `errors.StateError` or `errors.Fault`."""
        self._world.state.publish(self._goal.name, None)
        if held.state.published:
            held.save(replace(held.state, published=""))

    def _serves(self, held: Session, done: Iterable[Done]) -> None:
        for each in done:
            record = held.state.record(each.replica)
            attempt, known = record.attempt(each.name), self._endpoints.get(each.replica)
            if attempt is None or each.health is None:
                continue
            if not attempt.served:  # clients may hold it from here on, whatever becomes of this run
                held.save(held.state.with_record(record.with_attempt(replace(attempt, served=True))))
            if known is None or known.slice_name != each.name:
                self._endpoints[each.replica] = self._said(each.replica, attempt, each.health)

    def _said(self, replica: int, attempt: Attempt, health: Health) -> Endpoint:
        now = self._world.clock.now()
        what = about(attempt, address(self._goal.name, replica), at=now)
        self._world.emit(
            events.Serving(**what, url=health.url, door=health.door, answer=health.answer, elapsed=now - self._began)
        )
        if health.node_only:
            message = "It serves, by the machine's own completion, but cannot be reached from here."
            self._world.emit(events.Warned(at=now, address=what["address"], message=message, hint=health.detail))
        return Endpoint(
            address=what["address"],
            url=health.url,
            reached_from=health.door,
            zone=attempt.zone,
            slice_name=attempt.name,
        )

    def _target(self, state: State, standing: dict[str, int], observed: Observed) -> _Sent | None:
        """The lowest replica that is known to be as wanted; until there is one, whatever serves."""
        announced = {r: _Sent(replica=r, name=e.slice_name, url=e.url) for r, e in self._endpoints.items()}
        lowest = announced[min(announced)] if announced else None
        now = standing.get(state.published)
        if now is None:
            return lowest if lowest is not None else self._fallback(state, standing, observed)
        if lowest is not None and (lowest.replica < now or now in announced):
            return lowest
        return _Sent(replica=now, name=state.published, url=_url(state.published, observed))

    def _fallback(self, state: State, standing: dict[str, int], observed: Observed) -> _Sent | None:
        """What clients were sent to is lost: another one that has served, and still does."""
        served = [a.name for a in state.attempts if a.served and a.name in standing and _url(a.name, observed)]
        found = min(served, key=lambda name: (standing[name], name), default=None)
        return None if found is None else _Sent(replica=standing[found], name=found, url=_url(found, observed))

    def _send(self, held: Session, to: _Sent | None) -> None:
        """The state first: it says what clients may be sent to from here on, the file where they are."""
        state = held.state
        if to is None:
            if state.published:
                self.withdraw(held)
            return
        if not to.url or (to.name == state.published and self._is_ensured):
            return
        if not state.published and not self._goal.covers(0):
            return  # the first replica's endpoint is for whoever sees to that one
        told = self._told()
        if to.name == state.published and told.get("url") == to.url:
            self._is_ensured = True
            return
        before = told.get("generation")
        generation = max(state.generation + 1, state.next_attempt, before + 1 if isinstance(before, int) else 0)
        held.save(replace(state, published=to.name, generation=generation))
        body = {"url": to.url, "generation": generation, "since": self._world.clock.now()}
        self._world.state.publish(self._goal.name, body)
        self._is_ensured = True

    def _told(self) -> dict[str, object]:
        """What the file says; nothing where it cannot be read, for it is written anew."""
        try:
            return dict(self._world.state.published(self._goal.name) or {})
        except errors.StateUnreadable:
            return {}


def _stands(attempt: Attempt, has_failed: bool, observed: Observed) -> bool:
    """Whether clients may be sent there: it is up and stays, as far as is known."""
    if attempt.releasing_at is not None:
        return False
    found, health = observed.slices.get(attempt.name), observed.health.get(attempt.name)
    if has_failed and (health is None or not health.serving):
        return False
    return attempt.name in observed.unseen or (found is not None and found.phase is Phase.UP)


def _url(name: str, observed: Observed) -> str:
    health = observed.health.get(name)
    return health.url if health is not None and health.serving else ""
