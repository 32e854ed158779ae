"""What changed since the last look, as events: said on change, not at every poll."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat

from tpudeploy.domain import events
from tpudeploy.domain.names import address
from tpudeploy.domain.slices import Observed, Phase
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.step import Step, Wait
from tpudeploy.ports import World

# Seconds of silence before each "still waiting": an hour in a queue is a dozen lines, not three hundred.
_PATIENT_LINES = (60.0, 120.0, 300.0)
_CALM = 600.0


class Progress:
    """Remembers what was said. `quiet` counts looks since anything new; it paces the polls."""

    def __init__(self, world: World, deployment: str) -> None:
        self._world = world
        self._deployment = deployment
        self._said: dict[str, tuple[str, str]] = {}
        self._silent: set[str] = set()
        self._began = world.clock.now()
        self._silences = _silences()
        self._next_line = self._began + next(self._silences)
        self.quiet = 0

    def tell(self, state: State, observed: Observed, steps: Iterable[Step]) -> None:
        self.quiet += 1
        for record in state.records:
            for attempt in record.attempts:
                self._tell_phase(address(self._deployment, record.index), attempt, observed)
        self._tell_silence(state, observed)
        waits = [s for s in steps if isinstance(s, Wait)]
        if waits and observed.at >= self._next_line:
            self._next_line = observed.at + next(self._silences)
            where = address(self._deployment, waits[0].replica)
            elapsed = observed.at - self._began
            self._world.emit(events.Waiting(at=observed.at, address=where, why=waits[0].why, elapsed=elapsed))

    def _tell_silence(self, state: State, observed: Observed) -> None:
        """Once for each zone, until it has answered again."""
        silent = {a.zone: observed.unseen[a.name] for a in state.attempts if a.name in observed.unseen}
        for zone in sorted(silent.keys() - self._silent):
            hint = "What was asked for there keeps its place and is looked at again; the hunt goes on elsewhere."
            message = f"{zone} does not answer: {silent[zone]}"
            self._world.emit(events.Warned(at=observed.at, address=self._deployment, message=message, hint=hint))
        self._silent = set(silent)

    def _tell_phase(self, where: str, attempt: Attempt, observed: Observed) -> None:
        phase, detail = _phase(attempt, observed)
        if not phase or self._said.get(attempt.name) == (phase, detail):
            return
        is_news = attempt.name in self._said or not attempt.served
        self._said[attempt.name] = (phase, detail)
        if not is_news:
            return  # it served before this run began
        self.quiet = 0
        self._silences = _silences()
        self._next_line = observed.at + next(self._silences)
        self._world.emit(
            events.PhaseChanged(
                at=observed.at,
                address=where,
                name=attempt.name,
                zone=attempt.zone,
                phase=phase,
                detail=detail,
                elapsed=observed.at - attempt.asked_at,
            )
        )


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
