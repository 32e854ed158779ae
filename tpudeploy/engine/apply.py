"""A plan, approved, made true: each deployment converged, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from threading import Lock

from tpudeploy.domain import errors, events
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.plan import Action, Change, Effect, Goal, Plan, stopped_by
from tpudeploy.domain.report import Endpoint, Outcome, Report
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.state import Goal as Aim
from tpudeploy.domain.wait import Wait
from tpudeploy.engine.announce import Announcer
from tpudeploy.engine.attest import Attestor
from tpudeploy.engine.converge import Convergence, finished
from tpudeploy.engine.lost import tell_adopted, with_adopted
from tpudeploy.engine.plan import goal as look_anew
from tpudeploy.engine.schedule import side_by_side
from tpudeploy.engine.session import session
from tpudeploy.node.fingerprint import aim_print, server_print
from tpudeploy.planning.drift import refreshed
from tpudeploy.planning.seen import changed
from tpudeploy.planning.targets import marked
from tpudeploy.ports import Witnesses, World
from tpudeploy.reconcile.handover import ending
from tpudeploy.reconcile.placement import is_closed
from tpudeploy.reconcile.wanted import wanted


@frozen
class Result:
    """One deployment's outcomes."""

    outcomes: tuple[Outcome, ...]
    endpoints: tuple[Endpoint, ...] = ()


def apply(
    world: World,
    plan: Plan,
    *,
    witnesses: Witnesses | None = None,
    until: Wait = Wait.SERVING,
    timeout: float | None = None,
    keep: bool = False,
    may_reset: bool = False,
    on_begun: Callable[[], None] = lambda: None,
) -> Report:
    """Carry out `plan`. What goes wrong with one deployment is in its outcome and stops no other.

    With `keep`, the run continues after that and requests what is lost again, until the clock is stopped; `timeout`
    limits only the way there. With `may_reset`, a running node that does not pick up a change is rebooted; without it,
    the run ends with `errors.ChangeNotAcknowledged`. A plan of one deployment raises `errors.StalePlan` before anything
    is done if the world no longer needs exactly these changes. In a plan of several, each deployment is checked by
    itself, and the others continue. A plan from a file holds as a whole, or `errors.StalePlan` is raised. `on_begun` is
    called once the plan holds and its approval is saved, before any request.

    What serves at its end is held against what it was told; `witnesses` are asked. So is what failed that when it was
    last asked, though nothing is to be changed: `Report.not_in_effect` tells of it until it does what was declared.
    """
    deadline = None if timeout is None else world.clock.now() + timeout
    todo = [
        g for g in plan.goals if keep or g.resumes or g.errors or any(c.action is not Action.NO_OP for c in g.changes)
    ]
    if plan.source and len(todo) > 1:
        _all_hold(world, todo, plan.source)
    tell_begun = _once(on_begun)
    if not todo:
        tell_begun()

    def begin(goal: Goal) -> _Run:
        if goal.errors:
            raise stopped_by(goal.errors[0])
        goal = _begin(world, goal, plan.source)
        tell_begun()
        attestor = Attestor(world, goal, witnesses)
        return _Run(world, goal, until, deadline, keep=keep, may_reset=may_reset, attestor=attestor)

    asked = {g.name for g in todo}
    checks = [
        _Check(g, Attestor(world, g, witnesses))
        for g in plan.goals
        if g.to_verify and g.name not in asked and witnesses
    ]
    parts = [_Part(world, goal, begin) for goal in todo]
    if len(parts) == 1 and not todo[0].errors:
        parts[0].begin()
    runs: list[_Run] = []
    try:
        side_by_side(world.clock, [*parts, *checks], threads=world.threads)
    except (KeyboardInterrupt, errors.Interrupted):
        for run in _runs(parts):
            run.interrupted()
        raise
    finally:
        runs = _runs(parts)
        for run in runs:
            run.settle()
    attestors = (*(check.attestor for check in checks), *(run.attestor for run in runs))
    return Report(
        outcomes=(*(o for part in parts for o in part.outcomes), *(o for check in checks for o in check.outcomes)),
        endpoints=tuple(e for r in runs for e in r.result.endpoints),
        unchanged=tuple(g.name for g in plan.goals if g.name not in asked),
        not_in_effect=tuple(error for attestor in attestors for error in attestor.not_in_effect),
    )


class _Check:
    """One deployment of which nothing is to be changed, and whose engines did not do what was declared: asked again."""

    def __init__(self, goal: Goal, attestor: Attestor) -> None:
        self._goal = goal
        self.attestor = attestor
        self.outcomes: tuple[Outcome, ...] = ()

    def step(self) -> float | None:
        """See `schedule.Run`: there is one step. A deployment that cannot be looked at is an outcome."""
        try:
            self.attestor.verify_again()
        except errors.Interrupted:
            raise
        except errors.TpudeployError as error:
            self.outcomes = _outcomes(self._goal, error)
        return None


class _Part:
    """One deployment's part of the plan. It begins in its own first step, so that no deployment waits for another."""

    def __init__(self, world: World, goal: Goal, begin: Callable[[Goal], _Run]) -> None:
        self._world = world
        self._goal = goal
        self._begin = begin
        self._refused: tuple[Outcome, ...] = ()
        self.run: _Run | None = None

    def begin(self) -> None:
        """Raise what stops it before anything is done, `errors.StalePlan` for one."""
        self.run = self._begin(self._goal)

    def step(self) -> float | None:
        """See `schedule.Run`. What stops this deployment stops no other: it is an outcome."""
        if self.run is not None:
            return self.run.step()
        try:
            self.begin()
        except errors.Interrupted:
            raise
        except errors.TpudeployError as error:
            for change in (c for c in self._goal.changes if c.action is not Action.NO_OP):
                self._world.emit(_started(self._world, change))
                self._world.emit(_failed(self._world, change, error))
            self._refused = _outcomes(self._goal, error)
            return None
        return 0.0

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        return self._refused if self.run is None else self.run.result.outcomes


def _runs(parts: Iterable[_Part]) -> list[_Run]:
    """Return the runs of those that have begun."""
    return [part.run for part in parts if part.run is not None]


def _once(deed: Callable[[], None]) -> Callable[[], None]:
    """Return a function that does `deed` the first time it is called, and has every other caller wait until it is done.

    So what is to be done before anything is asked for is done, whichever thread comes first.
    """
    lock, left = Lock(), [deed]

    def do() -> None:
        with lock:
            while left:
                left.pop()()

    return do


def _begin(world: World, goal: Goal, source: str) -> Goal:
    """Hold the plan against the world once more, and write down what was approved.

    One from the file `source` holds only for the very state and slices that it was made for, unless it began already.
    """
    world.clock.sleep(0.0)  # an interrupted run begins nothing more
    with session(world, goal.name, "apply" if goal.deployment else "destroy") as held:
        whole = aim_print(goal.deployment, None)
        state = marked(with_adopted(world, goal, held.state), goal.replaces, {goal.fingerprint, whole})
        current = _anew(world, goal, state)
        if source and _is_begun(goal, current):
            goal = replace(goal, changes=current.changes)  # it was begun, and has come so far
        elif source:
            _must_be_true(goal, held.state, current, source)
        state = ending(refreshed(state, current.drift), current.renews)
        if _shape(current.changes) != _shape(goal.changes):
            raise errors.StalePlan(
                f"The plan for {goal.name} no longer holds: the world changed since it was made.",
                hint="Run the command again to see and approve a new plan.",
            )
        removes = goal.deployment is None
        now, approval = world.clock.now(), goal.approval
        aim = Aim(fingerprint=goal.fingerprint, since=now, who=world.who, removes=removes, approval=approval)
        begun = state.begun
        if held.state.goal is not None and held.state.goal.fingerprint in {aim.fingerprint, whole}:
            # This run resumes what an earlier one began. It was counted then, and a pipeline may take it over.
            aim = replace(held.state.goal, approval=goal.approval or held.state.goal.approval)
        elif not goal.is_renewal:
            # Saved together with the aim: an approval is used up by the very write that begins what it approves, so
            # that no instant exists at which a crash leaves it usable for a second time.
            begun += 1
        held.save(_hopeful(world, goal, _restarting(goal, replace(state, goal=aim, begun=begun))))
        tell_adopted(world, goal, held.state)
        return replace(goal, serial=held.state.serial, lineage=held.state.lineage)


def _anew(world: World, goal: Goal, state: State) -> Goal:
    """The same goal, from another look."""
    return look_anew(
        world,
        goal.name,
        goal.deployment,
        state,
        adopts=goal.adopts,
        targets=goal.targets,
        replaces=goal.replaces,
    )


def _all_hold(world: World, goals: Iterable[Goal], source: str) -> None:
    """Before the first of several is begun: a plan is for all of them. Raise `errors.StalePlan`."""
    for goal in goals:
        state = world.state.read(goal.name).state or State(deployment=goal.name, lineage="")
        current = _anew(world, goal, with_adopted(world, goal, state))
        if not _is_begun(goal, current):
            _must_be_true(goal, state, current, source)


def _is_begun(goal: Goal, current: Goal) -> bool:
    """Whether the state says that this very aim was approved, and is not reached yet."""
    return current.resumes and goal.lineage in {"", current.lineage}


def _must_be_true(goal: Goal, state: State, current: Goal, source: str) -> None:
    """Raise `errors.StalePlan` where a saved plan was made for another state, or for slices that were other then."""
    hint = "Nothing was done. Make a new plan: `tpudeploy plan -out FILE`."
    lineage = state.lineage if state.serial else ""
    if lineage != goal.lineage:
        here = f"the state here has another lineage ({lineage[:8]})" if lineage else "there is no state of it here"
        raise errors.StalePlan(
            f"{source} does not match: it was made for another state of {goal.name}; {here}.", hint=hint
        )
    if state.serial != goal.serial:
        raise errors.StalePlan(
            f"{source} is stale: the state of {goal.name} was changed after the plan was made "
            f"(serial {goal.serial} then, {state.serial} now).",
            hint=hint,
        )
    other = changed(goal.seen, current.seen)
    if other:
        raise errors.StalePlan(f"{source} is stale: {', '.join(other)} changed after the plan was made.", hint=hint)


class _Run:
    """One deployment's way to its goal, and what came of it."""

    def __init__(
        self,
        world: World,
        goal: Goal,
        until: Wait,
        deadline: float | None,
        *,
        keep: bool,
        may_reset: bool,
        attestor: Attestor,
    ) -> None:
        self.attestor = attestor
        self._world = world
        self._is_kept = keep
        self._goal = goal
        self._began = world.clock.now()
        self._todo = [c for c in goal.changes if c.action is not Action.NO_OP]
        for change in self._todo:
            world.emit(_started(world, change))
        self._announcer = Announcer(world, goal)
        self._way = Convergence(
            world, goal, self._announcer, attestor, until=until, deadline=deadline, keep=keep, may_reset=may_reset
        )
        self._is_ended = False
        self.result = Result(outcomes=())

    def step(self) -> float | None:
        """See `schedule.Run`. What is ours to tell goes into `result`."""
        try:
            pause = self._way.step()
            if pause is None or (self._way.is_there and not self._is_ended):
                self.result = self._reached()
        except errors.Interrupted:
            raise
        except errors.TpudeployError as error:
            if isinstance(error, errors.RolledBack):
                self._end_goal()  # to try it once more is another decision
            self.result = self._failed(error)
            self._is_kept = False
            return None
        return pause

    def interrupted(self) -> None:
        """Say what is left behind, but for what has come to its end."""
        if not self.result.outcomes:
            self._way.interrupted()

    def settle(self) -> None:
        """Where it was kept alive to the end and stands: nothing is left to go on with. What was cut short is told."""
        if self._is_kept and self._way.is_there:
            self._finish()
        self._end(events.ChangeLeft)

    def _reached(self) -> Result:
        is_there = self._way.is_there
        if is_there and not self._is_kept:
            self._finish()
        self._end(events.ChangeDone if is_there else events.ChangeLeft)
        outcomes = (Outcome(address=c.address, action=c.action, underway=not is_there) for c in self._todo)
        return Result(outcomes=tuple(outcomes), endpoints=self._announcer.endpoints)

    def _finish(self) -> None:
        """Only now stop remembering the approval; what serves no more is not published."""
        with session(self._world, self._goal.name, "finish") as held:
            if not self._announcer.endpoints and self._goal.covers(0):
                self._announcer.withdraw(held)
            held.save(self.attestor.record(finished(held.state, self._goal.fingerprint)))

    def _end_goal(self) -> None:
        with session(self._world, self._goal.name, "finish") as held:
            held.save(finished(held.state, self._goal.fingerprint))

    def _end(self, kind: type[events.ChangeDone | events.ChangeLeft]) -> None:
        """Every start has one end: what was told to have one is not told another."""
        now = self._world.clock.now()
        for change in self._todo if not self._is_ended else ():
            self._world.emit(kind(at=now, address=change.address, action=change.action, elapsed=now - self._began))
        self._is_ended = True

    def _failed(self, error: errors.TpudeployError) -> Result:
        for change in self._todo:
            told = _stopped if self._is_ended else _failed
            self._world.emit(told(self._world, change, error))
        self._is_ended = True
        return Result(outcomes=_outcomes(self._goal, error))


def _outcomes(goal: Goal, error: errors.TpudeployError) -> tuple[Outcome, ...]:
    """Of what failed. A resumed run that had nothing left to change can still fail to reach its end."""
    nothing: Action = Action.NO_OP
    todo = {c.address: c.action for c in goal.changes if c.action is not nothing} or {goal.name: nothing}
    return tuple(Outcome(address=address, action=action, error=error) for address, action in todo.items())


def _started(world: World, change: Change) -> events.ChangeStarted:
    return events.ChangeStarted(at=world.clock.now(), address=change.address, action=change.action)


def _failed(world: World, change: Change, error: errors.TpudeployError) -> events.ChangeFailed:
    return events.ChangeFailed(
        at=world.clock.now(),
        address=change.address,
        action=change.action,
        code=error.code,
        message=error.message,
        hint=error.hint,
    )


def _stopped(world: World, change: Change, error: errors.TpudeployError) -> events.Warned:
    """What was kept alive, and is no more."""
    return events.Warned(at=world.clock.now(), address=change.address, message=error.message, hint=error.hint)


def _shape(changes: Iterable[Change]) -> list[object]:
    """What an approval covers. How far a run had come may move on meanwhile: which request is ahead is no matter."""
    return [
        (c.address, c.action) if c.action is Action.CREATE else (c.address, c.action, c.fields, c.slice_name)
        for c in changes
    ]


def _restarting(goal: Goal, state: State) -> State:
    """Write down which servers are to be booted anew as they are: one that failed shows nothing else to decide by."""
    if goal.deployment is None:
        return state
    restarts = {c.slice_name if c.action is Action.RESTART else c.boots_anew: c for c in goal.changes}
    for record in state.records:
        for attempt in record.attempts:
            if attempt.name in restarts and _is_to_be_told(goal.deployment, attempt, restarts[attempt.name]):
                is_same = attempt.booted == server_print(wanted(goal.deployment, attempt))
                asked = attempt.boot_asked and not is_same
                anew = replace(attempt, boot_asked=asked, change="", is_failed=False)
                state = state.with_record(state.record(record.index).with_attempt(anew))
    return state


def _is_to_be_told(deployment: Deployment, attempt: Attempt, change: Change) -> bool:
    """Whether a restart begins anew: it failed, or the server stays as it is. One that is under way goes on."""
    if attempt.is_failed:
        return True
    is_same = attempt.booted == server_print(wanted(deployment, attempt))
    is_under_way = bool(attempt.change) and any(f.effect is Effect.RESTART for f in change.fields)
    return is_same and not is_under_way


def _hopeful(world: World, goal: Goal, state: State) -> State:
    """Drop what only a person could mend: that a person asks again says they may have."""
    places = goal.deployment.candidates if goal.deployment is not None else ()
    closed = partial(is_closed, places, now=world.clock.now(), patience=world.patience)
    records = (
        replace(r, refusals=tuple(x for x in r.refusals if not x.stops and not closed(r.refusals)))
        for r in state.records
    )
    return replace(state, records=tuple(records))
