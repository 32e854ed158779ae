"""The capacity history of the zones as one run uses it: its advice, read once for all deployments, and new entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock

from tpudeploy.domain import errors, events
from tpudeploy.domain.deployment import Deployment, Place
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.slices import Refusal
from tpudeploy.domain.state import Attempt, RefusalRecord, State
from tpudeploy.ports import World
from tpudeploy.reconcile.capacity_score import capacity_scores, failed_landings, longest_recent_wait
from tpudeploy.reconcile.failed_landings import HOST_FAULT, PREEMPTED, is_failed_landing
from tpudeploy.reconcile.placement import CapacityScores
from tpudeploy.reconcile.refusals import chips_of

# Seconds for which a refusal that a place repeats is not recorded again, whichever deployment meets it. A search meets
# it every minute: a history that grew with each one would measure how often and for how many it was asked.
_REPEATED = 600.0
_ENDINGS = {"lapsed": Ending.LAPSED, "creating-stuck": Ending.LAPSED, PREEMPTED: Ending.PREEMPTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What earlier requests say about the places of one type of slice."""

    entries: tuple[HistoryEntry, ...] = ()
    scores: CapacityScores = field(default_factory=dict)
    failed_landings: tuple[RefusalRecord, ...] = ()


class CapacityHistory:
    """The history of one run, for all of its deployments and threads.

    It is read once, before the deployments begin: what others record meanwhile is for the next run. A history that
    cannot be read or written is reported once. The run continues without its advice.
    """

    def __init__(self, world: World, deployments: Iterable[Deployment | None] = ()) -> None:
        """Read the history if there is a deployment to advise; None, one that is deleted, needs no place."""
        self._world = world
        self._is_available = True
        self._lock = Lock()
        self._entries: tuple[HistoryEntry, ...] = ()
        self._advice: dict[str, Advice] = {}  # by type of slice
        self._last_refusals: dict[tuple[Place, str], tuple[str, float]] = {}  # the last recorded one, and when
        name = next((deployment.name for deployment in deployments if deployment is not None), None)
        if name is None:
            return
        try:
            self._entries = world.state.history()
        except errors.StateError as error:
            self._stop_recording(name, error)

    def advice(self, deployment: Deployment | None) -> Advice:
        """Return the advice for the type of a deployment, as of when the first one of this type asked for it."""
        # A deployment that is deleted asks no place.
        if deployment is None:
            return Advice()
        kind = deployment.accelerator.name
        with self._lock:
            if kind not in self._advice:
                entries = tuple(entry for entry in self._entries if entry.type == kind)
                now = self._world.clock.now()
                scores, failures = capacity_scores(entries, kind, now), failed_landings(entries, kind, now)
                self._advice[kind] = Advice(entries=entries, scores=scores, failed_landings=failures)
            return self._advice[kind]

    def failed_landings(self, deployment: Deployment | None) -> tuple[RefusalRecord, ...]:
        """Return the last failed landing of each place that a deployment may ask, where it still counts."""
        allowed = set() if deployment is None else {candidate.place for candidate in deployment.candidates}
        return tuple(refused for refused in self.advice(deployment).failed_landings if refused.place in allowed)

    def acquisition(self, deployment: Deployment) -> float:
        """Return the longest time that a recent grant took, in seconds."""
        return longest_recent_wait(deployment, self.advice(deployment).entries, self._world.clock.now())

    def add_grants(self, before: State, after: State) -> None:
        """Record the requests that one observation showed as granted."""
        waiting = {attempt.name for attempt in before.attempts if attempt.granted_at is None}
        for attempt in after.attempts:
            if attempt.name in waiting and attempt.granted_at is not None:
                with self._lock:
                    self._last_refusals.pop(_subject(attempt), None)
                self._add(after.deployment, attempt, Ending.GRANTED)

    def add_refusal(self, name: str, attempt: Attempt, refusal: Refusal) -> None:
        """Record why a request of deployment `name` was not granted, or that its grant did not last."""
        # A slice that was lost later than that says nothing about the capacity of its zone.
        if attempt.granted_at is not None and refusal.kind not in {PREEMPTED, HOST_FAULT}:
            return
        default = Ending.STUCK if is_failed_landing(attempt, refusal) else Ending.REFUSED
        ending = _ENDINGS.get(refusal.kind, default)
        if ending is Ending.REFUSED and self._is_repeated(attempt, refusal.kind):
            return
        self._add(name, attempt, ending, refusal)

    def add_release(self, name: str, attempt: Attempt) -> None:
        """Record that a request of deployment `name` was deleted before it was granted."""
        if attempt.granted_at is None and attempt.releasing_at is not None:
            self._add(name, attempt, Ending.RELEASED)

    def _is_repeated(self, attempt: Attempt, kind: str) -> bool:
        now, subject = self._world.clock.now(), _subject(attempt)
        with self._lock:
            last_kind, recorded_at = self._last_refusals.get(subject, ("", 0.0))
            if last_kind == kind and now - recorded_at < _REPEATED:
                return True
            self._last_refusals[subject] = (kind, now)
        return False

    def _add(self, name: str, attempt: Attempt, ending: Ending, refusal: Refusal | None = None) -> None:
        # An ordinary machine, which the router runs on, says nothing about the capacity for slices.
        if not self._is_available or "vm.machine" in attempt.spec:
            return
        now = self._world.clock.now()
        entry = HistoryEntry(
            at=now,
            zone=attempt.zone,
            provisioning=attempt.provisioning,
            type=_type_of(attempt),
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
            self._stop_recording(name, error)

    def _stop_recording(self, name: str, error: errors.StateError) -> None:
        self._is_available = False
        self._world.emit(
            events.Warned(
                at=self._world.clock.now(),
                address=name,
                message=f"The zone history is not recorded: {error.message}",
                hint="Zones are tried in the profile's order. Nothing else depends on the history.",
            )
        )


def _subject(attempt: Attempt) -> tuple[Place, str]:
    """Return what a refusal is about: a place, and the type of slice that it did not have."""
    return attempt.place, _type_of(attempt)


def _type_of(attempt: Attempt) -> str:
    return str(attempt.spec.get("tpu.type", ""))
