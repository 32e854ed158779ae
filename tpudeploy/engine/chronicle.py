"""The zone log as one run sees it: the luck it starts with, and what it adds."""

from __future__ import annotations

from tpudeploy.domain import errors, events
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.slices import Refusal
from tpudeploy.domain.state import Attempt, Refused, State
from tpudeploy.ports import World
from tpudeploy.reconcile.landings import PREEMPTED, Pair, is_failed_landing, pair
from tpudeploy.reconcile.luck import acquisition, failed_landings, scores
from tpudeploy.reconcile.placement import Luck
from tpudeploy.reconcile.refusals import chips

# Seconds for which a refusal that a place repeats is not written down again: a search hears it every minute, and a log
# that grew with each would be slow to read, and weigh how often was asked.
_REPEATED = 600.0
_ENDINGS = {
    "lapsed": Ending.LAPSED,
    "creating-stuck": Ending.LAPSED,
    PREEMPTED: Ending.PREEMPTED,
}


class Chronicle:
    """A log that cannot be read or written is said once, and costs nothing but the advice that it gives."""

    def __init__(self, world: World, name: str, deployment: Deployment | None) -> None:
        self._world = world
        self._deployment = name
        self._is_open = True
        self.luck: Luck = {}
        self.failed_landings: tuple[Refused, ...] = ()
        self._history: tuple[HistoryEntry, ...] = ()
        self._refusals: dict[Pair, tuple[str, float]] = {}  # the last one written down of each place, and when
        try:
            self._history = world.state.history()
            if deployment is not None:
                kind, now = deployment.accelerator.name, world.clock.now()
                self.luck = scores(self._history, kind, now)
                allowed = {pair(c) for c in deployment.candidates}
                self.failed_landings = tuple(r for r in failed_landings(self._history, kind, now) if pair(r) in allowed)
        except errors.StateError as error:
            self._give_up(error)

    def acquisition(self, deployment: Deployment) -> float:
        """The longest that a grant took lately, in seconds."""
        return acquisition(deployment, self._history, self._world.clock.now())

    def granted(self, before: State, after: State) -> None:
        """Write down what one look showed to be granted."""
        waited = {a.name for a in before.attempts if a.granted_at is None}
        for attempt in after.attempts:
            if attempt.name in waited and attempt.granted_at is not None:
                self._refusals.pop(pair(attempt), None)
                self._add(attempt, Ending.GRANTED)

    def ended(self, attempt: Attempt, refusal: Refusal) -> None:
        """Write down why a request was not granted, or that its grant did not last."""
        if attempt.granted_at is None or refusal.kind == PREEMPTED:
            otherwise = Ending.STUCK if is_failed_landing(attempt, refusal) else Ending.REFUSED
            outcome = _ENDINGS.get(refusal.kind, otherwise)
            if outcome is not Ending.REFUSED or self._is_news(pair(attempt), refusal.kind):
                self._add(attempt, outcome, refusal)

    def released(self, attempt: Attempt) -> None:
        if attempt.granted_at is None and attempt.releasing_at is not None:
            self._add(attempt, Ending.RELEASED)

    def _is_news(self, place: Pair, kind: str) -> bool:
        now = self._world.clock.now()
        last_kind, at = self._refusals.get(place, ("", 0.0))
        if last_kind == kind and now - at < _REPEATED:
            return False
        self._refusals[place] = (kind, now)
        return True

    def _add(self, attempt: Attempt, outcome: Ending, refusal: Refusal | None = None) -> None:
        if not self._is_open:
            return
        now = self._world.clock.now()
        tried = HistoryEntry(
            at=now,
            zone=attempt.zone,
            provisioning=attempt.provisioning,
            type=str(attempt.spec.get("tpu.type", "")),
            chips=chips(attempt),
            outcome=outcome,
            waited=max(0.0, now - attempt.asked_at),
            kind="" if refusal is None else refusal.kind,
            text="" if refusal is None else refusal.message,
        )
        try:
            self._world.state.record(tried)
        except errors.StateError as error:
            self._give_up(error)

    def _give_up(self, error: errors.StateError) -> None:
        self._is_open = False
        hint = "Zones are asked in the profile's order; nothing else depends on it."
        message = f"The zone log is not kept: {error.message}"
        self._world.emit(
            events.Warned(at=self._world.clock.now(), address=self._deployment, message=message, hint=hint)
        )
