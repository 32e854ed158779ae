"""What changed since the last look, as events: said on change, not at every poll."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat

from tpudeploy.boot_log.stage import stage
from tpudeploy.domain import events
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.names import address
from tpudeploy.domain.outlook import Place
from tpudeploy.domain.slices import BootPhase, Observed, Phase
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.status import Stage
from tpudeploy.domain.step import Step, Wait
from tpudeploy.engine.about import about
from tpudeploy.ports import World
from tpudeploy.reconcile.fate import Moment
from tpudeploy.reconcile.outlook import outlook

# Seconds of silence before each "still waiting": an hour in a queue is a dozen lines, not three hundred.
_PATIENT_LINES = (60.0, 120.0, 300.0)
_CALM = 600.0
_GOES_ON = 60.0  # seconds between two lines about one stage of a boot


class Progress:
    """Remembers what was said. `quiet` counts looks since anything new; it paces the polls."""

    def __init__(self, world: World, deployment: str, aim: Deployment | None) -> None:
        self._world = world
        self._deployment = deployment
        self._aim = aim
        self._stages: dict[str, tuple[Stage, float]] = {}
        self._said: dict[str, tuple[str, str]] = {}
        self._silent: set[str] = set()
        self._undos: set[str] = set()
        self._reached: set[tuple[str, str, str]] = set()
        self._places: dict[int, tuple[Place, ...]] = {}
        self._began = world.clock.now()
        self._silences = _silences()
        self._next_line = self._began + next(self._silences)
        self.quiet = 0

    def tell(self, state: State, observed: Observed) -> None:
        """What this look found, before anything is done about it."""
        self.quiet += 1
        for record in state.records:
            for attempt in record.attempts:
                self._tell_undo(record.index, attempt, observed)
                self._tell_phase(record.index, attempt, observed)
        known = {a.name for a in state.attempts}
        self._said = {name: said for name, said in self._said.items() if name in known}
        self._tell_silence(state, observed)

    def show(self, aim: Deployment | None, state: State, observed: Observed, steps: Iterable[Step]) -> None:
        """How things stand once the steps were taken, where that is new; and, now and then, that nothing is."""
        moment = Moment(observed=observed, patience=self._world.patience)
        replicas = 0 if aim is None else aim.replicas
        for index in sorted({*range(replicas), *(r.index for r in state.records)}):
            places = outlook(aim if index < replicas else None, state.record(index), moment)
            if places != self._places.get(index, ()):
                self._places[index] = places
                where = address(self._deployment, index)
                self._world.emit(events.Outlook(at=observed.at, address=where, places=places))
        waits = [s for s in steps if isinstance(s, Wait)]
        if waits and observed.at >= self._next_line:
            self._tell_waiting(waits[0], observed)

    def _tell_silence(self, state: State, observed: Observed) -> None:
        """Once for each zone, until it has answered again."""
        silent = {a.zone: observed.unseen[a.name] for a in state.attempts if a.name in observed.unseen}
        for zone in sorted(silent.keys() - self._silent):
            hint = "What was asked for there keeps its place and is looked at again; the hunt goes on elsewhere."
            message = f"{zone} does not answer: {silent[zone]}"
            self._world.emit(events.Warned(at=observed.at, address=self._deployment, message=message, hint=hint))
        self._silent = set(silent)

    def _tell_waiting(self, waits: Wait, observed: Observed) -> None:
        self._next_line = observed.at + next(self._silences)
        self._world.emit(
            events.Waiting(
                at=observed.at,
                address=address(self._deployment, waits.replica),
                why=waits.why,
                elapsed=observed.at - self._began,
                places=self._places.get(waits.replica, ()),
            )
        )

    def _tell_undo(self, replica: int, attempt: Attempt, observed: Observed) -> None:
        """Warn once that a node goes back to the server before: from here on the run waits for that one."""
        report = observed.reports.get(attempt.name)
        if report is None or not attempt.change or report.undone != attempt.change or attempt.change in self._undos:
            return
        self._undos.add(attempt.change)
        if report.phase in {BootPhase.SERVING, BootPhase.FAILED}:
            return  # it has ended, which the run's error says
        where = address(self._deployment, replica)
        message = f"The change failed: {report.cause}"
        hint = f"{attempt.name} starts the previous server again. This run waits until that server is up or has failed."
        self._world.emit(events.Warned(at=observed.at, address=where, message=message, hint=hint))

    def _tell_phase(self, replica: int, attempt: Attempt, observed: Observed) -> None:
        phase, detail = _phase(attempt, observed)
        reached = self._stage(attempt, observed)
        said = (phase, detail if reached is None or reached.name == phase else reached.name)
        if not phase or (self._said.get(attempt.name) == said and not self._is_due(attempt, reached, observed)):
            return
        is_news = self._said.get(attempt.name) != said
        before, _ = self._said.get(attempt.name, ("", ""))
        is_first = attempt.name not in self._said
        self._said[attempt.name] = said
        if reached is not None:
            self._stages[attempt.name] = (reached, observed.at)
        if is_first and attempt.served:
            return  # it served before this run began
        self.quiet = 0 if is_news else self.quiet
        if self._is_further(attempt, phase):
            self._silences = _silences()
            self._next_line = observed.at + next(self._silences)
        self._world.emit(
            events.PhaseChanged(
                **about(attempt, address(self._deployment, replica), at=observed.at),
                phase=phase,
                detail=detail,
                elapsed=observed.at - self._began,
                before=before,
                stage=reached,
            )
        )

    def _is_due(self, attempt: Attempt, reached: Stage | None, observed: Observed) -> bool:
        """Whether a stage has gone on since it was told, and long ago enough to say so."""
        if reached is None or attempt.name not in self._stages:
            return False
        told, at = self._stages[attempt.name]
        return reached.done != told.done and observed.at - at >= _GOES_ON

    def _stage(self, attempt: Attempt, observed: Observed) -> Stage | None:
        report, found = observed.reports.get(attempt.name), observed.slices.get(attempt.name)
        if report is None or self._aim is None or found is None or found.phase is not Phase.UP:
            return None
        return stage(report, self._aim.budget, now=observed.at)

    def _is_further(self, attempt: Attempt, phase: str) -> bool:
        """Whether no request in this place had come so far: a sweep that goes round and round is nothing new."""
        reached = (attempt.zone, attempt.provisioning, phase)
        known = reached in self._reached
        self._reached.add(reached)
        return not known or attempt.granted_at is not None


def _phase(attempt: Attempt, observed: Observed) -> tuple[str, str]:
    found = observed.slices.get(attempt.name)
    if found is None or found.phase is Phase.REFUSED:
        return "", ""  # of a refusal more is known than a phase: events.NotGranted
    report = observed.reports.get(attempt.name)
    if found.phase is Phase.UP and report is not None:
        return report.phase, report.detail
    return found.phase, found.raw_state


def _silences() -> Iterator[float]:
    return chain(_PATIENT_LINES, repeat(_CALM))
