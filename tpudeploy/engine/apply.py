"""A plan, approved, made true: each deployment converged, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from tpudeploy.core.fingerprint import server_print
from tpudeploy.core.placement import is_closed
from tpudeploy.core.wanted import wanted
from tpudeploy.domain import errors, events
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.plan import Action, Change, Goal, Plan
from tpudeploy.domain.report import Endpoint, Outcome, Report
from tpudeploy.domain.slices import Scope
from tpudeploy.domain.state import Goal as Aim
from tpudeploy.domain.state import State
from tpudeploy.domain.wait import Wait
from tpudeploy.engine.announce import Announcer
from tpudeploy.engine.converge import Tick, converge, finished
from tpudeploy.engine.plan import goal as look_anew
from tpudeploy.engine.session import session
from tpudeploy.ports import World

_PARALLEL = 8


@frozen
class Result:
    """One deployment's outcomes."""

    outcomes: tuple[Outcome, ...]
    endpoints: tuple[Endpoint, ...] = ()


def apply(world: World, plan: Plan, *, until: Wait = Wait.SERVING, timeout: float | None = None) -> Report:
    """Carry out `plan`. What goes wrong with one deployment is in its outcome and stops no other.

    Raise `errors.StalePlan` before anything is done, if the world no longer asks for these very changes.
    """
    deadline = None if timeout is None else world.clock.now() + timeout
    todo = [g for g in plan.goals if g.resumes or any(c.action is not Action.NO_OP for c in g.changes)]
    begun = [_begin(world, g) for g in todo]
    results = _side_by_side(world, [partial(_run, world, g, until, deadline) for g in begun])
    return Report(
        outcomes=tuple(o for r in results for o in r.outcomes),
        endpoints=tuple(e for r in results for e in r.endpoints),
    )


def _begin(world: World, goal: Goal) -> Goal:
    """Hold the plan against the world once more, and write down what was approved."""
    with session(world, goal.name, "apply" if goal.deployment else "destroy") as held:
        current = look_anew(world, goal.name, goal.deployment, held.state)
        if _shape(current.changes) != _shape(goal.changes):
            raise errors.StalePlan(
                f"The plan for {goal.name} no longer holds: the world changed since it was made.",
                hint="Run the command again to see and approve a new plan.",
            )
        aim = Aim(fingerprint=goal.fingerprint, since=world.clock.now(), who=world.who)
        if held.state.goal is not None and held.state.goal.fingerprint == aim.fingerprint:
            aim = held.state.goal
        held.save(_hopeful(world, goal, _restarting(goal, replace(held.state, goal=aim))))
        return replace(goal, serial=held.state.serial, lineage=held.state.lineage)


def _run(world: World, goal: Goal, until: Wait, deadline: float | None) -> Result:
    began = world.clock.now()
    todo = [c for c in goal.changes if c.action is not Action.NO_OP]
    for change in todo:
        world.emit(events.ChangeStarted(at=began, address=change.address, action=change.action))
    announcer = Announcer(world, goal.name)
    try:
        last = converge(world, goal, announcer, until=until, deadline=deadline)
        _finish(world, goal, announcer, last)
    except errors.TpudeployError as error:
        for change in todo:
            world.emit(_failed(world, change, error))
        # A resumed run that had nothing left to change can still fail to reach its end.
        failed = {c.address: c.action for c in todo} or {goal.name: Action.NO_OP}
        return Result(outcomes=tuple(Outcome(address=a, action=action, error=error) for a, action in failed.items()))
    now = world.clock.now()
    for change in todo if last.is_last else ():
        world.emit(events.ChangeDone(at=now, address=change.address, action=change.action, elapsed=now - began))
    outcomes = (Outcome(address=c.address, action=c.action, underway=not last.is_last) for c in todo)
    return Result(outcomes=tuple(outcomes), endpoints=announcer.endpoints)


def _finish(world: World, goal: Goal, announcer: Announcer, last: Tick) -> None:
    """Where the goal is reached: only then stop remembering the approval, and what serves no more is not published."""
    if not last.is_last:
        return
    with session(world, goal.name, "finish") as held:
        if not announcer.endpoints:
            world.state.publish(goal.name, None)
        held.save(finished(held.state))


def _failed(world: World, change: Change, error: errors.TpudeployError) -> events.ChangeFailed:
    return events.ChangeFailed(
        at=world.clock.now(),
        address=change.address,
        action=change.action,
        code=error.code,
        message=error.message,
        hint=error.hint,
    )


def _shape(changes: Iterable[Change]) -> list[object]:
    """What an approval covers. How far a resumed run had come may move on meanwhile."""
    return [(c.address, c.action, c.fields, c.slice_name) for c in changes]


def _restarting(goal: Goal, state: State) -> State:
    """Write down which servers are to be booted anew as they are: one that failed shows nothing else to decide by."""
    if goal.deployment is None:
        return state
    names = {c.slice_name for c in goal.changes if c.action is Action.RESTART}
    for record in state.records:
        for attempt in record.attempts:
            if attempt.name in names and attempt.booted == server_print(wanted(goal.deployment, attempt)):
                anew = replace(attempt, boot_asked=False)
                state = state.with_record(state.record(record.index).with_attempt(anew))
    return state


def _hopeful(world: World, goal: Goal, state: State) -> State:
    """Drop what only a person could mend: that a person asks again says they may have."""
    places = goal.deployment.candidates if goal.deployment is not None else ()
    closed = partial(is_closed, places, now=world.clock.now(), patience=world.patience)
    records = (
        replace(r, refusals=tuple(x for x in r.refusals if x.scope is not Scope.PROJECT and not closed(r.refusals)))
        for r in state.records
    )
    return replace(state, records=tuple(records))


def _side_by_side(world: World, runs: list[Callable[[], Result]]) -> list[Result]:
    """One alone runs in the caller's thread. Interrupted, the others stop at their next look or sleep."""
    if len(runs) <= 1:
        return [run() for run in runs]
    with ThreadPoolExecutor(max_workers=_PARALLEL) as pool:
        futures = [pool.submit(run) for run in runs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            world.clock.stop()
            for future in futures:
                future.cancel()
            raise
