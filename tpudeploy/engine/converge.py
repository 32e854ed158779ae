"""Reconcile one deployment: observe, decide, execute, until it has the desired state.

Waiting for capacity and waiting for a cloud that does not answer have two separate time limits.

Why: decisions 14 and 23 in docs/decisions.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf

from tpudeploy.domain import errors, events, report
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.ending import EndCause
from tpudeploy.domain.names import ROUTER, address
from tpudeploy.domain.orphans import CloudResource
from tpudeploy.domain.plan import Action, Change, Goal
from tpudeploy.domain.slices import Absence, Observed, Phase
from tpudeploy.domain.state import Approval, Attempt, State
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
from tpudeploy.engine.capacity_history import CapacityHistory
from tpudeploy.engine.cost_wall import CostWall, later_end_over_budget, over_budget
from tpudeploy.engine.execute import StepExecutor
from tpudeploy.engine.ledger import record_removal
from tpudeploy.engine.observe import observe
from tpudeploy.engine.progress import Progress
from tpudeploy.engine.publish import EndpointPublisher
from tpudeploy.engine.request_events import about
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.engine.router_machine import RouterMachine
from tpudeploy.engine.scale import Scaler
from tpudeploy.engine.session import StateSession, open_session
from tpudeploy.engine.slow_zones import SlowZones
from tpudeploy.engine.strays import Listings, StraySearch
from tpudeploy.engine.verify import Verifier
from tpudeploy.orphans.claims import as_attempt
from tpudeploy.planning.drift import with_losses
from tpudeploy.ports import World
from tpudeploy.reconcile.attempt_status import DecisionContext
from tpudeploy.reconcile.cost_wall import Shortfall
from tpudeploy.reconcile.cutover import with_drain
from tpudeploy.reconcile.decide import decide, matches, remove
from tpudeploy.reconcile.ends import until_end, with_ending, with_service, with_use, without_ending
from tpudeploy.reconcile.failed_landings import add_failed_landings
from tpudeploy.reconcile.merge_observation import merge_observation
from tpudeploy.reconcile.readiness import leaving_slices, ready_slices, reason_to_hold
from tpudeploy.reconcile.replicas import at_replica, with_replicas
from tpudeploy.reconcile.request_table import describe_request

# The steps that a planned change may take. `apply` does nothing that the plan did not show: any other step makes the
# plan stale.
PLANNED_STEPS: dict[Action, tuple[type[Step], ...]] = {
    Action.NO_OP: (),
    # A request may start with the server that it was sent with before the profile changed: nothing serves yet.
    Action.CREATE: (Request, PatchMetadata, PushChange, Reset, Release, Reclaim, Forget, Adopt),
    Action.UPDATE: (PatchMetadata, Release, Forget, Adopt),
    Action.RESTART: (PatchMetadata, PushChange, Reset, Release, Forget, Adopt),
    Action.REPLACE: (Request, PatchMetadata, PushChange, Reset, Release, Reclaim, Forget, Adopt),
    Action.DESTROY: (Release, Forget),
}
# The names of steps in messages, for those whose class has a name of several words.
_STEP_NAMES: dict[type[Step], str] = {PatchMetadata: "metadata update", PushChange: "change of its server"}

# The steps that keep a deployment as it was approved: a lost slice is replaced by another one, or with `renew` before
# it is lost. Nothing that serves is changed.
KEEPING_STEPS: tuple[type[Step], ...] = (Request, Release, Reclaim, Forget, Adopt, Renew)

_CONTINUE = "Run `tpudeploy apply` again to continue from here, or `tpudeploy destroy` to delete them."


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One observation and the steps that it led to. `was_refused`: the remaining steps were decided without that."""

    state: State
    observed: Observed
    steps: tuple[Step, ...]
    was_refused: bool

    @property
    def served_steps(self) -> tuple[Done, ...]:
        return tuple(step for step in self.steps if isinstance(step, Done))

    @property
    def failures(self) -> tuple[GiveUp, ...]:
        return tuple(step for step in self.steps if isinstance(step, GiveUp))

    @property
    def is_complete(self) -> bool:
        return all(isinstance(step, Done) for step in self.steps)

    def waits_for(self, replica: int) -> bool:
        """Return whether something of this replica is still requested or leaving."""
        return any(isinstance(step, Wait) and step.replica == replica for step in self.steps)

    def is_settled(self, replica: int) -> bool:
        """Return whether nothing of this replica is on its way: it serves, failed, or waits for other replicas."""
        own_steps = [step for step in self.steps if step.replica == replica]
        return all(
            isinstance(step, Done | GiveUp) or (isinstance(step, Wait) and step.is_for_replicas) for step in own_steps
        )


class Convergence:
    """The way of one deployment to `goal`, one tick at a time. Every step is saved, so any end can be resumed.

    With `keep`, it does not end when the goal is reached: what is lost is requested again. With `may_reset`, a node
    that does not pick up a change is rebooted. `max_requests` is how many slices it may request, None for any number.
    `wall` has the budgets that each request is held against.
    """

    def __init__(
        self,
        world: World,
        goal: Goal,
        publisher: EndpointPublisher,
        verifier: Verifier,
        history: CapacityHistory,
        *,
        until: report.Wait,
        deadline: float | None,
        listings: Listings,
        keep: bool = False,
        may_reset: bool = False,
        max_requests: int | None = None,
        wall: CostWall,
    ) -> None:
        self._world = world
        self._goal = goal
        self._strays = StraySearch(world, listings)
        self._released_nodes: dict[str, float] = {}  # since when those without a request are deleted, by name
        self._requests_left = max_requests
        self._wall = wall
        self._publisher = publisher
        self._verifier = verifier
        self._until = until
        self._deadline = deadline
        self._keep = keep
        self._may_reset = may_reset
        self._reached_at: float | None = None
        self._only_leaving_since: float | None = None
        self._progress = Progress(world, goal.name, goal.deployment)
        self._history = history
        self._scores = history.advice(goal.deployment).scores
        deployment = goal.deployment
        has_renewals = deployment is not None and deployment.lifecycle.renew
        self._acquisition = self._history.acquisition(deployment) if deployment is not None and has_renewals else 0.0
        self._last: Tick | None = None
        self._failures_shown: set[tuple[int, str]] = set()
        self._session: StateSession | None = None
        self._was_approved = False  # whether the state has had the approval of this run
        self._create_turns: dict[Backend, float] = {}
        self._router_machine = RouterMachine(world, goal.name)
        self._scaler = Scaler(world)
        self._slow_zones = SlowZones(world.clock)

    @property
    def is_complete(self) -> bool:
        """Whether the last observation found the goal reached."""
        return self._last is not None and self._last.is_complete

    @property
    def served_replicas(self) -> frozenset[int]:
        """The replicas that had their desired state at the last observation."""
        return frozenset() if self._last is None else frozenset(step.replica for step in self._last.served_steps)

    def step(self) -> float | None:
        """Observe, decide, execute. Return the seconds until the next tick is due, or None at the end.

        Raise the error of a `GiveUp`, `errors.CapacityTimeout` at the deadline, `errors.StalePlan` if the world needs
        more than the plan showed, and `errors.Fault` once the cloud has not answered for a long time.
        """
        world, goal = self._world, self._goal
        # A deployment that is kept alive outlives an hour without a network: nothing was asked for that could be lost.
        budget = world.patience.faults if self._reached_at is None else inf
        try:
            tick = retry_on_fault(world, goal.name, self._tick, budget=budget)
        except errors.Fault:
            # The error says what did not answer. What was requested there may still be granted, and billed.
            self._report_unfinished(_CONTINUE)
            raise
        self._last = tick
        self._verifier.verify_new(tick.state, tick.observed, tick.served_steps)
        self._raise_final_failure(tick)
        self._raise_if_out_of_requests(tick)
        if tick.is_complete or _is_far_enough(goal, tick, self._until):
            # The time limit is for the way here. From here on a watched deployment is only observed.
            self._reached_at = world.clock.now()
            self._deadline = None
            return self._pause_of_watch()
        if all(isinstance(step, Forget | Done) for step in tick.steps):
            # This tick forgot the last slices that were certainly deleted. The next one is due at once and finds the
            # goal reached, so no time limit may end the run in between.
            return 0.0
        self._raise_timeout(tick)
        return self._pause(tick)

    def _pause_of_watch(self) -> float | None:
        """Return the seconds until a deployment that is kept alive is observed again; None at the end of the run."""
        deployment, watch = self._goal.deployment, self._world.patience.watch
        if not self._keep or deployment is None:
            return None
        if deployment.ended is None:
            return watch
        # Outside of its hours, nothing of it exists, so it's looked at again when they begin.
        until = deployment.ended.until
        if until is None:
            return None
        seconds = max(until - self._world.clock.now(), 0.0)
        # A user may start what was idle within its hours.
        return min(seconds, watch) if deployment.ended.cause is EndCause.IDLE else seconds

    def _raise_final_failure(self, tick: Tick) -> None:
        """Raise the failure of a replica that neither recovers by itself nor waits for another slice.

        It is raised once every other replica is settled: one replica's failure stops no other.
        """
        failures = [f for f in tick.failures if not self._may_recover(f) and not tick.waits_for(f.replica)]
        if not failures:
            return
        is_watch_needed = self._reached_at is not None and bool(tick.served_steps)
        if is_watch_needed or not all(tick.is_settled(step.replica) for step in tick.steps):
            # The others still become ready, or are kept alive. The failure is shown now, and ends the run later.
            self._warn_of_failures(failures)
            return
        self._report_outstanding([a for a in tick.state.attempts if a.granted_at is None], _CONTINUE)
        raise self._error_of(failures[0])

    def _error_of(self, failure: GiveUp) -> errors.TpudeployError:
        """Return the error of a failure, with the remedy of each of Google's answers that caused it."""
        error = failure.error
        remedies = [self._world.cloud.remedy(refused.kind, refused.message) for refused in failure.refusals]
        if not any(remedies) or not isinstance(error, errors.Denied):
            return error
        hint = "\n".join(dict.fromkeys([*filter(None, remedies), error.hint]))
        return errors.Denied(error.message, hint=hint, refusal=error.refusal)

    def _warn_of_failures(self, failures: Iterable[GiveUp]) -> None:
        """Report each failure once, while the run continues for the other replicas."""
        for failure in failures:
            error, where = self._error_of(failure), address(self._goal.name, failure.replica)
            # What was spent grows with each observation.
            news = (failure.replica, error.code if isinstance(error, errors.BudgetExceeded) else error.message)
            if news not in self._failures_shown:
                self._failures_shown.add(news)
                now = self._world.clock.now()
                hint = f"{error.hint}\nThe other replicas continue.".strip()
                self._world.emit(events.Warned(at=now, address=where, message=error.message, hint=hint))

    def _raise_if_out_of_requests(self, tick: Tick) -> None:
        """Raise `errors.CapacityTimeout` if there is no slice, and the run may not request another one.

        While the lost one is being deleted, the run waits for it.
        """
        if self._goal.is_removal or self._requests_left != 0 or tick.state.slice_attempts:
            return
        refusals = [refusal for record in tick.state.records for refusal in record.refusals]
        cause = f" {refusals[-1].message}" if refusals else ""
        raise errors.CapacityTimeout(f"{self._goal.name} has no slice, and this run may request no other.{cause}")

    def _raise_timeout(self, tick: Tick) -> None:
        """Raise the error that ends a run whose time is up."""
        if self._deadline is not None and self._world.clock.now() >= self._deadline:
            # A failure that could still recover explains the timeout better than the time that has passed.
            raise self._error_of(tick.failures[0]) if tick.failures else _timeout(self._goal, tick)
        if self._has_waited_too_long_for_deletions(tick):
            # Everything serves, and Google takes too long to delete the rest: a later run finishes that.
            raise _timeout(self._goal, tick)

    def report_interruption(self) -> None:
        """Name what the run leaves unfinished. Nothing is asked of the cloud any more."""
        self._report_unfinished(hint="")  # the error that ends the run says what to do

    def _report_unfinished(self, hint: str) -> None:
        """Name what the run leaves unfinished, as it was saved last."""
        state = None if self._session is None else self._session.state
        # An interruption before the first tick leaves nothing behind.
        if state is not None:
            unfinished = [a for a in state.attempts if not a.is_announced or a.releasing_at is not None]
            self._report_outstanding(unfinished, hint)

    def _has_waited_too_long_for_deletions(self, tick: Tick) -> bool:
        """Return whether nothing but replaced slices was waited for, and for longer than any deletion takes."""
        deployment, now = self._goal.deployment, self._world.clock.now()
        replica_count = 0 if deployment is None else len(self._goal.replicas)
        if self._keep or len(tick.served_steps) < replica_count:
            self._only_leaving_since = None
            return False
        if self._only_leaving_since is None:
            self._only_leaving_since = now
        return now - self._only_leaving_since >= self._world.patience.leaving

    def _may_recover(self, failure: GiveUp) -> bool:
        """Return whether a server that served before may still recover: it gets the time of a start."""
        deployment, reached_at = self._goal.deployment, self._reached_at
        if reached_at is None or deployment is None or not isinstance(failure.error, errors.ServingError):
            return False
        return self._world.clock.now() - reached_at < deployment.health.timeout_seconds

    def _report_outstanding(self, attempts: Iterable[Attempt], hint: str) -> None:
        now = self._world.clock.now()
        names = "; ".join(describe_request(attempt, now) for attempt in attempts)
        if names:
            message = f"Still outstanding: {names}."
            self._world.emit(events.Warned(at=now, address=self._goal.name, message=message, hint=hint))

    def _tick(self) -> Tick:
        world, goal = self._world, self._goal
        with open_session(world, goal.name, "apply" if goal.deployment else "destroy") as session:
            self._session = session
            self._check_owner(session)
            observed = self._observe(session)
            steps = self._decide(session.state, observed)
            if self._needs_search(session.state, steps):
                observed, steps = self._search(session, observed, steps)
            self._progress.report_observation(session.state, observed)
            _check_steps(self._goal, steps, is_kept=self._reached_at is not None, strays=self._strays.names)
            self._publish(session, observed, steps)
            was_refused = self._execute(session, observed, steps)
            if any(isinstance(step, Drain) and not step.begins for step in steps):
                # It is on the list again only once that is saved: no later run may take it for a drained one.
                self._publish(session, observed, steps)
            state = with_service(session.state, observed, self._world.clock.now())
            if state is not session.state:
                session.save(state)
            self._progress.report_outlook(self._goal.deployment, session.state, observed, steps)
            return Tick(state=session.state, observed=observed, steps=steps, was_refused=was_refused)

    def _check_owner(self, session: StateSession) -> None:
        """Raise `errors.StalePlan` if the state is another one by now, or if another run changed what is kept alive."""
        goal = self._goal
        if session.state.lineage != goal.lineage:
            raise errors.StalePlan(
                f"The state of {goal.name} is no longer the one that this run began with: it was moved, removed or"
                " replaced.",
                hint="Nothing was undone. See `tpudeploy state list`, then make a new plan.",
            )
        if self._reached_at is not None:
            _check_approval(self._world, goal, session)
        elif goal.deployment is not None:
            self._check_removal(session.state)

    def _check_removal(self, state: State) -> None:
        """Raise `errors.StalePlan` if another run has deleted, or deletes, what this one is about to bring up.

        A run can be suspended for so long that another one takes over, completes the deployment and deletes it. This
        run's approval ends with that, and the plan showed no second slice.
        """
        approval = state.goal
        if approval is not None and approval.fingerprint == self._goal.fingerprint:
            self._was_approved = True
            return
        is_deleted = approval is None and not state.attempts
        is_leaving = approval is not None and not approval.fingerprint
        if self._was_approved and (is_deleted or is_leaving):
            raise errors.StalePlan(
                f"Another run deleted {self._goal.name} meanwhile, so this one requests nothing more.",
                hint="Run the command again to see and approve a new plan.",
            )

    def _observe(self, session: StateSession) -> Observed:
        """Return one observation, which is in the state then, with the number of replicas that its load needs."""
        deployment = self._goal.deployment
        is_scaled = self._keep and deployment is not None and deployment.scale is not None and deployment.ended is None
        observed = observe(
            self._world,
            session.state,
            deployment,
            patient=True,
            loads=is_scaled,
            slow_zones=self._slow_zones,
            is_watched=self._reached_at is not None,
        )
        observed = self._router_machine.without_early_counts(session.state, observed)
        # Before a machine that deleted itself is taken for one that was lost.
        self._end(session, observed)
        self._save_observation(session, observed)
        if is_scaled and self._reached_at is not None:
            # Until the approved number serves once, nothing shows what load it has.
            self._goal = self._scaler.goal_after(session, self._goal, observed)
        return observed

    def _end(self, session: StateSession, observed: Observed) -> None:
        """Save that the end of the deployment has come, once it has: from then on it has no replicas.

        When its hours begin again, it has its replicas again.
        """
        deployment = self._goal.deployment
        # A plan for a part of the replicas decides nothing about the others.
        if deployment is None or self._goal.targets is not None:
            return
        was_ended, now = deployment.ended, self._world.clock.now()
        deployment = until_end(deployment, session.state, observed)
        if deployment.ended is None:
            if was_ended is not None:
                # If a user has started it, the state has no end any more.
                if session.state.ended is not None:
                    session.save(without_ending(session.state, now))
                    self._world.emit(
                        events.HoursBegan(at=now, address=self._goal.name, cause=was_ended.cause, why=was_ended.why)
                    )
                deployment = with_replicas(deployment, session.state, observed)
            self._goal = replace(self._goal, deployment=deployment)
            return
        self._goal = replace(self._goal, deployment=deployment)
        state = with_ending(session.state, deployment.ended)
        if state is not session.state:
            session.save(state)
        if was_ended is None:
            self._world.emit(events.EndPassed(at=now, address=self._goal.name, why=deployment.ended.why))

    def _needs_search(self, state: State, steps: Iterable[Step]) -> bool:
        """Return whether to look for slices that the state does not track: before a request, and at a removal's end.

        The last attempts of a removal are still in the state then, so a run that is killed here looks again.
        """
        self._strays.note(state)
        own_attempts = [a for record in state.all_records if self._goal.covers(record.index) for a in record.attempts]
        if self._goal.is_removal:
            return bool(own_attempts) and all(isinstance(step, Forget) for step in steps)
        return any(isinstance(step, Request) for step in steps) and self._strays.is_due

    def _search(
        self, session: StateSession, observed: Observed, steps: tuple[Step, ...]
    ) -> tuple[Observed, tuple[Step, ...]]:
        """Track the strays of this deployment, and return the observation and the steps with them."""
        deployment, state = self._goal.deployment, session.state
        is_removal = self._goal.is_removal
        strays = self._strays.look(state, deployment, since=observed.at if is_removal else None)
        if strays is None:
            # Another deployment's list is some moments too old for the end of this removal.
            return observed, (Wait(replica=0, why="for the list of the project", seconds=1.0),)
        strays = tuple(stray for stray in strays if self._goal.covers(stray.mark.replica))
        bare = [node for node in self._strays.bare if is_removal and self._goal.covers(node.mark.replica)]
        if bare:
            self._release_nodes(session, bare, observed.at)
            return observed, (Wait(replica=0, why="until a machine without a request is deleted", seconds=10.0),)
        if not strays:
            return observed, steps
        session.save(self._strays.with_strays(state, deployment, strays))
        self._strays.report(session.state, strays)
        observed = self._observe(session)
        return observed, self._decide(session.state, observed)

    def _release_nodes(self, session: StateSession, bare: Iterable[CloudResource], now: float) -> None:
        """Delete nodes whose queued resource is gone, each once. Raise `errors.CloudError` if one stays."""
        for node in bare:
            where = address(self._goal.name, node.mark.replica)
            since = self._released_nodes.setdefault(node.ref.name, now)
            if now - since > self._world.patience.removal:
                raise errors.CloudError(
                    f"{node.ref.name} ({node.ref.zone}) is a machine whose request is gone, and it was not deleted"
                    f" within {(now - since) / 60:.0f} minutes. It is billed.",
                    hint="`tpudeploy gc` deletes it.",
                )
            if since == now:
                with session.asking():
                    self._world.cloud.release(node.ref)
                attempt = as_attempt(node, node.ref.name, now)
                record_removal(self._world, self._goal.name, node, attempt, at=now)
                subject = about(attempt, where, at=now)
                self._world.emit(events.Released(**subject, reason="its request is gone, and its machine is not"))

    def _publish(self, session: StateSession, observed: Observed, steps: tuple[Step, ...]) -> None:
        """Publish the endpoint, and give the router on a VM its list, before anything is done to a replica."""
        self._publisher.publish(session, observed, steps)
        self._router_machine.send_list(session, observed, leaving_slices(steps))

    def _execute(self, session: StateSession, observed: Observed, steps: Iterable[Step]) -> bool:
        """Execute the steps, and return whether a refusal ended that: the others were decided without knowing of it."""
        executor = StepExecutor(
            self._world,
            session,
            self._goal.deployment,
            observed,
            self._history,
            slow_zones=self._slow_zones,
            wall=self._wall,
        )
        for step in steps:
            if executor.was_refused:
                # The next tick is due at once.
                break
            if not isinstance(step, Wait | Done | GiveUp):
                self._world.clock.sleep(0.0)  # raises in an interrupted run, which begins nothing more
            if isinstance(step, Forget) and step.absence is Absence.NEVER_APPEARED:
                self._strays.doubt()
            if self._requests_left is not None and isinstance(step, Request) and step.replica != ROUTER:
                self._requests_left -= 1
            executor.execute(step)
        return executor.was_refused

    def _save_observation(self, session: StateSession, observed: Observed) -> None:
        before = session.state
        state = merge_observation(before, observed)
        # A removal needs neither the losses nor the landings: it requests nothing.
        if self._goal.deployment is not None:
            state = with_use(self._goal.deployment, state, observed)
            state = with_losses(state, DecisionContext(observed=observed, patience=self._world.patience))
            state = self._with_failed_landings(state, observed.at)
        # An observation without news costs no write: a watched fleet is observed every minute.
        if state is not before:
            session.save(state)
            self._history.add_grants(before, state)

    def _with_failed_landings(self, state: State, now: float) -> State:
        """Return `state` with the failed landings of this and other deployments, at the first observation."""
        # Later landings of this run are in the state already, and the history was read once.
        if self._last is not None:
            return state
        failures = self._history.failed_landings(self._goal.deployment)
        for index in self._goal.replicas:
            record = state.record(index)
            new_record = add_failed_landings(record, failures, now)
            if new_record is not record:
                state = state.with_record(new_record)
        return state

    def _decide(self, state: State, observed: Observed) -> tuple[Step, ...]:
        deployment = self._goal.deployment
        if deployment is not None and self._until is report.Wait.ACCEPTED:
            # The run ends before a grant, so it could not give a second slice back.
            deployment = replace(deployment, max_parallel_requests=1)
        creates = {backend: allowance.available() for backend, allowance in self._world.creates.items()}
        context = DecisionContext(
            observed=observed,
            patience=with_drain(self._world.patience, deployment, state),
            creates=creates,
            creates_in={backend: allowance.opens_in() for backend, allowance in self._world.creates.items()},
            scores=self._scores,
            resting=self._slow_zones.resting(),
            may_reset=self._may_reset,
            renews=self._reached_at is not None,
            acquisition=self._acquisition,
        )
        steps: list[Step] = []
        indexes: tuple[int, ...] = ()
        if deployment is not None:
            indexes = deployment.replica_indexes
            for index in self._goal.replicas:
                # Each request of this tick leaves one create less for the replicas after it.
                requests = Counter(step.candidate.backend for step in steps if isinstance(step, Request))
                creates_left = {backend: max(0, count - requests[backend]) for backend, count in creates.items()}
                own_context = replace(context, creates=creates_left, may_request=self._may_request(index))
                steps += decide(
                    at_replica(deployment, state, index),
                    state.record(index),
                    self._beside_others(own_context, deployment, state, index, steps),
                )
        for record in state.records:
            if record.index not in indexes and self._goal.covers(record.index):
                steps += remove(record, self._beside_others(context, deployment, state, record.index, steps))
        if self._goal.covers(ROUTER):
            own_context = replace(context, may_request=self._may_request(ROUTER))
            steps += self._router_machine.decide(self._goal, state, own_context, steps)
        return tuple(self._within_budgets(state, tuple(self._limit_requests(steps))))

    def _within_budgets(self, state: State, steps: tuple[Step, ...]) -> Iterator[Step]:
        """Yield the steps, with the error in the place of each request, or later end, that could exceed a budget.

        It waits while it fits once what is leaving is gone, and where a slice serves that it was to replace: a budget
        changes nothing about what runs.
        """
        deployment = self._goal.deployment
        has_costs = any(isinstance(step, Request | PatchMetadata | PushChange) for step in steps)
        check = self._wall.opened(deployment, state) if has_costs and deployment is not None else None
        for step in steps:
            if check is None or not isinstance(step, Request | PatchMetadata | PushChange):
                yield step
                continue
            if isinstance(step, Request):
                short = check.admit(step.replica, step.candidate)
            else:
                short = check.prolong(step.replica, step.name)
            yield step if short is None else self._beyond_budget(state, step, short)

    def _beyond_budget(self, state: State, step: Request | PatchMetadata | PushChange, short: Shortfall) -> Step:
        replica = step.replica
        wait = Wait(replica=replica, why="until a budget has room")
        if short.waits:
            return wait
        error = over_budget if isinstance(step, Request) else later_end_over_budget
        failure = GiveUp(replica=replica, error=error(self._goal.name, replica, short))
        serves = any(each.is_announced and each.holds_slice for each in state.record(replica).attempts)
        if self._reached_at is not None and serves:
            self._warn_of_failures([failure])
            return wait
        return failure

    def _limit_requests(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the steps, with a wait in the place of each request that the run may not send.

        A lost slice is forgotten in the same tick in which the next one would be requested.
        """
        requests_left = inf if self._requests_left is None else self._requests_left
        for step in steps:
            is_for_slice = isinstance(step, Request) and step.replica != ROUTER
            if is_for_slice:
                requests_left -= 1
            if is_for_slice and requests_left < 0:
                yield Wait(replica=step.replica, why="this run may request no other slice")
            else:
                yield step

    def _beside_others(
        self,
        context: DecisionContext,
        deployment: Deployment | None,
        state: State,
        replica: int,
        steps: Iterable[Step],
    ) -> DecisionContext:
        """Return the context of one replica beside the others. `steps` are those of this tick for earlier ones."""
        ready = set(ready_slices(state, context.observed, leaving_slices(steps)).values()) - {replica}
        if deployment is None or self._goal.is_removal:
            # All replicas of this removal go. Others may exist, if it is one of a part.
            return replace(context, others_serve=any(not self._goal.covers(other) for other in ready))
        held_because = reason_to_hold(deployment, state, ready, replica, self._goal.replicas)
        return replace(context, others_serve=bool(ready), held_because=held_because)

    def _may_request(self, replica: int) -> bool:
        """Return whether the plan showed that another slice may be requested for this replica."""
        action = next((change.action for change in self._goal.changes if change.replica == replica), Action.NO_OP)
        return self._reached_at is not None or Request in PLANNED_STEPS[action]

    def _pause(self, tick: Tick) -> float:
        """Return the seconds until the next observation: the poll interval, or less if something is due earlier."""
        if tick.was_refused:
            return 0.0
        now = self._world.clock.now()
        waits = [step for step in tick.steps if isinstance(step, Wait)]
        due = [step.seconds for step in waits if step.seconds is not None and step.rationed_at is None]
        due += self._seconds_to_turns(waits)
        if self._deadline is not None:
            due.append(self._deadline - now)
        # A deployment that waits only for its turn, and has requested nothing yet, has nothing to observe until then.
        waits_only_for_turn = bool(waits) and all(step.rationed_at is not None for step in waits)
        if tick.state.attempts or not waits_only_for_turn:
            due.append(self._world.patience.poll(self._progress.quiet, len(tick.state.attempts)))
        return max(0.0, min(due))

    def _seconds_to_turns(self, waits: Iterable[Wait]) -> Iterator[float]:
        """Yield for each API at which a replica waits for its turn to create the seconds until then.

        Waiting replicas take the project's creates in turn. Waking all of them for each create was O(n²).
        """
        now = self._world.clock.now()
        for backend in {step.rationed_at for step in waits if step.rationed_at is not None}:
            if self._create_turns.get(backend, -inf) <= now:
                self._create_turns[backend] = now + self._world.creates[backend].seconds_to_turn()
            yield self._create_turns[backend] - now


def _check_approval(world: World, goal: Goal, session: StateSession) -> None:
    """Raise `errors.StalePlan` if another run has changed or removed the deployment that is kept alive here."""
    state, deployment = session.state, goal.deployment
    # The state still has this run's own approval.
    if deployment is None or (state.goal is not None and state.goal.fingerprint == goal.fingerprint):
        return
    exists = all(_has_match(deployment, state, index) for index in goal.replicas)
    # Another run for the same profile ended and removed the shared approval. It is restored while the slices exist.
    if state.goal is None and exists:
        approval = Approval(fingerprint=goal.fingerprint, since=world.clock.now(), who=world.who)
        session.save(replace(state, goal=approval))
        return
    raise errors.StalePlan(
        f"{goal.name} was changed by another run; this one stops watching it.",
        hint="Nothing was undone. Run `tpudeploy apply --watch` with the profile that you want to apply.",
    )


def _has_match(deployment: Deployment, state: State, index: int) -> bool:
    own_deployment = at_replica(deployment, state, index)
    return any(matches(own_deployment, attempt) for attempt in state.record(index).attempts)


def _has_granted_match(deployment: Deployment, state: State, index: int) -> bool:
    own_deployment = at_replica(deployment, state, index)
    return any(attempt.holds_slice and matches(own_deployment, attempt) for attempt in state.record(index).attempts)


def _check_steps(goal: Goal, steps: tuple[Step, ...], *, is_kept: bool, strays: Collection[str]) -> None:
    """Raise `errors.StalePlan` for a step that the plan did not show, before any step is executed."""
    changes = {change.replica: change for change in goal.changes}
    for step in steps:
        # These change nothing in the cloud. A drain only says which slices take requests.
        if isinstance(step, Wait | Done | GiveUp | Drain):
            continue
        # A slice that appeared late was in no plan, and is not wanted.
        if isinstance(step, Release | Forget) and step.name in strays:
            continue
        # A machine that deleted itself at its end is in no plan: nothing is left of it.
        if isinstance(step, Forget) and goal.deployment is not None and goal.is_removal:
            continue
        is_allowed = isinstance(step, KEEPING_STEPS) if is_kept else _is_planned(changes.get(step.replica), step)
        if not is_allowed:
            name = _STEP_NAMES.get(type(step), type(step).__name__.lower())
            raise errors.StalePlan(
                f"{goal.name}[{step.replica}] now needs a {name}, which the plan did not show.",
                hint="Something changed during the run. Run `tpudeploy apply` again to see and approve a new plan.",
            )


def _is_planned(change: Change | None, step: Step) -> bool:
    # A replica that the plan does not mention may not be touched.
    if change is None:
        return False
    # The server of a slice that is being replaced is not changed meanwhile: it serves until its successor does.
    if change.action is Action.REPLACE and isinstance(step, PatchMetadata | PushChange | Reset):
        return step.name != change.slice_name
    return isinstance(step, PLANNED_STEPS[change.action])


def _is_far_enough(goal: Goal, tick: Tick, until: report.Wait) -> bool:
    """Return whether each replica has come as far as `until` with a slice that need not be replaced."""
    deployment = goal.deployment
    # A removal, and the default, wait for the end.
    if deployment is None or until is report.Wait.SERVING:
        return False
    for index in goal.replicas:
        own_deployment = at_replica(deployment, tick.state, index)
        matching = [attempt for attempt in tick.state.record(index).attempts if matches(own_deployment, attempt)]
        # A second request could still be granted too, and this run would no longer be there to give it back.
        if len(matching) != 1 or matching[0].releasing_at is not None:
            return False
        is_accepted = matching[0].is_listed or _is_queued(tick.observed, matching[0])
        if not (is_accepted if until is report.Wait.ACCEPTED else matching[0].granted_at is not None):
            return False
    return True


def _is_queued(observed: Observed, attempt: Attempt) -> bool:
    """Return whether a request waits for capacity, even if only its operation shows that."""
    current = observed.slices.get(attempt.name)
    return current is not None and current.phase is Phase.QUEUED


def _timeout(goal: Goal, tick: Tick) -> errors.TpudeployError:
    """Return the error that ends a run whose time is up, by what is still missing."""
    state, deployment = tick.state, goal.deployment
    if deployment is None:
        return _unfinished_deletion(goal, state)
    requests = "".join(f"\n  {describe_request(attempt, tick.observed.at)}" for attempt in state.attempts)
    hint = f"Still outstanding:{requests}\n{_CONTINUE}" if requests else _CONTINUE
    # Every replica serves, so only the slices before them are missing: they are not yet drained, or not yet deleted.
    if len(tick.served_steps) == len(goal.replicas):
        return _unfinished_replacement(goal, state, hint)
    # A slice takes the longest to get, so a replica without one is reported before one that is still starting.
    if not all(_has_granted_match(deployment, state, index) for index in goal.replicas):
        if not requests:
            message = f"{goal.name} was not granted in time. No request is open now."
            return errors.CapacityTimeout(message, hint="Run `tpudeploy apply` again to continue the search.")
        message = f"{goal.name} was not granted in time. Nothing is lost: the requests stay open."
        return errors.CapacityTimeout(message, hint=hint)
    return errors.StillStarting(f"{goal.name} did not serve in time. The slice is kept.", hint=hint)


def _unfinished_deletion(goal: Goal, state: State) -> errors.TpudeployError:
    covered = [record for record in state.all_records if goal.covers(record.index)]
    names = ", ".join(attempt.name for record in covered for attempt in record.attempts)
    return errors.CloudError(
        f"{goal.name} is not fully deleted yet. Remaining: {names}.",
        hint="Run `tpudeploy destroy` again to continue from here.",
    )


def _unfinished_replacement(goal: Goal, state: State, hint: str) -> errors.TpudeployError:
    draining = [each.name for each in state.attempts if each.draining_at is not None and each.releasing_at is None]
    # Clients may hold a connection to a replaced slice, so it is kept for as long as they may.
    if draining:
        names = ", ".join(draining)
        return errors.StillDraining(
            f"{goal.name} serves. {names} is kept because clients may still be connected to it.", hint=hint
        )
    return errors.CloudError(f"{goal.name} serves, but the slices that it replaced are not deleted yet.", hint=hint)


def without_approval(state: State, fingerprint: str) -> State:
    """Return the state after the goal with this fingerprint is reached, without the records of removed replicas.

    Another approval stays: this run was for a part of it, or another run has begun a new one.
    """
    is_other = state.goal is not None and state.goal.fingerprint != fingerprint
    records = tuple(
        record if record.attempts else replace(record, lost="")
        for record in state.records
        if record.attempts or record.refusals
    )
    return replace(state, goal=state.goal if is_other else None, records=records)
