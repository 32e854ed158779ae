"""Publish the endpoint of a deployment, and redirect clients before a slice that they may use begins to leave."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tpudeploy.domain import errors, events
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.life import ServerAnswered
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
class _Target:
    """The slice that clients are to be sent to. `url` is "" if it is not known now: the file keeps what it says."""

    replica: int
    name: str
    url: str


class EndpointPublisher:
    """Publishes the endpoint of the lowest replica that serves, and remembers what was reported.

    A slice that leaves or fails is not published: the file then names another one that serves, or is withdrawn.
    """

    def __init__(self, world: World, goal: Goal) -> None:
        self._world = world
        self._goal = goal
        self._began = world.clock.now()
        self._endpoints: dict[int, Endpoint] = {}
        self._is_file_current = False

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(self._endpoints[replica] for replica in sorted(self._endpoints))

    def publish(self, session: Session, observed: Observed, steps: Iterable[Step]) -> None:
        """Emit `Serving` once for each slice, and publish the endpoint of one that stays.

        `steps` are the steps of this observation, before any of them is executed. Raise `errors.StateError` or
        `errors.Fault`.
        """
        leaving: set[str] = set()
        failed: set[str] = set()
        for step in steps:
            match step:
                case Done(health=Health() as health):
                    self._report_serving(session, step.replica, step.name, health)
                case Release() | Forget():
                    leaving.add(step.name)
                case GiveUp(serves=False):
                    failed.add(step.name)
                case _:
                    # Every other step leaves clients where they are.
                    pass
        usable = {
            attempt.name: record.index
            for record in session.state.records
            for attempt in record.attempts
            if attempt.name not in leaving and _is_usable(attempt, observed, has_failed=attempt.name in failed)
        }
        self._endpoints = {
            replica: endpoint for replica, endpoint in self._endpoints.items() if endpoint.slice_name in usable
        }
        self._write(session, self._choose(session.state, usable, observed))

    def withdraw(self, session: Session) -> None:
        """Remove the published endpoint: nothing serves. Raise `errors.StateError` or `errors.Fault`."""
        self._world.state.publish(self._goal.name, None)
        if session.state.published:
            session.save(replace(session.state, published=""))

    def _report_serving(self, session: Session, replica: int, name: str, health: Health) -> None:
        record = session.state.record(replica)
        attempt, endpoint = record.attempt(name), self._endpoints.get(replica)
        if attempt is None:
            return
        # From here on clients may use the slice, whatever becomes of this run: that is saved before it is announced.
        if not attempt.is_announced:
            session.save(session.state.with_record(record.with_attempt(attempt.after(ServerAnswered()))))
        if endpoint is None or endpoint.slice_name != name:
            self._endpoints[replica] = self._announce(replica, attempt, health)

    def _announce(self, replica: int, attempt: Attempt, health: Health) -> Endpoint:
        now = self._world.clock.now()
        subject = about(attempt, address(self._goal.name, replica), at=now)
        self._world.emit(
            events.Serving(**subject, url=health.url, door=health.door, answer=health.answer, elapsed=now - self._began)
        )
        if health.node_only:
            self._world.emit(
                events.Warned(
                    at=now,
                    address=subject["address"],
                    message="It answered a completion request on its own machine, but it cannot be reached from here.",
                    hint=health.detail,
                )
            )
        return Endpoint(
            address=subject["address"],
            url=health.url,
            reached_from=health.door,
            zone=attempt.zone,
            slice_name=attempt.name,
        )

    def _choose(self, state: State, usable: dict[str, int], observed: Observed) -> _Target | None:
        """Return the lowest replica that matches the profile; until there is one, any slice that serves."""
        lowest = None
        if self._endpoints:
            replica = min(self._endpoints)
            endpoint = self._endpoints[replica]
            lowest = _Target(replica=replica, name=endpoint.slice_name, url=endpoint.url)
        published_replica = usable.get(state.published)
        # The published slice is lost: clients need another one now, be it one that the profile no longer describes.
        if published_replica is None:
            return lowest if lowest is not None else self._fallback(state, usable, observed)
        # A lower replica takes over, and so does the slice that replaces the published one in its replica.
        if lowest is not None and (lowest.replica < published_replica or published_replica in self._endpoints):
            return lowest
        # Nothing better serves yet: clients stay where they are.
        return _Target(replica=published_replica, name=state.published, url=_url(state.published, observed))

    def _fallback(self, state: State, usable: dict[str, int], observed: Observed) -> _Target | None:
        """Return a slice that has served before and still does, or None."""
        serving = [
            attempt.name
            for attempt in state.attempts
            if attempt.is_announced and attempt.name in usable and _url(attempt.name, observed)
        ]
        if not serving:
            return None
        name = min(serving, key=lambda name: (usable[name], name))
        return _Target(replica=usable[name], name=name, url=_url(name, observed))

    def _write(self, session: Session, target: _Target | None) -> None:
        """Publish `target`. The state is saved first: it names a slice that clients may use, the file where it is."""
        state = session.state
        if target is None:
            # Nothing serves: a file that names a lost slice would send clients nowhere.
            if state.published:
                self.withdraw(session)
            return
        # Without a URL the file already says the best that is known, and it is not written twice.
        if not target.url or (target.name == state.published and self._is_file_current):
            return
        # The first replica's endpoint is published by the run whose targets contain that replica.
        if not state.published and not self._goal.covers(0):
            return
        file = self._published_file()
        # An earlier run has written the same.
        if target.name == state.published and file.get("url") == target.url:
            self._is_file_current = True
            return
        file_generation = file.get("generation")
        next_of_file = file_generation + 1 if isinstance(file_generation, int) else 0
        generation = max(state.generation + 1, state.next_attempt, next_of_file)
        session.save(replace(state, published=target.name, generation=generation))
        body = {"url": target.url, "generation": generation, "since": self._world.clock.now()}
        self._world.state.publish(self._goal.name, body)
        self._is_file_current = True

    def _published_file(self) -> dict[str, object]:
        """Return the contents of the file, or nothing if it cannot be read: it is then replaced."""
        try:
            return dict(self._world.state.published(self._goal.name) or {})
        except errors.StateUnreadable:
            return {}


def _is_usable(attempt: Attempt, observed: Observed, *, has_failed: bool) -> bool:
    """Return whether clients may be sent there: the slice is up and stays, as far as is known."""
    if attempt.releasing_at is not None:
        return False
    slice_, health = observed.slices.get(attempt.name), observed.health.get(attempt.name)
    # A failed change does not matter as long as the endpoint itself still answers.
    if has_failed and (health is None or not health.serving):
        return False
    # A slice that could not be observed was up when it was last seen: its zone may only be slow to answer.
    return attempt.name in observed.unseen or (slice_ is not None and slice_.phase is Phase.UP)


def _url(name: str, observed: Observed) -> str:
    health = observed.health.get(name)
    return health.url if health is not None and health.serving else ""
