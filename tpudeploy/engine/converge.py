"""look, decide, act, until one deployment is as wanted. Waiting and faulting are two clocks, never one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from tpudeploy.domain import errors, events, wait
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.plan import Action, Change, Goal
from tpudeploy.domain.slices import Observed
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.state import Goal as Aim
from tpudeploy.domain.step import (
    Adopt,
    Done,
    Drain,
    Forget,
    GiveUp,
    PatchMetadata,
    PushChange,
    Reclaim,
    Release,
    Renew,
    Request,
    Reset,
    Step,
    Wait,
)
from tpudeploy.engine.act import Hands
from tpudeploy.engine.announce import Announcer
from tpudeploy.engine.attest import Attestor
from tpudeploy.engine.chronicle import Chronicle
from tpudeploy.engine.look import look
from tpudeploy.engine.progress import Progress
from tpudeploy.engine.retry import looking_again
from tpudeploy.engine.session import Session, session
from tpudeploy.planning.drift import with_losses
from tpudeploy.ports import World
from tpudeploy.reconcile.decide import decide, matches, remove
from tpudeploy.reconcile.fate import Moment
from tpudeploy.reconcile.landings import with_failed_landings
from tpudeploy.reconcile.outstanding import outstanding
from tpudeploy.reconcile.remember import remember

# What a shown change may do. `apply` does nothing the plan did not show: whatever lies outside is a stale plan.
MAY: dict[Action, tuple[type[Step], ...]] = {
    Action.NO_OP: (),
    # A request may come up with the server that it was asked for with, before the profile changed: nothing serves yet.
    Action.CREATE: (Request, PatchMetadata, PushChange, Reset, Release, Reclaim, Forget, Adopt, Drain),
    Action.UPDATE: (PatchMetadata, Release, Forget, Adopt, Drain),
    Action.RESTART: (PatchMetadata, PushChange, Reset, Release, Forget, Adopt, Drain),
    Action.REPLACE: (Request, PatchMetadata, PushChange, Reset, Release, Reclaim, Forget, Adopt, Drain),
    Action.DESTROY: (Release, Forget),
}

# The names of steps in messages, for those whose class has a name of several words.
_STEP_NAMES: dict[type[Step], str] = {PatchMetadata: "metadata update", PushChange: "change of its server"}

_GO_ON = "Run `tpudeploy apply` again to go on where this stopped, or `tpudeploy destroy` to remove them."

# What keeping alive may do: another slice for a lost one, and nothing to a slice that stands.
KEEPS: tuple[type[Step], ...] = (Request, Release, Reclaim, Forget, Adopt, Drain, Renew)


@frozen
class Tick:
    """What one look-decide-act came to. `is_cut`: a refusal ended it, and the steps after it were not taken."""

    state: State
    observed: Observed
    steps: tuple[Step, ...]
    is_cut: bool = False

    @property
    def done(self) -> tuple[Done, ...]:
        return tuple(s for s in self.steps if isinstance(s, Done))

    @property
    def is_last(self) -> bool:
        """Whether the goal is reached; False too where less than that was waited for."""
        return len(self.done) == len(self.steps)

    def watches(self, replica: int) -> bool:
        """Whether something of this replica is still waited for, or seen to its end."""
        return any(isinstance(s, Wait) and s.replica == replica for s in self.steps)


class Convergence:
    """One deployment on its way to `goal`, a look at a time. Every step is saved, so that any end can be resumed.

    With `keep`, it does not end there: what is lost is asked for again. With `may_reset`, a node that does not take
    over a change is rebooted.
    """

    def __init__(
        self,
        world: World,
        goal: Goal,
        announcer: Announcer,
        attestor: Attestor,
        *,
        until: wait.Wait,
        deadline: float | None,
        keep: bool = False,
        may_reset: bool = False,
    ) -> None:
        self._world = world
        self._may_reset = may_reset
        self._goal = goal
        self._announcer = announcer
        self._attestor = attestor
        self._until = until
        self._deadline = deadline
        self._keep = keep
        self._reached_at: float | None = None
        self._left_at: float | None = None
        self._progress = Progress(world, goal.name, goal.deployment)
        self._chronicle = Chronicle(world, goal.name, goal.deployment)
        deployment = goal.deployment
        renews = deployment is not None and deployment.lifecycle.renew
        self._acquisition = self._chronicle.acquisition(deployment) if deployment is not None and renews else 0.0
        self._last: Tick | None = None
        self._held: Session | None = None
        self._turn = -inf

    @property
    def is_there(self) -> bool:
        """Whether the last look found the goal reached."""
        return self._last is not None and self._last.is_last

    def step(self) -> float | None:
        """Look, decide, act; seconds until that is due again, None once the end is reached.

        Raises what `decide` gives up with, `errors.CapacityTimeout` at the deadline, `errors.StalePlan` where the world
        asks for more than the plan showed, and `errors.Fault` once the cloud has not answered for long.
        """
        world, goal = self._world, self._goal
        # What is kept outlives an hour without a network.
        budget = world.patience.faults if self._reached_at is None else inf
        last = looking_again(world, goal.name, self._tick, budget=budget)
        self._last = last
        self._attestor.tell(last.state, last.observed, last.done)
        failed = [s for s in last.steps if isinstance(s, GiveUp)]
        over = next((s for s in failed if not self._may_recover(s) and not last.watches(s.replica)), None)
        if over is not None:
            # One replica's failure ends the run; what the others asked for may still be granted.
            self._name([a for a in last.state.attempts if a.granted_at is None], _GO_ON)
            raise over.error
        if _is_enough(goal, last, self._until) or last.is_last:
            self._reached_at = world.clock.now()
            self._deadline = None
            return world.patience.watch if self._keep else None
        if all(isinstance(s, Forget | Done) for s in last.steps):
            # This look forgot the last slices that were certainly gone. The next one is due at once and finds the goal
            # reached, so no time limit may end the run in between.
            return 0.0
        if self._deadline is not None and world.clock.now() >= self._deadline:
            raise failed[0].error if failed else _timeout(goal, last)
        if self._has_left_for_long(last):
            raise _timeout(goal, last)
        return self._pause(last)

    def _has_left_for_long(self, last: Tick) -> bool:
        """Whether nothing else than what was given up has been waited for, and for longer than anything takes to go."""
        deployment, now = self._goal.deployment, self._world.clock.now()
        if self._keep or len(last.done) < (0 if deployment is None else len(self._goal.replicas)):
            self._left_at = None
            return False
        self._left_at = now if self._left_at is None else self._left_at
        return now - self._left_at >= self._world.patience.leaving

    def _may_recover(self, failed: GiveUp) -> bool:
        """Whether what served a while ago may be given as long to come back as it may take to start."""
        deployment, since = self._goal.deployment, self._reached_at
        if since is None or deployment is None or not isinstance(failed.error, errors.ServingError):
            return False
        return self._world.clock.now() - since < deployment.health.timeout_seconds

    def interrupted(self) -> None:
        """Name what the run leaves behind unfinished, as it was last written down; nobody is asked any more."""
        state = None if self._held is None else self._held.state
        left = () if state is None else [a for a in state.attempts if not a.served or a.releasing_at is not None]
        self._name(left, "")  # what to do is in the error that ends the run

    def _name(self, left: Iterable[Attempt], hint: str) -> None:
        now = self._world.clock.now()
        named = "; ".join(outstanding(attempt, now) for attempt in left)
        if named:
            message = f"Still outstanding: {named}."
            self._world.emit(events.Warned(at=now, address=self._goal.name, message=message, hint=hint))

    def _tick(self) -> Tick:
        world, goal = self._world, self._goal
        with session(world, goal.name, "apply" if goal.deployment else "destroy") as held:
            self._held = held
            if held.state.lineage != goal.lineage:
                raise errors.StalePlan(
                    f"The state of {goal.name} is no longer the one that this run began with: moved, forgotten or put"
                    " in its place by somebody.",
                    hint="Nothing was undone. See `tpudeploy state list`, then plan anew.",
                )
            if self._reached_at is not None:
                _still_ours(world, goal, held)
            observed = look(world, held.state, goal.deployment, patient=True)
            learnt = remember(held.state, observed)
            if goal.deployment is not None:
                learnt = with_losses(learnt, Moment(observed=observed, patience=world.patience))
                learnt = self._with_failed_landings(learnt, observed.at)
            if learnt is not held.state:
                before = held.state
                held.save(learnt)
                self._chronicle.granted(before, learnt)
            steps = self._steps(held.state, observed)
            self._progress.tell(held.state, observed)
            _check(goal, steps, kept=self._reached_at is not None)
            self._announcer.tell(held, observed, steps)
            hands = Hands(world, held, goal.deployment, observed, self._chronicle)
            for step in steps:
                if hands.was_refused:
                    break
                if not isinstance(step, Wait | Done | GiveUp):
                    world.clock.sleep(0.0)  # an interrupted run begins nothing more
                hands.act(step)
            self._progress.show(goal.deployment, held.state, observed, steps)
            return Tick(state=held.state, observed=observed, steps=steps, is_cut=hands.was_refused)

    def _with_failed_landings(self, state: State, now: float) -> State:
        """Return `state` with what this and other deployments wrote into the zone history, at the first look."""
        if self._last is None and self._chronicle.failed_landings:
            for index in self._goal.replicas:
                record = state.record(index)
                known = with_failed_landings(record, self._chronicle.failed_landings, now)
                state = state if known is record else state.with_record(known)
        return state

    def _steps(self, state: State, observed: Observed) -> tuple[Step, ...]:
        deployment: Deployment | None = self._goal.deployment
        if deployment is not None and self._until is wait.Wait.ACCEPTED:
            # Nobody stays to give a second slice back.
            deployment = replace(deployment, max_parallel_requests=1)
        replicas = 0 if deployment is None else deployment.replicas
        creates = self._world.creates.left()
        moment = Moment(
            observed=observed,
            patience=self._world.patience,
            creates=creates,
            creates_in=self._world.creates.opens_in(),
            luck=self._chronicle.luck,
            may_reset=self._may_reset,
            renews=self._reached_at is not None,
            acquisition=self._acquisition,
        )
        steps: list[Step] = []
        if deployment is not None:
            for index in self._goal.replicas:
                asked = sum(isinstance(s, Request) for s in steps)
                now = replace(moment, creates=max(0, creates - asked), may_ask=self._may_ask(index))
                steps += decide(deployment, state.record(index), now)
        surplus = [r for r in state.records if r.index >= replicas and self._goal.covers(r.index)]
        return (*steps, *(step for r in surplus for step in remove(r, moment)))

    def _may_ask(self, replica: int) -> bool:
        """Whether another slice for this replica is within what the plan showed."""
        action = next((c.action for c in self._goal.changes if c.replica == replica), Action.NO_OP)
        return self._reached_at is not None or Request in MAY[action]

    def _pause(self, tick: Tick) -> float:
        """Seconds to the next look: the pace of the polls, cut short by whatever falls due first."""
        if tick.is_cut:
            return 0.0
        now = self._world.clock.now()
        waits = [s for s in tick.steps if isinstance(s, Wait)]
        due = [s.seconds for s in waits if s.seconds is not None and not s.is_rationed]
        if any(s.is_rationed for s in waits):
            if self._turn <= now:
                self._turn = now + self._world.creates.turn()
            due.append(self._turn - now)
        if self._deadline is not None:
            due.append(self._deadline - now)
        only_rationed = bool(waits) and all(s.is_rationed for s in waits)
        if tick.state.attempts or not only_rationed:  # else there is nothing to look at meanwhile
            due.append(self._world.patience.poll(self._progress.quiet, len(tick.state.attempts)))
        return max(0.0, min(due))


def _still_ours(world: World, goal: Goal, held: Session) -> None:
    """Raise `errors.StalePlan` where somebody else has changed or removed what is kept alive here.

    A run that ended for the same profile took the approval with it: it is put back while its slices stand.
    """
    state, deployment = held.state, goal.deployment
    if deployment is None or (state.goal is not None and state.goal.fingerprint == goal.fingerprint):
        return
    stands = all(any(matches(deployment, a) for a in state.record(i).attempts) for i in goal.replicas)
    if state.goal is None and stands:
        held.save(replace(state, goal=Aim(fingerprint=goal.fingerprint, since=world.clock.now(), who=world.who)))
        return
    raise errors.StalePlan(
        f"{goal.name} was changed by another run; this one stops watching it.",
        hint="Nothing was undone. Run `tpudeploy apply --watch` with the profile that is to hold.",
    )


def _check(goal: Goal, steps: tuple[Step, ...], *, kept: bool) -> None:
    shown = {c.replica: c for c in goal.changes}
    for step in steps:
        if isinstance(step, Wait | Done | GiveUp):
            continue
        if not (isinstance(step, KEEPS) if kept else _was_shown(shown.get(step.replica), step)):
            name = _STEP_NAMES.get(type(step), type(step).__name__.lower())
            raise errors.StalePlan(
                f"{goal.name}[{step.replica}] now needs a {name}, which the plan did not show.",
                hint="The world changed under way. Run `tpudeploy apply` again to see and approve a new plan.",
            )


def _was_shown(change: Change | None, step: Step) -> bool:
    """A slice that another one is to take the place of is not touched meanwhile."""
    action = Action.NO_OP if change is None else change.action
    if change is not None and action is Action.REPLACE and isinstance(step, PatchMetadata | PushChange | Reset):
        return step.name != change.slice_name
    return isinstance(step, MAY[action])


def _is_enough(goal: Goal, tick: Tick, until: wait.Wait) -> bool:
    """Whether each replica has come so far with a slice as it is wanted now: one to be replaced says nothing."""
    deployment = goal.deployment
    if deployment is None or until is wait.Wait.SERVING:
        return False
    replicas = (tick.state.record(i).attempts for i in goal.replicas)
    fitting = [[a for a in attempts if matches(deployment, a)] for attempts in replicas]
    kept = [[a for a in attempts if a.releasing_at is None] for attempts in fitting]
    # Whatever else was asked for beside it could still be granted too, with nobody there to give it back.
    if any(len(attempts) != 1 for attempts in fitting):
        return False
    is_granted = until is wait.Wait.GRANTED
    return all(any(a.granted_at is not None if is_granted else a.seen for a in attempts) for attempts in kept)


def _timeout(goal: Goal, tick: Tick) -> errors.TpudeployError:
    if goal.deployment is None:
        left = ", ".join(a.name for a in tick.state.attempts)
        hint = "Run `tpudeploy destroy` again: it goes on where this stopped."
        return errors.CloudError(f"{goal.name} is not gone yet. Still there: {left}.", hint=hint)
    left = "".join(f"\n  {outstanding(a, tick.observed.at)}" for a in tick.state.attempts) or " nothing."
    hint = f"Still outstanding:{left}\n{_GO_ON}"
    drains = [a.name for a in tick.state.attempts if a.draining_at is not None and a.releasing_at is None]
    if drains and len(tick.done) == len(goal.replicas):
        what = ", ".join(drains)
        return errors.StillDraining(f"{goal.name} serves; clients may still hold {what}, which is kept.", hint=hint)
    if len(tick.done) == len(goal.replicas):
        return errors.CloudError(f"{goal.name} serves, but what was given up for it is not gone yet.", hint=hint)
    fitting = [[a for a in tick.state.record(i).attempts if matches(goal.deployment, a)] for i in goal.replicas]
    if all(any(a.granted_at is not None and a.releasing_at is None for a in attempts) for attempts in fitting):
        return errors.StillStarting(f"{goal.name} did not serve in time. The slice is kept.", hint=hint)
    return errors.CapacityTimeout(
        f"{goal.name} was not granted in time. Nothing is lost: the requests stand.", hint=hint
    )


def finished(state: State, fingerprint: str) -> State:
    """The state once the goal with this fingerprint is reached. Records of replicas that are gone are dropped.

    Another goal stands there where this one was a part of it, or somebody has begun something else.
    """
    is_other = state.goal is not None and state.goal.fingerprint != fingerprint
    records = tuple(r if r.attempts else replace(r, lost="") for r in state.records if r.attempts or r.refusals)
    return replace(state, goal=state.goal if is_other else None, records=records)
