"""The changes since the last observation, as events: reported on change, not at every poll."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, repeat

from tpudeploy.boot_log.stage import stage
from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain import events
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment, Place
from tpudeploy.domain.names import ROUTER, Zone, address
from tpudeploy.domain.request_table import PlaceStatus
from tpudeploy.domain.slices import BootPhase, Observed, Phase
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.status import BootStage
from tpudeploy.domain.step import Step, Wait
from tpudeploy.engine.request_events import about
from tpudeploy.ports import World
from tpudeploy.reconcile.attempt_status import DecisionContext, is_being_preempted
from tpudeploy.reconcile.replicas import at_replica
from tpudeploy.reconcile.request_table import request_table

# Seconds of silence before each "still waiting": an hour in a queue is a dozen lines, not three hundred.
_FIRST_SILENCES = (60.0, 120.0, 300.0)
_LATER_SILENCE = 600.0
_STAGE_INTERVAL = 60.0  # seconds between two lines about one stage of a boot


class Progress:
    """Remembers what was reported. `quiet` counts the observations since the last news; it paces the polls."""

    def __init__(self, world: World, name: str, deployment: Deployment | None) -> None:
        self._world = world
        self._name = name
        self._deployment = deployment
        self._stages: dict[str, tuple[BootStage, float]] = {}
        self._phases: dict[str, tuple[str, str]] = {}
        self._silent_zones: set[tuple[Zone, Backend]] = set()
        self._undone_changes: set[str] = set()
        self._reached: set[tuple[Place, str]] = set()
        self._places: dict[int, tuple[PlaceStatus, ...]] = {}
        self._began = world.clock.now()
        self._silences = _silences()
        self._next_waiting_at = self._began + next(self._silences)
        self.quiet = 0

    def report_observation(self, state: State, observed: Observed) -> None:
        """Report what this observation shows, before any step is executed."""
        self.quiet += 1
        for replica, attempt in state.indexed_attempts:
            self._report_undo(replica, attempt, observed)
            self._report_phase(replica, attempt, observed)
        names = {attempt.name for attempt in state.attempts}
        self._phases = {name: phase for name, phase in self._phases.items() if name in names}
        self._report_silent_zones(state, observed)

    def report_outlook(
        self, deployment: Deployment | None, state: State, observed: Observed, steps: Iterable[Step]
    ) -> None:
        """Report where requests are out after the steps, if that is new; and now and then that nothing is."""
        context = DecisionContext(observed=observed, patience=self._world.patience)
        indexes = () if deployment is None else deployment.replica_indexes
        for index in sorted({*indexes, *(record.index for record in state.all_records)}):
            target = None if deployment is None else deployment.of_replica(index)
            if target is not None and index != ROUTER:
                target = at_replica(target, state, index) if index in indexes else None
            places = request_table(target, state.record(index), context)
            if _without_estimates(places) != _without_estimates(self._places.get(index, ())):
                self._places[index] = places
                self._world.emit(events.Outlook(at=observed.at, address=address(self._name, index), places=places))
        waits = [step for step in steps if isinstance(step, Wait)]
        if waits and observed.at >= self._next_waiting_at:
            self._report_waiting(waits[0], observed)

    def _report_silent_zones(self, state: State, observed: Observed) -> None:
        """Warn once for each zone that does not answer at an API, until it has answered again."""
        reasons = {(a.zone, a.backend): observed.unseen[a.name] for a in state.attempts if a.name in observed.unseen}
        has_choice = self._deployment is not None and len(self._deployment.backends) > 1
        for zone, backend in sorted(reasons.keys() - self._silent_zones):
            hint = "Requests there keep their place and are checked again later. The search continues elsewhere."
            api = f" at {BACKENDS[backend].api}" if has_choice else ""
            message = f"{zone} does not answer{api}: {reasons[zone, backend]}"
            self._world.emit(events.Warned(at=observed.at, address=self._name, message=message, hint=hint))
        self._silent_zones = set(reasons)

    def _report_waiting(self, wait: Wait, observed: Observed) -> None:
        self._next_waiting_at = observed.at + next(self._silences)
        self._world.emit(
            events.Waiting(
                at=observed.at,
                address=address(self._name, wait.replica),
                why=wait.why,
                elapsed=observed.at - self._began,
                places=self._places.get(wait.replica, ()),
            )
        )

    def _report_undo(self, replica: int, attempt: Attempt, observed: Observed) -> None:
        """Warn once that a node goes back to the previous server: from here on the run waits for that one."""
        report = observed.reports.get(attempt.name)
        if report is None or not attempt.is_undone_by(report):
            return
        if attempt.change_name in self._undone_changes:
            return
        self._undone_changes.add(attempt.change_name)
        # The way back has already ended, which the run's error says.
        if report.phase in {BootPhase.SERVING, BootPhase.FAILED}:
            return
        self._world.emit(
            events.Warned(
                at=observed.at,
                address=address(self._name, replica),
                message=f"The change failed: {report.cause}",
                hint=f"{attempt.name} restarts the previous server. This run waits until that server is up or has"
                " failed.",
            )
        )

    def _report_phase(self, replica: int, attempt: Attempt, observed: Observed) -> None:
        phase, detail = _phase(attempt, observed)
        # A slice that is not there has no phase.
        if not phase:
            return
        stage_now = self._stage(replica, attempt, observed)
        # The detail of a stage is a counter, and a change of it alone is no news.
        key = (phase, detail if stage_now is None or stage_now.name == phase else stage_now.name)
        previous = self._phases.get(attempt.name)
        is_news = previous != key
        if not is_news and not self._is_stage_due(attempt, stage_now, observed):
            return
        self._phases[attempt.name] = key
        if stage_now is not None:
            self._stages[attempt.name] = (stage_now, observed.at)
        # A slice that served before this run began is no progress of this run.
        if previous is None and attempt.is_announced:
            return
        if is_news:
            self.quiet = 0
        if self._is_progress(attempt, phase):
            self._silences = _silences()
            self._next_waiting_at = observed.at + next(self._silences)
        self._world.emit(
            events.PhaseChanged(
                **about(attempt, address(self._name, replica), at=observed.at),
                phase=phase,
                detail=detail,
                elapsed=observed.at - self._began,
                before="" if previous is None else previous[0],
                stage=stage_now,
            )
        )

    def _is_stage_due(self, attempt: Attempt, stage_now: BootStage | None, observed: Observed) -> bool:
        """Return whether a stage has advanced since it was reported, and long enough ago to report it again."""
        if stage_now is None or attempt.name not in self._stages:
            return False
        reported, reported_at = self._stages[attempt.name]
        return stage_now.done != reported.done and observed.at - reported_at >= _STAGE_INTERVAL

    def _stage(self, replica: int, attempt: Attempt, observed: Observed) -> BootStage | None:
        report, slice_ = observed.reports.get(attempt.name), observed.slices.get(attempt.name)
        target = None if self._deployment is None else self._deployment.of_replica(replica)
        if report is None or target is None or slice_ is None or slice_.phase is not Phase.UP:
            return None
        return stage(report, target.budget, now=observed.at)

    def _is_progress(self, attempt: Attempt, phase: str) -> bool:
        """Return whether no request in this place had come so far: a sweep that starts again is no progress."""
        milestone = (attempt.place, phase)
        is_repeated = milestone in self._reached
        self._reached.add(milestone)
        return not is_repeated or attempt.granted_at is not None


def _without_estimates(places: Iterable[PlaceStatus]) -> list[PlaceStatus]:
    """Return the places without the remaining time of a boot: a reader counts it down, so a smaller one is no news."""
    return [p if p.stage is None else replace(p, stage=replace(p.stage, left_seconds=None)) for p in places]


def _phase(attempt: Attempt, observed: Observed) -> tuple[str, str]:
    """Return the phase of a slice or of its boot, with a detail; both are "" without one to report."""
    slice_ = observed.slices.get(attempt.name)
    # A refusal has an event of its own, which says more than a phase: events.NotGranted.
    if slice_ is None or slice_.phase is Phase.REFUSED:
        return "", ""
    report = observed.reports.get(attempt.name)
    if slice_.phase is Phase.UP and is_being_preempted(attempt.name, observed):
        return Phase.LEAVING, "Google is preempting it"
    if slice_.phase is Phase.UP and report is not None:
        return report.phase, report.detail
    return slice_.phase, slice_.raw_state


def _silences() -> Iterator[float]:
    return chain(_FIRST_SILENCES, repeat(_LATER_SILENCE))
