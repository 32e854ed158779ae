"""Saying that a replica serves, and where, the moment it does: what else is still leaving keeps nobody waiting."""

from __future__ import annotations

from tpudeploy.domain import events
from tpudeploy.domain.names import address
from tpudeploy.domain.report import Endpoint
from tpudeploy.domain.slices import Health
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.step import Done
from tpudeploy.engine.about import about
from tpudeploy.ports import World


class Announcer:
    """Remembers what was said of one deployment. The lowest replica's endpoint is the one that clients are given."""

    def __init__(self, world: World, deployment: str, *, publishes: bool = True) -> None:
        self._world = world
        self._deployment = deployment
        self._publishes = publishes
        self._endpoints: dict[int, Endpoint] = {}

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(self._endpoints[replica] for replica in sorted(self._endpoints))

    def tell(self, state: State, done: tuple[Done, ...]) -> None:
        """Emit `Serving` and publish, once for each slice."""
        for each in done:
            attempt = state.record(each.replica).attempt(each.name)
            known = self._endpoints.get(each.replica)
            if attempt is None or each.health is None or (known is not None and known.slice_name == each.name):
                continue
            self._endpoints[each.replica] = self._said(each.replica, attempt, each.health)
            if self._publishes:
                self._publish(state)

    def _said(self, replica: int, attempt: Attempt, health: Health) -> Endpoint:
        now = self._world.clock.now()
        what = about(attempt, address(self._deployment, replica), at=now)
        self._world.emit(
            events.Serving(
                **what, url=health.url, door=health.door, answer=health.answer, elapsed=now - attempt.asked_at
            )
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

    def _publish(self, state: State) -> None:
        body = {"url": self.endpoints[0].url, "generation": state.next_attempt, "since": self._world.clock.now()}
        self._world.state.publish(self._deployment, body)
