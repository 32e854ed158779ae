"""Apply an approved plan: each deployment converges, side by side with the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock

from tpudeploy.domain import errors, events
from tpudeploy.domain.cost_budget import CostCeiling
from tpudeploy.domain.plan import Action, Change, Effect, Goal, Plan, stopped_by
from tpudeploy.domain.report import ReplicaEndpoint, ReplicaOutcome, RunReport, Wait
from tpudeploy.domain.state import Approval, Attempt, State
from tpudeploy.domain.together import together
from tpudeploy.engine.capacity_history import CapacityHistory
from tpudeploy.engine.converge import Convergence, without_approval
from tpudeploy.engine.cost_wall import CostWall
from tpudeploy.engine.orphans import report_adopted, with_adopted
from tpudeploy.engine.plan import plan_deployment
from tpudeploy.engine.publish import EndpointPublisher, ask_router, keep_router, published_endpoints
from tpudeploy.engine.schedule import ScheduledRun, run_all
from tpudeploy.engine.session import open_session
from tpudeploy.engine.strays import Listings
from tpudeploy.engine.verify import Verifier
from tpudeploy.node.fingerprint import aim_print, server_print
from tpudeploy.planning.drift import refreshed
from tpudeploy.planning.plan_preconditions import changed_slices
from tpudeploy.planning.targets import mark_replacements
from tpudeploy.ports import VerifySources, World
from tpudeploy.reconcile.cutover import mark_as_ending
from tpudeploy.reconcile.desired import desired_attributes
from tpudeploy.reconcile.ends import is_over, started_again, without_ending
from tpudeploy.reconcile.placement import is_closed
from tpudeploy.reconcile.refusals import places_not_stopped


def apply(
    world: World,
    plan: Plan,
    *,
    sources: VerifySources | None = None,
    until: Wait = Wait.SERVING,
    timeout: float | None = None,
    keep: bool = False,
    may_reset: bool = False,
    max_requests: int | None = None,
    ceiling: CostCeiling | None = None,
    on_started: Callable[[], None] = lambda: None,
    beside: Iterable[ScheduledRun] = (),
) -> RunReport:
    """Carry out `plan`. The error of one deployment is in its outcome and stops no other.

    With `keep`, the run continues after that and requests what is lost again, until the clock is stopped; `timeout`
    limits only the way there. With `may_reset`, a running node that does not pick up a change is rebooted; without it,
    the run ends with `errors.ChangeNotAcknowledged`. Each deployment requests at most `max_requests` slices; one that
    has none then ends with `errors.CapacityTimeout`. A request that could exceed a budget or `ceiling` is not sent:
    that ends with `errors.BudgetExceeded`. A plan of one deployment raises `errors.StalePlan` before anything is done
    if the world no longer needs exactly these changes. In a plan of several, each deployment is checked by itself, and
    the others continue. A plan from a file holds as a whole, or `errors.StalePlan` is raised. `on_started` is called
    once the plan holds and its approval is saved, before any request. What is `beside` the deployments is stepped with
    them, and ends with the last one.

    At the end, `sources` verify what serves against its declared settings. So are servers that failed the last
    verification, even without a change: `RunReport.not_in_effect` has their errors until they pass.
    """
    deadline = None if timeout is None else world.clock.now() + timeout
    changing, unchanged = _split(plan.goals, keep=keep)
    changing, unchanged = _with_unpublished(world, changing, unchanged)
    history = CapacityHistory(world, (goal.deployment for goal in changing))
    # A plan from a file holds as a whole, so all of its parts are checked before the first one begins.
    if plan.source and len(changing) > 1:
        _check_all_hold(world, history, changing, plan.source)
    notify_started = _once(on_started)
    listings = Listings(world)
    wall = CostWall(world, ceiling)

    def start(goal: Goal) -> _Run:
        # The plan already has the reason why this deployment cannot be changed.
        if goal.errors:
            raise stopped_by(goal.errors[0])
        goal = _record_start(world, history, goal, plan.source)
        notify_started()
        verifier = Verifier(world, goal, sources)
        return _Run(
            world,
            goal,
            until,
            deadline,
            keep=keep,
            may_reset=may_reset,
            max_requests=max_requests,
            wall=wall,
            verifier=verifier,
            history=history,
            listings=listings,
        )

    parts = [_DeploymentRun(world, goal, start) for goal in changing]
    verifications = _verifications(world, unchanged, sources)
    if not parts:
        # Without work there is no first deployment that could call it.
        notify_started()
    elif len(parts) == 1 and not changing[0].errors:
        # A single deployment begins here, so that a stale plan is raised and not an outcome.
        parts[0].start()
    _run_to_the_end(world, parts, verifications, beside)
    # A run keeps the router of its deployment. That of another one may have ended with its machine.
    for goal in unchanged:
        keep_router(world, goal)
    # A run that is kept alive ends when it is stopped, and reports what its router does until then.
    silent = [] if keep else _silent_routers(world, [*unchanged, *_goals_with_endpoints(parts)])
    endpoints = _endpoints(world, plan.goals, parts)
    return _report(parts, verifications, unchanged, silent, endpoints)


def _split(goals: Iterable[Goal], *, keep: bool) -> tuple[list[Goal], list[Goal]]:
    """Return the goals that need a run, and those that do not."""
    changing: list[Goal] = []
    unchanged: list[Goal] = []
    for goal in goals:
        needs_run = keep or goal.resumes or goal.forgets or goal.errors or _changed(goal)
        (changing if needs_run else unchanged).append(goal)
    return changing, unchanged


def _with_unpublished(
    world: World, changing: Sequence[Goal], unchanged: Sequence[Goal]
) -> tuple[list[Goal], list[Goal]]:
    """Return the goals with those among the first that serve and have no endpoint document that can be read.

    Such a deployment was moved from another folder or bucket, or its document was removed: clients cannot find it. The
    run writes it, or says why it cannot.
    """

    def lacks_endpoint(goal: Goal) -> bool:
        if goal.deployment is None or goal.targets is not None:
            return False
        with suppress(errors.StateUnreadable):
            if world.state.published(goal.name):
                return False
        try:
            state = world.state.read(goal.name).state
        except errors.StateUnreadable:
            # Whoever needs it reports that it cannot be read.
            return False
        return state is not None and bool(state.published)

    lacking = together(world.threads, lacks_endpoint, unchanged)
    moved = [goal for goal, lacks in zip(unchanged, lacking, strict=True) if lacks]
    return [*changing, *moved], [goal for goal in unchanged if goal not in moved]


def _verifications(world: World, unchanged: Iterable[Goal], sources: VerifySources | None) -> list[_Verification]:
    if sources is None:
        return []
    return [_Verification(goal, Verifier(world, goal, sources)) for goal in unchanged if goal.to_verify]


def _goals_with_endpoints(parts: Iterable[_DeploymentRun]) -> list[Goal]:
    return [part.goal for part in parts if part.run is not None and part.run.endpoints]


def _silent_routers(world: World, goals: Iterable[Goal]) -> list[errors.NotInEffect]:
    """Return why no completion comes back through the routers of this machine."""
    answers = (ask_router(world, goal) for goal in goals)
    return [error for error in answers if error is not None]


def _endpoints(world: World, goals: Iterable[Goal], parts: Iterable[_DeploymentRun]) -> list[ReplicaEndpoint]:
    """Return the endpoints of all deployments of the plan, of those without a change or with an error as published.

    A run knows the replicas that it brought to serve, and how it reached them.
    """
    goals = [goal for goal in goals if goal.deployment is not None]
    reported = {part.goal.name: part.run.endpoints for part in parts if part.run is not None}
    published = together(world.threads, lambda goal: published_endpoints(world, goal), goals)
    endpoints: list[ReplicaEndpoint] = []
    for goal, others in zip(goals, published, strict=True):
        by_address = {each.address: each for each in (*others, *reported.get(goal.name, ()))}
        endpoints += sorted(by_address.values(), key=lambda each: (len(each.address), each.address))
    return endpoints


def _run_to_the_end(
    world: World,
    parts: Sequence[_DeploymentRun],
    verifications: Sequence[_Verification],
    beside: Iterable[ScheduledRun],
) -> None:
    """Run all of them side by side. However that ends, each run that has begun is settled."""
    try:
        run_all(world.clock, [*parts, *verifications], threads=world.threads, beside=beside)
    except (KeyboardInterrupt, errors.Interrupted):
        for run in _started_runs(parts):
            run.report_interruption()
        raise
    finally:
        for run in _started_runs(parts):
            run.settle()


def _report(
    parts: Sequence[_DeploymentRun],
    verifications: Sequence[_Verification],
    unchanged: Iterable[Goal],
    silent_routers: Iterable[errors.NotInEffect],
    endpoints: Sequence[ReplicaEndpoint],
) -> RunReport:
    runs = _started_runs(parts)
    verifiers = [*(each.verifier for each in verifications), *(run.verifier for run in runs)]
    return RunReport(
        outcomes=(*(o for part in parts for o in part.outcomes), *(o for each in verifications for o in each.outcomes)),
        endpoints=tuple(endpoints),
        unchanged=tuple(goal.name for goal in unchanged),
        not_in_effect=(*(error for each in verifiers for error in each.not_in_effect), *silent_routers),
    )


def _changed(goal: Goal) -> list[Change]:
    return [change for change in goal.changes if change.action is not Action.NO_OP]


class _Verification:
    """Verifies a deployment that is not to change, because its engines failed the last verification."""

    def __init__(self, goal: Goal, verifier: Verifier) -> None:
        self._goal = goal
        self.verifier = verifier
        self.outcomes: tuple[ReplicaOutcome, ...] = ()

    def step(self) -> float | None:
        """See `schedule.ScheduledRun`. It has one step, which ends with an error if observation fails."""
        try:
            self.verifier.verify_again()
        except errors.Interrupted:
            raise
        except errors.TpudeployError as error:
            self.outcomes = _failed_outcomes(self._goal, error)
        return None


class _DeploymentRun:
    """One deployment's part of the plan. It begins in its own first step, so that no deployment waits for another."""

    def __init__(self, world: World, goal: Goal, start: Callable[[Goal], _Run]) -> None:
        self._world = world
        self.goal = goal
        self._start = start
        self._outcomes_without_run: tuple[ReplicaOutcome, ...] = ()
        self.run: _Run | None = None

    @property
    def outcomes(self) -> tuple[ReplicaOutcome, ...]:
        return self._outcomes_without_run if self.run is None else self.run.outcomes

    def start(self) -> None:
        """Raise what stops the deployment before anything is done, for example `errors.StalePlan`."""
        self.run = self._start(self.goal)

    def step(self) -> float | None:
        """See `schedule.ScheduledRun`. An error of this deployment is its outcome, and stops no other deployment."""
        if self.run is not None:
            return self.run.step()
        try:
            self.start()
        except errors.Interrupted:
            raise
        except errors.TpudeployError as error:
            for change in _changed(self.goal):
                self._world.emit(_started(self._world, change))
                self._world.emit(_failed(self._world, change, error))
            self._outcomes_without_run = _failed_outcomes(self.goal, error)
            return None
        return 0.0


def _started_runs(parts: Iterable[_DeploymentRun]) -> list[_Run]:
    return [part.run for part in parts if part.run is not None]


def _once(function: Callable[[], None]) -> Callable[[], None]:
    """Return a function that calls `function` the first time, and makes every other caller wait until it has returned.

    So nothing is requested before it has returned, whichever thread comes first.
    """
    lock, pending = Lock(), [function]

    def call_once() -> None:
        with lock:
            while pending:
                pending.pop()()

    return call_once


def _record_start(world: World, history: CapacityHistory, goal: Goal, source: str) -> Goal:
    """Check the plan against the world once more, and save its approval.

    A plan from the file `source` holds only for exactly the state and slices that it was made for, unless an earlier
    run has begun it already.
    """
    world.clock.sleep(0.0)  # raises in an interrupted run, which begins nothing more
    with open_session(world, goal.name, "apply" if goal.deployment else "destroy") as session:
        fingerprint_of_all = aim_print(goal.deployment, None)
        own_fingerprints = {goal.fingerprint, fingerprint_of_all}
        state = mark_replacements(with_adopted(world, goal, session.state), goal.replaces, own_fingerprints)
        if goal.starts:
            state = started_again(state, world.clock.now())
        current = _plan_again(world, history, goal, state)
        if source and _is_started(goal, current):
            # An earlier run carried out a part of the file: what is left of it is what the world needs now.
            goal = replace(goal, changes=current.changes)
        elif source:
            _check_holds(goal, session.state, current, source)
        state = mark_as_ending(refreshed(state, current.drift), current.renews)
        if _approved_content(current.changes) != _approved_content(goal.changes):
            raise errors.StalePlan(
                f"The plan for {goal.name} no longer applies: the cloud or the state changed after it was made.",
                hint="Run the command again to see and approve a new plan.",
            )
        previous, begun = session.state.goal, state.begun
        if previous is not None and previous.fingerprint in own_fingerprints:
            # This run resumes what an earlier one began. It was counted then, and a pipeline may take it over.
            approval = replace(previous, approval=goal.approval or previous.approval)
        else:
            approval = Approval(
                fingerprint=goal.fingerprint,
                since=world.clock.now(),
                who=world.who,
                removes=goal.deployment is None,
                approval=goal.approval,
            )
            # The count is saved together with the approval: an approval is used up by the very write that begins what
            # it approves, so that no instant exists at which a crash leaves it usable for a second time.
            begun += 0 if goal.is_renewal or goal.forgets else 1
        # The replicas that a plan for a part leaves alone end when they would have.
        if goal.targets is None and is_over(goal.deployment, state):
            state = without_ending(state, world.clock.now())
        state = with_choice(_with_restarts(goal, replace(state, goal=approval, begun=begun)), goal)
        session.save(_without_fixable_refusals(world, goal, state))
        report_adopted(world, goal, session.state)
        return replace(goal, serial=session.state.serial, lineage=session.state.lineage)


def with_choice(state: State, goal: Goal) -> State:
    """Return the state with the indexes of the replicas, where they are not the first ones or are scaled."""
    deployment = goal.deployment
    # A plan for a part decides nothing about the other replicas.
    if goal.targets is not None:
        return state
    if deployment is None:
        return replace(state, replicas=(), scaled=None, start=None)
    indexes = deployment.replica_indexes
    is_default = deployment.scale is None and indexes == tuple(range(len(indexes)))
    scaled, start = (None, None) if deployment.scale is None else (state.scaled, deployment.scale.start)
    return replace(state, replicas=() if is_default else indexes, scaled=scaled, start=start)


def _plan_again(world: World, history: CapacityHistory, goal: Goal, state: State) -> Goal:
    """Return the goal as a new observation shows it."""
    return plan_deployment(
        world,
        history,
        goal.name,
        goal.deployment,
        state,
        adopts=goal.adopts,
        targets=goal.targets,
        replaces=goal.replaces,
        starts=goal.starts,
    )


def _check_all_hold(world: World, history: CapacityHistory, goals: Iterable[Goal], source: str) -> None:
    """Check all parts of a saved plan before the first of them begins. Raise `errors.StalePlan`."""
    for goal in goals:
        state = world.state.read(goal.name).state or State(deployment=goal.name, lineage="")
        current = _plan_again(world, history, goal, with_adopted(world, goal, state))
        if not _is_started(goal, current):
            _check_holds(goal, state, current, source)


def _is_started(goal: Goal, current: Goal) -> bool:
    """Return whether the state has an approval of this goal, which is not reached yet."""
    return current.resumes and goal.lineage in {"", current.lineage}


def _check_holds(goal: Goal, state: State, current: Goal, source: str) -> None:
    """Raise `errors.StalePlan` if a saved plan was made for another state, or for slices that have changed since."""
    hint = "Nothing was done. Make a new plan: `tpudeploy plan -out FILE`."
    lineage = state.lineage if state.serial else ""
    if lineage != goal.lineage:
        here = f"the state here has another lineage ({lineage[:8]})" if lineage else "there is no state for it here"
        raise errors.StalePlan(
            f"{source} does not match: it was made for another state of {goal.name}; {here}.", hint=hint
        )
    if state.serial != goal.serial:
        raise errors.StalePlan(
            f"{source} is stale: the state of {goal.name} was changed after the plan was made "
            f"(serial {goal.serial} then, {state.serial} now).",
            hint=hint,
        )
    names = changed_slices(goal.seen, current.seen)
    if names:
        raise errors.StalePlan(f"{source} is stale: {', '.join(names)} changed after the plan was made.", hint=hint)


class _Run:
    """One deployment's way to its goal, and the result."""

    def __init__(
        self,
        world: World,
        goal: Goal,
        until: Wait,
        deadline: float | None,
        *,
        keep: bool,
        may_reset: bool,
        max_requests: int | None,
        wall: CostWall,
        verifier: Verifier,
        history: CapacityHistory,
        listings: Listings,
    ) -> None:
        self.verifier = verifier
        self.outcomes: tuple[ReplicaOutcome, ...] = ()
        self.endpoints: tuple[ReplicaEndpoint, ...] = ()
        self._world = world
        self._is_kept = keep
        self._goal = goal
        self._began = world.clock.now()
        self._changes = _changed(goal)
        self._is_reported = False
        for change in self._changes:
            world.emit(_started(world, change))
        self._publisher = EndpointPublisher(world, goal)
        self._convergence = Convergence(
            world,
            goal,
            self._publisher,
            verifier,
            history,
            until=until,
            deadline=deadline,
            listings=listings,
            keep=keep,
            may_reset=may_reset,
            max_requests=max_requests,
            wall=wall,
        )

    def step(self) -> float | None:
        """See `schedule.ScheduledRun`. An error of the deployment becomes its outcomes."""
        try:
            pause = self._convergence.step()
            if pause is None or (self._convergence.is_complete and not self._is_reported):
                self._record_success()
        except errors.Interrupted:
            raise
        except errors.TpudeployError as error:
            if isinstance(error, errors.RolledBack):
                # The change has ended: to try it again is a new decision, which needs a new approval.
                self._remove_approval()
            self._record_failure(error)
            return None
        return pause

    def report_interruption(self) -> None:
        """Report what is left unfinished, unless the run has come to its end."""
        if not self.outcomes:
            self._convergence.report_interruption()

    def settle(self) -> None:
        """End a run: remove the approval of one that was kept alive, and report a change that was cut short."""
        if self._is_kept and self._convergence.is_complete:
            self._finish()
        self._report_changes(events.ChangeLeft)

    def _record_success(self) -> None:
        is_complete = self._convergence.is_complete
        # With `keep`, the approval is needed until the run is stopped.
        if is_complete and not self._is_kept:
            self._finish()
        self._report_changes(events.ChangeDone if is_complete else events.ChangeLeft)
        self.endpoints = self._publisher.endpoints
        self.outcomes = tuple(
            ReplicaOutcome(address=change.address, action=change.action, underway=not is_complete)
            for change in self._changes
        )

    def _record_failure(self, error: errors.TpudeployError) -> None:
        completed_changes = self._completed_changes()
        for change in self._changes:
            if self._is_reported:
                # The change itself succeeded. This ends only the watch over it.
                self._world.emit(
                    events.Warned(
                        at=self._world.clock.now(),
                        address=change.address,
                        message=error.message,
                        hint=error.hint,
                        code=error.code,
                    )
                )
            elif change in completed_changes:
                now = self._world.clock.now()
                elapsed = now - self._began
                self._world.emit(
                    events.ChangeDone(at=now, address=change.address, action=change.action, elapsed=elapsed)
                )
            else:
                self._world.emit(_failed(self._world, change, error))
        self._is_reported = True
        self._is_kept = False
        successes = (ReplicaOutcome(address=change.address, action=change.action) for change in completed_changes)
        failed_outcomes = _failed_outcomes(self._goal, error)
        own_addresses = {change.address for change in completed_changes}
        self.outcomes = (*successes, *(o for o in failed_outcomes if o.address not in own_addresses))
        self.endpoints = ()

    def _completed_changes(self) -> list[Change]:
        """Return the changes of the replicas that have their desired state, where another replica ended the run."""
        served = self._convergence.served_replicas
        changes = [c for c in self._changes if c.replica in served and c.action is not Action.DESTROY]
        # An error of the deployment as a whole is not lost: without another change, it is the outcome of these.
        return changes if len(changes) < len(self._changes) else []

    def _finish(self) -> None:
        """Remove the approval only now that the goal is reached, and withdraw the endpoint if nothing serves."""
        with open_session(self._world, self._goal.name, "finish") as session:
            if not self._publisher.endpoints and self._goal.covers(0):
                self._publisher.withdraw(session)
            session.save(self.verifier.record(without_approval(session.state, self._goal.fingerprint)))

    def _remove_approval(self) -> None:
        with open_session(self._world, self._goal.name, "finish") as session:
            session.save(without_approval(session.state, self._goal.fingerprint))

    def _report_changes(self, event: type[events.ChangeDone | events.ChangeLeft]) -> None:
        """Report the end of each change, once."""
        now = self._world.clock.now()
        for change in self._changes if not self._is_reported else ():
            self._world.emit(event(at=now, address=change.address, action=change.action, elapsed=now - self._began))
        self._is_reported = True


def _failed_outcomes(goal: Goal, error: errors.TpudeployError) -> tuple[ReplicaOutcome, ...]:
    """Return an outcome for each change. A resumed run without changes can still fail, as the deployment itself."""
    nothing: Action = Action.NO_OP
    actions = {change.address: change.action for change in _changed(goal)} or {goal.name: nothing}
    return tuple(ReplicaOutcome(address=address, action=action, error=error) for address, action in actions.items())


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


def _approved_content(changes: Iterable[Change]) -> list[object]:
    """Return what an approval covers. Of a creation that is only its address: its requests may advance meanwhile."""
    return [
        (c.address, c.action) if c.action is Action.CREATE else (c.address, c.action, c.fields, c.slice_name)
        for c in changes
    ]


def _with_restarts(goal: Goal, state: State) -> State:
    """Mark the servers that are to be booted again as they are: nothing else shows the decision that they need."""
    deployment = goal.deployment
    if deployment is None:
        return state
    restarts = {
        change.slice_name if change.action is Action.RESTART else change.boots_anew: change for change in goal.changes
    }
    for record in state.all_records:
        target = deployment.of_replica(record.index)
        for attempt in record.attempts:
            change = restarts.get(attempt.name)
            if change is None or target is None:
                continue
            is_same_server = attempt.boot.server == server_print(desired_attributes(target, attempt))
            if _needs_new_change(attempt, change, is_same_server=is_same_server):
                boot = replace(attempt.boot, is_sent=attempt.boot.is_sent and not is_same_server)
                marked_attempt = replace(attempt, boot=boot, change=None, is_failed=False)
                state = state.with_record(state.record(record.index).with_attempt(marked_attempt))
    return state


def _needs_new_change(attempt: Attempt, change: Change, *, is_same_server: bool) -> bool:
    """Return whether a restart begins from the start: after a failure, or for the same server."""
    if attempt.is_failed:
        return True
    is_already_sent = attempt.change is not None and any(field.effect is Effect.RESTART for field in change.fields)
    return is_same_server and not is_already_sent


def _without_fixable_refusals(world: World, goal: Goal, state: State) -> State:
    """Drop the refusals that only a user can fix: that a user applies again means that they may have fixed them."""
    for record in state.all_records:
        target = None if goal.deployment is None else goal.deployment.of_replica(record.index)
        places = () if target is None else (*target.candidates, *target.floor_candidates)
        refusals = record.refusals
        open_places = places_not_stopped(places, refusals)
        if is_closed(open_places, refusals, world.clock.now(), world.patience):
            refusals = ()
        remaining_refusals = tuple(refused for refused in refusals if not refused.stops)
        if remaining_refusals != record.refusals:
            state = state.with_record(replace(record, refusals=remaining_refusals))
    return state
