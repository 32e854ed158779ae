"""Execute one step: save the intent, then send the request. Nothing here waits, and nothing here decides.

Why: decision 3 in docs/decisions.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from tpudeploy.domain import errors, events, step
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.life import DeletionNamed, DrainBegan, DrainEnded, ReleaseBegan, ReleaseWithdrawn, ServerStopped
from tpudeploy.domain.names import ROUTER, address
from tpudeploy.domain.slices import Absence, Observed, Phase, Refusal, Remedy
from tpudeploy.domain.state import Attempt, Boot, MetadataUpdate, NodeChange, Record, RefusalRecord, State
from tpudeploy.engine.capacity_history import CapacityHistory
from tpudeploy.engine.cost_wall import CostWall, NotAdmitted
from tpudeploy.engine.ledger import record_machine_end, record_unseen_run
from tpudeploy.engine.request_events import About, about, not_granted
from tpudeploy.engine.session import Purchase, StateSession
from tpudeploy.engine.slow_zones import SlowZones
from tpudeploy.node.fingerprint import live_attributes, server_print, text_print
from tpudeploy.node.node_facts import CHANGE_KEY, SCRIPT_KEY, SPEC_KEY, next_change, node_update
from tpudeploy.node.own_end import END_KEY, end_value
from tpudeploy.node.request import boot_metadata, slice_request
from tpudeploy.ports import World
from tpudeploy.reconcile.desired import desired_attributes
from tpudeploy.reconcile.readiness import ready_slices
from tpudeploy.reconcile.refusals import add_refusal, without_freed_refusals
from tpudeploy.reconcile.replicas import at_replica


class StepExecutor:
    """Executes the steps of one observation. `deployment` is the target, or None if everything is to be deleted."""

    def __init__(
        self,
        world: World,
        session: StateSession,
        deployment: Deployment | None,
        observed: Observed,
        history: CapacityHistory,
        *,
        slow_zones: SlowZones,
        wall: CostWall,
    ) -> None:
        self._world = world
        self._session = session
        self._deployment = deployment
        self._observed = observed
        self._history = history
        self._slow_zones = slow_zones
        self._wall = wall
        self.was_refused = False

    def execute(self, action: step.Step) -> None:  # noqa: C901, PLR0912 - one row for each kind of step
        """Execute one step. The remaining steps were decided without knowing of a refusal, so check `was_refused`.

        Raise `errors.Fault` or `errors.Denied`; the saved state then shows the next observation what was begun.
        """
        match action:
            case step.Request():
                self._request(action)
            case step.Release():
                self._release(action)
            case step.Forget():
                self._forget(action)
            case step.PatchMetadata():
                self._patch_node(action, self._attempt(action.replica, action.name), events.UpdateSubject.NODE)
            case step.PushChange():
                self._push_change(action)
            case step.Reset():
                self._reset(action)
            case step.Adopt():
                attempt = self._attempt(action.replica, action.name)
                self._save(
                    action.replica, replace(attempt, spec=desired_attributes(self._target(action.replica), attempt))
                )
            case step.Reclaim():
                self._reclaim(action)
            case step.GiveUp():
                self._record_failure(action)
            case step.Drain():
                self._drain(action)
            case step.Renew():
                self._save(action.replica, replace(self._attempt(action.replica, action.name), is_ending=True))
            case step.Wait() | step.Done():
                # The loop of `Convergence` waits and ends; the state has nothing to record.
                pass
            case _:
                assert_never(action)

    def _request(self, action: step.Request) -> None:
        deployment, state, now = self._target(action.replica), self._session.state, self._world.clock.now()
        name, place = state.slice_name(action.replica), action.candidate
        request = slice_request(deployment, name, place, serving_since=state.serving_since, now=now)
        attempt = Attempt(
            name=request.name,
            project=request.project,
            zone=place.zone,
            provisioning=place.provisioning,
            spec=deployment.attributes_at(place.backend),
            asked_at=now,
            expires_at=now + request.valid_until_seconds,
            boot=Boot(server=server_print(deployment.attributes)),
            script=text_print(request.metadata[SCRIPT_KEY]),
        )
        record = state.record(action.replica).with_attempt(attempt)
        intent = replace(state.with_record(record), next_attempt=state.next_attempt + 1)
        try:
            with self._wall.admitting(self._deployment, state, action.replica, place) as prove:
                self._session.save(intent)
                prove()
        except NotAdmitted:
            # Another run has used the budget since this was decided: the next decision says so.
            self.was_refused = True
            return
        self._withdraw_if_interrupted(action.replica, attempt)
        self._world.emit(
            events.Requested(**self._about(action.replica, attempt), accelerator_type=request.accelerator_type)
        )
        self._world.creates[place.backend].spend()
        purchase = Purchase()
        try:
            with (
                self._session.asking(purchase),
                self._slow_zones.timed((attempt.zone, attempt.backend)),
            ):
                operation = self._world.cloud.request(request)
        except errors.Interrupted:
            if purchase.is_unsent:
                self._drop(action.replica, attempt, None)
            raise
        except (errors.Refused, errors.Denied) as error:
            self._handle_refusal(action.replica, attempt, error)
            return
        # Without an operation's name there is nothing to add to the saved intent: the slice is found by its own name.
        if operation is not None:
            self._save(action.replica, replace(attempt, operation=operation))

    def _withdraw_if_interrupted(self, replica: int, attempt: Attempt) -> None:
        """Drop an intent during whose save the run was interrupted, and raise `errors.Interrupted`."""
        try:
            self._world.clock.sleep(0.0)
        except errors.Interrupted:
            self._drop(replica, attempt, None)
            raise

    def _handle_refusal(self, replica: int, attempt: Attempt, error: errors.Refused | errors.Denied) -> None:
        # A plain refusal created nothing, so the intent is dropped. After a Fault it stays, and the next observation
        # shows whether the slice exists.
        self._drop(replica, attempt, error.refusal)
        self.was_refused = True
        # A rate limit of the project holds for every zone: no other request may be sent before it is over.
        if error.refusal is not None and error.refusal.remedy is Remedy.LOOK_AGAIN:
            self._world.creates[attempt.backend].pause(error.refusal.holds_seconds)
        # A denial ends the run only if nothing else is requested, and no other API can be: `decide` ends that run.
        # Earlier requests may still be granted, so the run continues to observe them until they end.
        has_other_api = error.refusal is not None and len(self._target(replica).backends) > 1
        if isinstance(error, errors.Denied) and not self._session.state.attempts and not has_other_api:
            raise error

    def _release(self, action: step.Release) -> None:
        attempt = self._attempt(action.replica, action.name)
        is_first = attempt.releasing_at is None
        slice_ = self._observed.slices.get(attempt.name)
        if not is_first and slice_ is not None and slice_.phase is Phase.HUSK:
            # The policy and the template of a group go after its machines.
            record_machine_end(self._world, self._session.state, attempt.name)
        attempt = attempt.after(
            ReleaseBegan(releasing_at=self._world.clock.now(), reason=action.reason, is_spare=action.is_spare)
        )
        self._save(action.replica, attempt, action.refusal)
        # The request failed, so there is nothing to delete. A second release deletes the slice if it appears after all.
        if is_first and action.is_refused:
            return
        with self._session.asking():
            deletion = self._world.cloud.release(attempt.ref)
        # The operation's result explains later why a deletion failed.
        if deletion is not None:
            self._save(action.replica, attempt.after(DeletionNamed(deletion=deletion)))
        # A deletion that is sent again is not news.
        if is_first:
            self._world.emit(events.Released(**self._about(action.replica, attempt), reason=action.reason))

    def _reclaim(self, action: step.Reclaim) -> None:
        """Keep a slice after all. Its deletion is still observed, because Google may carry it out."""
        attempt = self._attempt(action.replica, action.name).after(ReleaseWithdrawn())
        self._save(action.replica, attempt)
        self._world.emit(events.Reclaimed(**self._about(action.replica, attempt), reason=action.reason))

    def _forget(self, action: step.Forget) -> None:
        attempt = self._attempt(action.replica, action.name)
        record_unseen_run(self._world, self._session.state.deployment, action.replica, attempt, action.refusal)
        self._drop(action.replica, attempt, action.refusal, is_unseen=action.absence is Absence.NEVER_APPEARED)
        # Google deleted the slice at the end of its run before clients were sent to a successor: a user can avoid that.
        if attempt.is_ending and attempt.draining_at is None and self._deployment is not None:
            self._warn_of_late_successor(action.replica, attempt)
        # A refusal was reported by `_refusals_with`; only a slice or request that existed is reported as gone.
        if action.refusal is None and attempt.release_reason != Absence.REFUSED:
            self._history.add_release(self._session.state.deployment, attempt)
            self._world.emit(events.Gone(**self._about(action.replica, attempt), reason=action.absence))

    def _warn_of_late_successor(self, replica: int, attempt: Attempt) -> None:
        serving = ready_slices(self._session.state, self._observed)
        has_others = any(other != replica for other in serving.values())
        what = "Only the other replicas serve" if has_others else "Nothing serves"
        self._world.emit(
            events.Warned(
                at=self._world.clock.now(),
                address=address(self._session.state.deployment, replica),
                message=f"The run of {attempt.name} ended before its replacement served. {what} until the replacement"
                " does.",
                hint="If grants take this long, raise placement.max_run_duration or allow more zones.",
            )
        )

    def _push_change(self, action: step.PushChange) -> None:
        attempt, now = self._attempt(action.replica, action.name), self._world.clock.now()
        name, update = attempt.change_name, attempt.update
        # A change that is sent again for the same server keeps its name, so that an answer to either is understood.
        if not name or update is None or update.server != action.boot:
            name = next_change(self._observed.slices[action.name].metadata, name, now)
        attempt = replace(
            attempt,
            change=NodeChange(name=name, sent_at=now),
            update=MetadataUpdate(server=action.boot, at=0.0 if update is None else update.at),
            is_failed=False,
        )
        # The name is saved before it is sent: whatever becomes of the call, the node's answer is understood.
        self._save(action.replica, attempt)
        self._patch_node(action, attempt, events.UpdateSubject.CHANGE)

    def _patch_node(
        self, action: step.PatchMetadata | step.PushChange, attempt: Attempt, what: events.UpdateSubject
    ) -> None:
        deployment, slice_ = self._target(action.replica), self._observed.slices[action.name]
        current, script = slice_.metadata, slice_.script or text_print("")
        has_same_server = current.get(SPEC_KEY) == action.boot
        has_own_script = attempt.script in {"", script}
        # A node that keeps its server keeps its script too: a newer tpudeploy renders another text for the same server.
        keeps_script = has_same_server and has_own_script
        metadata = dict(current) if keeps_script else {**current, **boot_metadata(deployment, action.boot)}
        # `boot_metadata` has the change of a new slice; this node is to see the change it was last sent.
        if attempt.change is not None:
            metadata[CHANGE_KEY] = attempt.change.name
        elif CHANGE_KEY in current:
            metadata[CHANGE_KEY] = current[CHANGE_KEY]
        since, now = self._session.state.serving_since, self._world.clock.now()
        metadata[END_KEY] = end_value(deployment, attempt.name, attempt.place, since=since, now=now)
        live = live_attributes(desired_attributes(deployment, attempt))
        old_live = live_attributes(attempt.spec)
        spec = {path: value for path, value in attempt.spec.items() if path not in old_live} | live
        script = text_print(metadata[SCRIPT_KEY]) if SCRIPT_KEY in metadata else script
        try:
            with self._wall.prolonging(self._deployment, self._session.state, action.replica, action.name):
                with self._session.asking():
                    name = self._session.state.slice_name(action.replica)
                    self._world.cloud.update(attempt.ref, node_update(metadata, live, name))
                update = MetadataUpdate(server=action.boot, at=self._world.clock.now())
                self._save(action.replica, replace(attempt, spec=spec, update=update, script=script))
        except NotAdmitted:
            # As for a request: the next decision says so.
            self.was_refused = True
            return
        self._world.emit(events.Updated(**self._about(action.replica, attempt), what=what))

    def _reset(self, action: step.Reset) -> None:
        before = self._attempt(action.replica, action.name)
        boot = Boot(server=action.boot, at=self._world.clock.now(), previous=before.boot.server, is_sent=False)
        attempt = replace(before, boot=boot).after(ServerStopped())
        self._save(action.replica, attempt)
        with self._session.asking():
            self._world.cloud.restart(attempt.ref)
        self._save(action.replica, replace(attempt, boot=replace(boot, is_sent=True)))
        self._world.emit(events.Updated(**self._about(action.replica, attempt), what=events.UpdateSubject.RESTART))

    def _record_failure(self, action: step.GiveUp) -> None:
        """Record that the failure of a server was reported, so that a later run sends the change again."""
        attempt = self._session.state.record(action.replica).attempt(action.name)
        # The error of a replica without a slice names none: there is no attempt to record it in.
        if attempt is not None and not attempt.is_failed:
            self._save(action.replica, replace(attempt, is_failed=True))

    def _drain(self, action: step.Drain) -> None:
        attempt, now = self._attempt(action.replica, action.name), self._world.clock.now()
        self._save(action.replica, attempt.after(DrainBegan(draining_at=now) if action.begins else DrainEnded()))
        # A slice that clients are sent to again was announced when it served first.
        if action.begins:
            seconds = self._world.patience.drain
            self._world.emit(events.Draining(**self._about(action.replica, attempt), seconds=seconds))

    def _target(self, replica: int) -> Deployment:
        target = None if self._deployment is None else self._deployment.of_replica(replica)
        if target is None:
            raise TypeError("`remove` returned a step that needs a deployment")
        return target if replica == ROUTER else at_replica(target, self._session.state, replica)

    def _attempt(self, replica: int, name: str) -> Attempt:
        attempt = self._session.state.record(replica).attempt(name)
        if attempt is None:
            raise KeyError(name)
        return attempt

    def _save(self, replica: int, attempt: Attempt, refusal: Refusal | None = None) -> None:
        state = self._session.state
        self._save_record(state, state.record(replica).with_attempt(attempt), attempt, refusal)

    def _drop(self, replica: int, attempt: Attempt, refusal: Refusal | None, *, is_unseen: bool = False) -> None:
        state = without_freed_refusals(self._session.state, attempt)
        if is_unseen:
            state = state.with_forgotten(attempt)
        record = state.record(replica).without(attempt.name)
        self._save_record(state, record, attempt, refusal)

    def _save_record(self, state: State, record: Record, attempt: Attempt, refusal: Refusal | None) -> None:
        if refusal is not None:
            record = replace(record, refusals=self._refusals_with(record, attempt, refusal))
        self._session.save(state.with_record(record))

    def _refusals_with(self, record: Record, attempt: Attempt, refusal: Refusal) -> tuple[RefusalRecord, ...]:
        """Return the replica's refusals with this one, and report it."""
        now = self._world.clock.now()
        self._history.add_refusal(self._session.state.deployment, attempt, refusal)
        others = [other for other in record.attempts if other.name != attempt.name]
        refusals = add_refusal(
            record.refusals, attempt, refusal, own_attempts=others, now=now, patience=self._world.patience
        )
        where = address(self._session.state.deployment, record.index)
        self._world.emit(not_granted(attempt, where, refusal, refusals[-1], at=now))
        return refusals

    def _about(self, replica: int, attempt: Attempt) -> About:
        return about(attempt, address(self._session.state.deployment, replica), at=self._world.clock.now())
