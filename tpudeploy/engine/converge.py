"""look, decide, act, until one deployment is as wanted. Waiting and faulting are two clocks, never one."""

from __future__ import annotations

from dataclasses import replace

from tpudeploy.core.decide import decide, matches, remove
from tpudeploy.core.fate import Moment
from tpudeploy.core.remember import remember
from tpudeploy.domain import errors, wait
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.plan import Action, Goal
from tpudeploy.domain.slices import Observed
from tpudeploy.domain.state import State
from tpudeploy.domain.step import Adopt, Done, Forget, GiveUp, Release, Request, Restart, Step, Update, Wait
from tpudeploy.engine.act import Hands
from tpudeploy.engine.announce import Announcer
from tpudeploy.engine.look import look
from tpudeploy.engine.progress import Progress
from tpudeploy.engine.retry import looking_again
from tpudeploy.engine.session import session
from tpudeploy.ports import World

# What a shown change may do. `apply` does nothing the plan did not show: whatever lies outside is a stale plan.
MAY: dict[Action, tuple[type[Step], ...]] = {
    Action.NO_OP: (),
    Action.CREATE: (Request, Update, Release, Forget, Adopt),
    Action.UPDATE: (Update, Release, Forget, Adopt),
    Action.RESTART: (Update, Restart, Release, Forget, Adopt),
    Action.REPLACE: (Request, Update, Release, Forget, Adopt),
    Action.DESTROY: (Release, Forget),
}


@frozen
class Tick:
    """What one look-decide-act came to."""

    state: State
    observed: Observed
    steps: tuple[Step, ...]

    @property
    def done(self) -> tuple[Done, ...]:
        return tuple(s for s in self.steps if isinstance(s, Done))

    @property
    def is_last(self) -> bool:
        """Whether the goal is reached; False too where less than that was waited for."""
        return len(self.done) == len(self.steps)


def converge(world: World, goal: Goal, announcer: Announcer, *, until: wait.Wait, deadline: float | None) -> Tick:
    """Bring one deployment to `goal`; the last tick. Every step is saved, so that any end can be resumed.

    Raises what `decide` gives up with, `errors.CapacityTimeout` at the deadline, `errors.StalePlan` where the world
    asks for more than the plan showed, and `errors.Fault` once the cloud has not answered for long.
    """
    progress = Progress(world, goal.name)
    while True:
        last = looking_again(world, goal.name, lambda: _tick(world, goal, progress), budget=world.patience.faults)
        announcer.tell(last.state, last.done)
        failed = next((s for s in last.steps if isinstance(s, GiveUp)), None)
        if failed is not None:
            raise failed.error
        waits = [s for s in last.steps if isinstance(s, Wait)]
        if _is_enough(goal, last, until) or last.is_last:
            return last
        if deadline is not None and world.clock.now() >= deadline:
            raise _timeout(goal, last)
        world.clock.sleep(_pause(world, waits, progress.quiet, deadline))


def _tick(world: World, goal: Goal, progress: Progress) -> Tick:
    with session(world, goal.name, "apply" if goal.deployment else "destroy") as held:
        observed = look(world, held.state, goal.deployment)
        learnt = remember(held.state, observed)
        if learnt is not held.state:
            held.save(learnt)
        steps = _steps(world, goal, held.state, observed)
        progress.tell(held.state, observed, steps)
        _check(goal, steps)
        hands = Hands(world, held, goal.deployment, observed)
        for step in steps:
            hands.act(step)
        return Tick(state=held.state, observed=observed, steps=steps)


def _steps(world: World, goal: Goal, state: State, observed: Observed) -> tuple[Step, ...]:
    moment = Moment(observed=observed, patience=world.patience)
    deployment: Deployment | None = goal.deployment
    replicas = deployment.replicas if deployment is not None else 0
    surplus = [r for r in state.records if r.index >= replicas]
    wanted = [] if deployment is None else [decide(deployment, state.record(i), moment) for i in range(replicas)]
    return tuple(step for steps in (*wanted, *(remove(r, moment) for r in surplus)) for step in steps)


def _check(goal: Goal, steps: tuple[Step, ...]) -> None:
    shown = {c.replica: c.action for c in goal.changes}
    for step in steps:
        if isinstance(step, Wait | Done | GiveUp):
            continue
        if not isinstance(step, MAY[shown.get(step.replica, Action.NO_OP)]):
            raise errors.StalePlan(
                f"{goal.name}[{step.replica}] now needs a {type(step).__name__.lower()}, which the plan did not show.",
                hint="The world changed under way. Run `tpudeploy apply` again to see and approve a new plan.",
            )


def _is_enough(goal: Goal, tick: Tick, until: wait.Wait) -> bool:
    """Whether each replica has come so far with a slice as it is wanted now: one to be replaced says nothing."""
    deployment = goal.deployment
    if deployment is None or until is wait.Wait.SERVING:
        return False
    replicas = (tick.state.record(i).attempts for i in range(deployment.replicas))
    fitting = ([a for a in attempts if a.releasing_at is None and matches(deployment, a)] for attempts in replicas)
    if until is wait.Wait.GRANTED:
        return all(any(a.granted_at is not None for a in attempts) for attempts in fitting)
    return all(any(a.seen for a in attempts) for attempts in fitting)


def _pause(world: World, waits: list[Wait], quiet: int, deadline: float | None) -> float:
    """Seconds to the next look: the pace of the polls, cut short by whatever falls due first."""
    due = [w.seconds for w in waits if w.seconds is not None]
    if deadline is not None:
        due.append(deadline - world.clock.now())
    return max(0.0, min([world.patience.poll(quiet), *due]))


def _timeout(goal: Goal, tick: Tick) -> errors.TpudeployError:
    if goal.deployment is None:
        left = ", ".join(a.name for a in tick.state.attempts)
        hint = "Run `tpudeploy destroy` again: it goes on where this stopped."
        return errors.CloudError(f"{goal.name} is not gone yet. Still there: {left}.", hint=hint)
    waiting = [a for a in tick.state.attempts if a.granted_at is None]
    kept = ", ".join(f"{a.name} ({a.zone}, {a.provisioning})" for a in tick.state.attempts) or "none"
    hint = (
        f"Still outstanding: {kept}.\n"
        "Run `tpudeploy apply` again to go on where this stopped, or `tpudeploy destroy` to remove them."
    )
    if waiting or not tick.state.attempts:
        return errors.CapacityTimeout(
            f"{goal.name} was not granted in time. Nothing is lost: the requests stand.", hint=hint
        )
    return errors.ServingError(f"{goal.name} did not serve in time. The slice is kept.", hint=hint)


def finished(state: State) -> State:
    """The state once its goal is reached. Records of replicas that are gone are dropped."""
    return replace(state, goal=None, records=tuple(r for r in state.records if r.attempts or r.refusals))
