"""Carry out one step: remember, then ask. Nothing here waits and nothing here decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tpudeploy.domain import errors, events, step
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.names import address
from tpudeploy.domain.slices import Observed, Refusal, Remedy
from tpudeploy.domain.state import Attempt, Refused
from tpudeploy.engine.about import About, about
from tpudeploy.engine.chronicle import Chronicle
from tpudeploy.engine.session import Session
from tpudeploy.node.fingerprint import live_attributes, server_print, text_print
from tpudeploy.node.node import CHANGE_KEY, SCRIPT_KEY, SPEC_KEY, next_change, node_update
from tpudeploy.node.request import boot_metadata, slice_request
from tpudeploy.ports import World
from tpudeploy.reconcile.fate import REFUSED
from tpudeploy.reconcile.refusals import remembered
from tpudeploy.reconcile.wanted import wanted


class Hands:
    """One tick's hands: a world, a session, the deployment aimed at (None: nothing) and what was seen."""

    def __init__(
        self,
        world: World,
        session: Session,
        deployment: Deployment | None,
        observed: Observed,
        chronicle: Chronicle,
    ) -> None:
        self._world = world
        self._session = session
        self._deployment = deployment
        self._observed = observed
        self._chronicle = chronicle
        self.was_refused = False

    def act(self, what: step.Step) -> None:
        """Raise `errors.Fault` or `errors.Denied`; the state then tells the next look what was begun.

        Once `was_refused`, the steps that are left were decided without knowing it.
        """
        match what:
            case step.Request():
                self._request(what)
            case step.Release():
                self._release(what)
            case step.Forget():
                self._forget(what)
            case step.PatchMetadata():
                self._update(what)
            case step.PushChange():
                self._tell(what)
            case step.Reset():
                self._restart(what)
            case _:
                self._note(what)

    def _note(
        self, what: step.Reclaim | step.Adopt | step.GiveUp | step.Drain | step.Renew | step.Wait | step.Done
    ) -> None:
        """What asks nothing of the cloud."""
        match what:
            case step.Adopt():
                attempt = self._attempt(what.replica, what.name)
                self._put(what.replica, replace(attempt, spec=wanted(self._aim(), attempt)))
            case step.Reclaim():
                self._reclaim(what)
            case step.GiveUp():
                self._give_up(what)
            case step.Drain():
                self._drain(what)
            case step.Renew():
                self._put(what.replica, replace(self._attempt(what.replica, what.name), is_ending=True))
            case step.Wait() | step.Done():
                pass

    def _request(self, what: step.Request) -> None:
        deployment, state, now = self._aim(), self._session.state, self._world.clock.now()
        name, place = state.slice_name(what.replica), what.candidate
        request = slice_request(deployment, name, place)
        attempt = Attempt(
            name=request.name,
            project=request.project,
            zone=place.zone,
            provisioning=place.provisioning,
            spec=deployment.attributes,
            asked_at=now,
            expires_at=now + request.valid_until_seconds,
            booted=server_print(deployment.attributes),
            script=text_print(request.metadata[SCRIPT_KEY]),
        )
        record = state.record(what.replica).with_attempt(attempt)
        self._session.save(replace(state.with_record(record), next_attempt=state.next_attempt + 1))
        self._world.emit(
            events.Requested(**self._about(what.replica, attempt), accelerator_type=request.accelerator_type)
        )
        self._world.creates.spend()
        try:
            with self._session.asking():
                operation = self._world.cloud.request(request)
        except (errors.Refused, errors.Denied) as refused:
            # A plain "no" made nothing; a Fault leaves the intent, and the next look decides.
            self._drop(what.replica, attempt, refused.refusal)
            self.was_refused = True
            if refused.refusal is not None and refused.refusal.remedy is Remedy.LOOK_AGAIN:
                self._world.creates.pause(refused.refusal.holds_seconds)
            if isinstance(refused, errors.Denied) and not self._session.state.attempts:
                raise
            return  # what was asked for before may still be granted: it is watched to its end
        if operation is not None:
            self._put(what.replica, replace(attempt, operation=operation))

    def _release(self, what: step.Release) -> None:
        now = self._world.clock.now()
        attempt = self._attempt(what.replica, what.name)
        first = attempt.releasing_at is None
        attempt = replace(attempt, releasing_at=now, release_reason=what.reason, is_spare=what.is_spare)
        self._put(what.replica, attempt, what.refusal)
        if first and what.reason == REFUSED:
            return  # there is nothing to delete, unless it shows after all
        with self._session.asking():
            deletion = self._world.cloud.release(attempt.ref)
        if deletion is not None:
            self._put(what.replica, replace(attempt, deletion=deletion))
        if first:
            self._world.emit(events.Released(**self._about(what.replica, attempt), reason=what.reason))

    def _reclaim(self, what: step.Reclaim) -> None:
        """Its deletion is still looked at: it may yet be carried out."""
        attempt = replace(self._attempt(what.replica, what.name), releasing_at=None, release_reason="", is_spare=False)
        self._put(what.replica, replace(attempt, is_reclaimed=True))
        self._world.emit(events.Reclaimed(**self._about(what.replica, attempt)))

    def _forget(self, what: step.Forget) -> None:
        attempt = self._attempt(what.replica, what.name)
        self._drop(what.replica, attempt, what.refusal)
        if attempt.is_ending and attempt.draining_at is None and self._deployment is not None:
            self._tell_too_late(what.replica, attempt)
        if what.refusal is None and attempt.release_reason != REFUSED:
            self._chronicle.released(attempt)
            self._world.emit(events.Gone(**self._about(what.replica, attempt), reason=what.reason))

    def _tell_too_late(self, replica: int, attempt: Attempt) -> None:
        where = address(self._session.state.deployment, replica)
        message = f"The run of {attempt.name} ended before its successor served; nothing serves until it does."
        hint = "Where it takes that long to be granted, raise placement.max_run_duration, or allow more zones."
        self._world.emit(events.Warned(at=self._world.clock.now(), address=where, message=message, hint=hint))

    def _tell(self, what: step.PushChange) -> None:
        """Its name is written down before it is sent: whatever becomes of the call, the node's answer is understood."""
        attempt, now = self._attempt(what.replica, what.name), self._world.clock.now()
        change = attempt.change
        if not change or attempt.update_asked != what.boot:
            change = next_change(self._observed.slices[what.name].metadata, change, now)
        attempt = replace(attempt, change=change, told_at=now, update_asked=what.boot, is_failed=False)
        self._put(what.replica, attempt)
        self._send(what, attempt, "change")

    def _update(self, what: step.PatchMetadata) -> None:
        self._send(what, self._attempt(what.replica, what.name), "node")

    def _send(self, what: step.PatchMetadata | step.PushChange, attempt: Attempt, told: str) -> None:
        deployment, found = self._aim(), self._observed.slices[what.name]
        new = boot_metadata(deployment, what.boot)
        # Where the server stays, its script stays: a newer tpudeploy renders another text for the same server.
        same: Mapping[str, str] = found.metadata
        is_same = same.get(SPEC_KEY) == what.boot and attempt.script in {"", text_print(same.get(SCRIPT_KEY, ""))}
        metadata = dict(same if is_same else {**same, **new})
        if attempt.change:
            metadata[CHANGE_KEY] = attempt.change
        elif CHANGE_KEY in same:
            metadata[CHANGE_KEY] = same[CHANGE_KEY]
        name = self._session.state.slice_name(what.replica)
        live = live_attributes(wanted(deployment, attempt))
        with self._session.asking():
            self._world.cloud.update(attempt.ref, node_update(metadata, live, name))
        spec = {p: v for p, v in attempt.spec.items() if p not in live_attributes(attempt.spec)} | live
        now = self._world.clock.now()
        script = text_print(metadata.get(SCRIPT_KEY, ""))
        self._put(what.replica, replace(attempt, spec=spec, update_asked=what.boot, update_asked_at=now, script=script))
        self._world.emit(events.Updated(**self._about(what.replica, attempt), what=told))

    def _restart(self, what: step.Reset) -> None:
        before = self._attempt(what.replica, what.name)
        attempt = replace(
            before,
            booted=what.boot,
            booted_before=before.booted,
            booted_at=self._world.clock.now(),
            boot_asked=False,
            served=False,
        )
        self._put(what.replica, attempt)
        with self._session.asking():
            self._world.cloud.restart(attempt.ref)
        self._put(what.replica, replace(attempt, boot_asked=True))
        self._world.emit(events.Updated(**self._about(what.replica, attempt), what="restart"))

    def _give_up(self, what: step.GiveUp) -> None:
        """Its server failed, and now that is said."""
        attempt = self._session.state.record(what.replica).attempt(what.name)
        if attempt is not None and not attempt.is_failed:
            self._put(what.replica, replace(attempt, is_failed=True))

    def _drain(self, what: step.Drain) -> None:
        attempt, now = self._attempt(what.replica, what.name), self._world.clock.now()
        self._put(what.replica, replace(attempt, draining_at=now if what.begins else None))
        if what.begins:
            seconds = self._world.patience.drain
            self._world.emit(events.Draining(**self._about(what.replica, attempt), seconds=seconds))

    def _aim(self) -> Deployment:
        if self._deployment is None:
            raise TypeError("a removal was asked to build something")
        return self._deployment

    def _attempt(self, replica: int, name: str) -> Attempt:
        attempt = self._session.state.record(replica).attempt(name)
        if attempt is None:
            raise KeyError(name)
        return attempt

    def _put(self, replica: int, attempt: Attempt, refusal: Refusal | None = None) -> None:
        record = self._session.state.record(replica).with_attempt(attempt)
        if refusal is not None:
            record = replace(record, refusals=self._refused(replica, attempt, refusal))
        self._session.save(self._session.state.with_record(record))

    def _drop(self, replica: int, attempt: Attempt, refusal: Refusal | None) -> None:
        record = self._session.state.record(replica).without(attempt.name)
        if refusal is not None:
            record = replace(record, refusals=self._refused(replica, attempt, refusal))
        self._session.save(self._session.state.with_record(record))

    def _refused(self, replica: int, attempt: Attempt, refusal: Refusal) -> tuple[Refused, ...]:
        now = self._world.clock.now()
        self._chronicle.ended(attempt, refusal)
        record = self._session.state.record(replica)
        held = [a for a in record.attempts if a.name != attempt.name]
        refusals = remembered(record.refusals, attempt, refusal, held=held, now=now, patience=self._world.patience)
        self._world.emit(
            events.NotGranted(
                **self._about(replica, attempt),
                kind=refusal.kind,
                message=refusal.message,
                landed=refusals[-1].landed,
                blocked_seconds=refusals[-1].until - now,
            )
        )
        return refusals

    def _about(self, replica: int, attempt: Attempt) -> About:
        return about(attempt, address(self._session.state.deployment, replica), at=self._world.clock.now())
