"""Removing what nothing needs of one deployment, under its lock: what an apply has come to need meanwhile stays.

Nothing is written down, and nothing need be: after a kill, the next run begins with what the cloud still lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tpudeploy.domain import errors, events
from tpudeploy.domain.garbage import Claim, Stray
from tpudeploy.domain.life import ReleaseBegan
from tpudeploy.domain.plan import Action
from tpudeploy.domain.report import Outcome
from tpudeploy.domain.slices import Observed, Slice
from tpudeploy.domain.state import Record, State
from tpudeploy.domain.step import Forget, Release, Step, Wait
from tpudeploy.engine.about import About, about
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.engine.session import Session, open_session
from tpudeploy.orphans.collect import as_attempt, goes
from tpudeploy.ports import World
from tpudeploy.reconcile.attempt_status import DecisionContext
from tpudeploy.reconcile.decide import remove

_SILENCE = 300.0  # seconds without news before each "still waiting"
_WHY: Mapping[Claim, str] = {
    Claim.LEFTOVER: "its state does not name it",
    Claim.NO_STATE: "no state here remembers it",
    Claim.OTHER_LINEAGE: "the state here is of another lineage",
}


class Removal:
    """`outcomes` has what came to its end: gone, or failed. Everything goes by its path: a name can stand twice."""

    def __init__(self, world: World, deployment: str, strays: Iterable[Stray], *, foreign: bool) -> None:
        self._world = world
        self._deployment = deployment
        self._foreign = foreign
        self._began = self._heard = world.clock.now()
        self._strays = {s.found.path: s for s in strays}
        self._attempts = {path: as_attempt(s.found, path, self._began) for path, s in self._strays.items()}
        self._said = {path: s.found.slice.raw_state for path, s in self._strays.items()}
        self._has_looked = False
        self.outcomes: list[Outcome] = []

    @property
    def is_pending(self) -> bool:
        return bool(self._attempts)

    def step(self) -> bool:
        """One look, and what is right then. Whether there was any news."""
        patience, heard = self._world.patience, self._heard
        budget = patience.faults if self._has_looked else patience.faults_at_plan
        try:
            retry_on_fault(self._world, self._deployment, self._tick, budget=budget)
        except errors.TpudeployError as error:
            self._fail(error)
        return self._heard != heard

    def give_up(self, elapsed: float) -> None:
        left = ", ".join(f"{path} ({self._said[path]})" for path in self._attempts)
        hint = "Google deletes nothing that it is just providing. Run `tpudeploy gc` again: it takes up what is left."
        self._fail(errors.CloudError(f"Not gone after {elapsed / 60:.0f} minutes: {left}.", hint=hint))

    def _tick(self) -> None:
        with open_session(self._world, self._deployment, "gc") as held:
            self._spare(held.state)
            observed = self._look()
            self._has_looked = True
            moment = DecisionContext(observed=observed, patience=self._world.patience)
            for path, attempt in tuple(self._attempts.items()):
                self._tell(path, observed.slices.get(path), observed.at)
                record = Record(index=self._strays[path].found.mark.replica, attempts=(attempt,))
                for step in remove(record, moment):
                    self._act(held, path, step, observed.at)

    def _spare(self, state: State) -> None:
        """Leave alone what may not go any more: an apply came in between. Without a state, `state` is a fresh one."""
        for path in tuple(self._attempts):
            found, where = self._strays[path].found, self._strays[path].address
            if not goes(found, {self._deployment: state}, foreign=self._foreign):
                del self._attempts[path]
                said = f"{found.ref.name} has come to be needed, and stays."
                self._world.emit(events.Warned(at=self._world.clock.now(), address=where, message=said, hint=""))

    def _look(self) -> Observed:
        shown = {path: self._world.cloud.slices([self._strays[path].found.ref]) for path in self._attempts}
        return Observed(at=self._world.clock.now(), slices={path: found[0] for path, found in shown.items() if found})

    def _tell(self, path: str, found: Slice | None, now: float) -> None:
        if found is None or self._said[path] == found.raw_state:
            return
        self._said[path], self._heard = found.raw_state, now
        self._world.emit(
            events.PhaseChanged(
                **self._about(path, now), phase=found.phase, detail=found.raw_state, elapsed=now - self._began
            )
        )

    def _act(self, held: Session, path: str, what: Step, now: float) -> None:
        match what:
            case Release():
                self._release(held, path, now)
            case Forget():
                self._world.emit(events.Gone(**self._about(path, now), reason="gone"))
                del self._attempts[path]
                self._heard = now
                self.outcomes.append(Outcome(address=path, action=Action.DESTROY))
            case Wait() if now - self._heard >= _SILENCE:
                self._heard = now
                where = self._strays[path].address
                self._world.emit(events.Waiting(at=now, address=where, why=what.why, elapsed=now - self._began))

    def _release(self, held: Session, path: str, now: float) -> None:
        """As often as it takes; said once. Raise as `Session.asking` does, with nothing deleted."""
        stray, before = self._strays[path], self._attempts[path]
        why = _WHY[stray.claim]
        self._attempts[path] = before.after(ReleaseBegan(releasing_at=now, reason=why))
        with held.asking():  # who stood still for longer than its lease may not know that an apply needs it by now
            self._world.cloud.release(stray.found.ref)
        if before.releasing_at is None:
            self._heard = now
            self._world.emit(events.Released(**self._about(path, now), reason=why))

    def _about(self, path: str, now: float) -> About:
        stray = self._strays[path]
        attempt = replace(self._attempts[path], name=stray.found.ref.name)
        return about(attempt, stray.address, at=now)

    def _fail(self, error: errors.TpudeployError) -> None:
        self.outcomes += [Outcome(address=path, action=Action.DESTROY, error=error) for path in self._attempts]
        self._attempts.clear()
