"""The capacity history of the zones as one run uses it: the success rates it begins with, and the entries it adds."""

from __future__ import annotations

from tpudeploy.domain import errors, events
from tpudeploy.domain.deployment import Deployment, Place
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.slices import Refusal
from tpudeploy.domain.state import Attempt, Refused, State
from tpudeploy.ports import World
from tpudeploy.reconcile.capacity_score import capacity_scores, failed_landings, longest_recent_wait
from tpudeploy.reconcile.failed_landings import HOST_FAULT, PREEMPTED, is_failed_landing
from tpudeploy.reconcile.placement import CapacityScores
from tpudeploy.reconcile.refusals import chips_of

# Seconds for which a refusal that a place repeats is not recorded again. A search hears it every minute: a history that
# grew with each would be slow to read, and would measure how often was asked.
_REPEATED = 600.0
_ENDINGS = {"lapsed": Ending.LAPSED, "creating-stuck": Ending.LAPSED, PREEMPTED: Ending.PREEMPTED}


class CapacityHistory:
    """A history that cannot be read or written is reported once. The run continues without its advice."""

    def __init__(self, world: World, name: str, deployment: Deployment | None) -> None:
        self._world = world
        self._name = name
        self._is_available = True
        self.scores: CapacityScores = {}
        self.failed_landings: tuple[Refused, ...] = ()
        self._entries: tuple[HistoryEntry, ...] = ()
        self._last_refusals: dict[Place, tuple[str, float]] = {}  # of each place the last that was recorded, and when
        try:
            self._entries = world.state.history()
        except errors.StateError as error:
            self._stop_recording(error)
        if deployment is not None:
            kind, now = deployment.accelerator.name, world.clock.now()
            self.scores = capacity_scores(self._entries, kind, now)
            allowed = {candidate.place for candidate in deployment.candidates}
            failures = failed_landings(self._entries, kind, now)
            self.failed_landings = tuple(refused for refused in failures if refused.place in allowed)

    def acquisition(self, deployment: Deployment) -> float:
        """Return the longest time that a recent grant took, in seconds."""
        return longest_recent_wait(deployment, self._entries, self._world.clock.now())

    def add_grants(self, before: State, after: State) -> None:
        """Record the requests that one observation showed as granted."""
        waiting = {attempt.name for attempt in before.attempts if attempt.granted_at is None}
        for attempt in after.attempts:
            if attempt.name in waiting and attempt.granted_at is not None:
                self._last_refusals.pop(attempt.place, None)
                self._add(attempt, Ending.GRANTED)

    def add_refusal(self, attempt: Attempt, refusal: Refusal) -> None:
        """Record why a request was not granted, or that its grant did not last."""
        # A slice that was lost later than that says nothing about the capacity of its zone.
        if attempt.granted_at is not None and refusal.kind not in {PREEMPTED, HOST_FAULT}:
            return
        default = Ending.STUCK if is_failed_landing(attempt, refusal) else Ending.REFUSED
        ending = _ENDINGS.get(refusal.kind, default)
        if ending is Ending.REFUSED and self._is_repeated(attempt.place, refusal.kind):
            return
        self._add(attempt, ending, refusal)

    def add_release(self, attempt: Attempt) -> None:
        """Record that a request was deleted before it was granted."""
        if attempt.granted_at is None and attempt.releasing_at is not None:
            self._add(attempt, Ending.RELEASED)

    def _is_repeated(self, place: Place, kind: str) -> bool:
        now = self._world.clock.now()
        last_kind, recorded_at = self._last_refusals.get(place, ("", 0.0))
        if last_kind == kind and now - recorded_at < _REPEATED:
            return True
        self._last_refusals[place] = (kind, now)
        return False

    def _add(self, attempt: Attempt, ending: Ending, refusal: Refusal | None = None) -> None:
        # An ordinary machine, which the router runs on, says nothing about the capacity for slices.
        if not self._is_available or "vm.machine" in attempt.spec:
            return
        now = self._world.clock.now()
        entry = HistoryEntry(
            at=now,
            zone=attempt.zone,
            provisioning=attempt.provisioning,
            type=str(attempt.spec.get("tpu.type", "")),
            chips=chips_of(attempt),
            outcome=ending,
            waited=max(0.0, now - attempt.asked_at),
            kind="" if refusal is None else refusal.kind,
            text="" if refusal is None else refusal.message,
            backend=attempt.backend,
        )
        try:
            self._world.state.record(entry)
        except errors.StateError as error:
            self._stop_recording(error)

    def _stop_recording(self, error: errors.StateError) -> None:
        self._is_available = False
        self._world.emit(
            events.Warned(
                at=self._world.clock.now(),
                address=self._name,
                message=f"The zone history is not recorded: {error.message}",
                hint="Zones are tried in the profile's order. Nothing else depends on the history.",
            )
        )
