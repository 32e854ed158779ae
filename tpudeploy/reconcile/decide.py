"""One replica after one observation: every step that is right now, in an order that is safe to stop after any of them.

`decide` leads to a deployment, `remove` to nothing. Both see only data, and neither has a memory of its own.

    a spare is needed after all ──▶ keep it, and decide again
    a slice that fits is up ──────▶ bring up its server, and let go of the other requests and of what it replaces
    something must go first ──────▶ wait until it is gone
    otherwise ────────────────────▶ hunt: request slices, until one lands

Why: decisions 4, 13, 14, 18, 42 and 60 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Candidate, Deployment, Place
from tpudeploy.domain.errors import Denied, ServingError
from tpudeploy.domain.slices import Absence, Phase, RefusalScope
from tpudeploy.domain.state import Attempt, Record, RefusalRecord
from tpudeploy.domain.step import (
    Done,
    Drain,
    Forget,
    GiveUp,
    PushChange,
    Reclaim,
    Release,
    Renew,
    Request,
    Reset,
    Step,
    Wait,
)
from tpudeploy.node.fingerprint import slice_print
from tpudeploy.reconcile.attempt_status import (
    AttemptStatus,
    Classification,
    DecisionContext,
    classify,
    hidden_until,
    is_being_preempted,
)
from tpudeploy.reconcile.cutover import (
    can_take_clients,
    drain_seconds_left,
    ends_within_drain,
    failed_cutover,
    is_handed_over,
    needs_successor,
)
from tpudeploy.reconcile.desired import desired_attributes
from tpudeploy.reconcile.failed_landings import LASTING, doubtful_places
from tpudeploy.reconcile.placement import QUEUED, allows, is_closed, next_opening, next_places, next_silence
from tpudeploy.reconcile.preference import preference_key
from tpudeploy.reconcile.prices import has_room
from tpudeploy.reconcile.readiness import answers
from tpudeploy.reconcile.refusals import frees, places_not_stopped, standing_refusals
from tpudeploy.reconcile.rollout import ServerStatus, serve


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replica:
    """One replica after one observation, and what its attempts are to the deployment.

    `record` is without the attempts that are gone: they use no quota any more. `fitting` can be what the profile asks
    for without being replaced; `outdated` are up or waiting, and cannot. `doubtful` are the places whose last landings
    failed.
    """

    deployment: Deployment
    record: Record
    context: DecisionContext
    classifications: Sequence[Classification]
    fitting: Sequence[Classification]
    outdated: Sequence[Classification]
    doubtful: Collection[Place]

    @property
    def index(self) -> int:
        return self.record.index

    @property
    def up(self) -> list[Classification]:
        """Return the slices that fit and are up, the one to keep first."""
        up = [each for each in self.fitting if each.status is AttemptStatus.UP]
        return sorted(up, key=lambda each: preference_key(each.attempt, self.doubtful))

    @property
    def waiting(self) -> list[Classification]:
        """Return the requests that fit and may still be granted."""
        waiting = {AttemptStatus.HIDDEN, AttemptStatus.WAITING}
        return [each for each in self.fitting if each.status in waiting and each.attempt.release is None]

    @property
    def remaining(self) -> list[Classification]:
        """Return everything that exists or may still appear."""
        return [each for each in self.classifications if each.status is not AttemptStatus.GONE]


def decide(deployment: Deployment, record: Record, context: DecisionContext) -> tuple[Step, ...]:
    """Return the steps towards `deployment` for one replica: at least one."""
    replica = _compare(deployment, record, context)
    spare = _needed_spare(replica)
    if spare is not None:
        # Nothing else is sure to land, or to serve as soon, so what was given up for another slice is kept. The next
        # decision, which follows at once, counts it among the others.
        others = [each for each in replica.classifications if each is not spare]
        serves_first = bool(replica.up) and context.observed.serves(spare.attempt.name)
        reason = "it serves already" if serves_first else "the slice that was to replace it failed"
        reclaim = Reclaim(replica=record.index, name=spare.attempt.name, reason=reason)
        why = f"{spare.attempt.name} is kept after all"
        return (*_clear(record, others, context), reclaim, Wait(replica=record.index, why=why, seconds=0.0))
    # One slice that is up is enough, even if its server does not answer yet. Without one, it has to be requested.
    steps = tuple(_keep_one(replica) if replica.up else _find_one(replica))
    return (
        *_clear(record, replica.classifications, context),
        *_without_unseen_releases(replica, steps),
        *_drain_before_end(replica, steps),
    )


def remove(record: Record, context: DecisionContext) -> tuple[Step, ...]:
    """Return the steps towards nothing; none once nothing is left."""
    classifications = [classify(attempt, context) for attempt in record.attempts]
    # The others are released by `_clear`, are being deleted, or cannot be deleted before they are visible.
    alive = [each for each in classifications if each.status in {AttemptStatus.UP, AttemptStatus.WAITING}]
    remaining = [each for each in classifications if each.status is not AttemptStatus.GONE]
    releases = [step for each in alive for step in _release_drained(record, each, context, "no longer wanted")]
    if any(isinstance(step, Wait) and step.is_for_replicas for step in releases):
        # It serves until another replica does. Nothing of its own is on its way.
        return (*_clear(record, classifications, context), *releases)
    return (
        *_clear(record, classifications, context),
        *releases,
        *(_wait_for(record, each, context) for each in remaining),
    )


def matches(deployment: Deployment, attempt: Attempt) -> bool:
    """Return whether the slice of this attempt can be what `deployment` asks for without being replaced."""
    return fits(deployment, attempt) and not is_handed_over(deployment, attempt)


def fits(deployment: Deployment, attempt: Attempt) -> bool:
    """Return whether another slice would be the same as this one, whatever either serves."""
    # The user asked to replace it.
    if attempt.is_to_go:
        return False
    desired = desired_attributes(deployment, attempt)
    is_same = attempt.spec == desired or slice_print(attempt.spec) == slice_print(desired)
    return is_same and allows(deployment, attempt)


def _compare(deployment: Deployment, record: Record, context: DecisionContext) -> _Replica:
    """Classify each attempt, and compare it with the deployment."""
    classifications = [classify(attempt, context) for attempt in record.attempts]
    fitting: list[Classification] = []
    outdated: list[Classification] = []
    for each in classifications:
        if matches(deployment, each.attempt):
            fitting.append(each)
        elif each.status in {AttemptStatus.UP, AttemptStatus.WAITING}:
            outdated.append(each)
    present = tuple(each.attempt for each in classifications if each.status is not AttemptStatus.GONE)
    return _Replica(
        deployment=deployment,
        record=replace(record, attempts=present),
        context=context,
        classifications=classifications,
        fitting=fitting,
        outdated=outdated,
        doubtful=doubtful_places(record, context.now),
    )


def _without_unseen_releases(replica: _Replica, steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps, with a wait in place of each deletion that an API which does not answer would have to take.

    Its fault would stop everything else, for example the start of a slice at the other API. The deletion is sent once
    the API answers.
    """
    for step in steps:
        if isinstance(step, Release) and step.name in replica.context.observed.unseen:
            attempt = next(each for each in replica.classifications if each.attempt.name == step.name)
            yield _wait_for(replica.record, attempt, replica.context)
        else:
            yield step


def _clear(record: Record, classifications: Iterable[Classification], context: DecisionContext) -> Iterator[Step]:
    """Yield the steps that are right whatever the profile asks for."""
    for each in classifications:
        if each.status is AttemptStatus.GONE:
            absence = each.absence or Absence.GONE
            yield Forget(replica=record.index, name=each.attempt.name, absence=absence, refusal=each.refusal)
        elif each.status is AttemptStatus.DEAD:
            # Nothing runs there, but Google counts it against the quota until it is deleted.
            is_refused = each.absence is Absence.REFUSED
            yield replace(_release(record, each, each.reason), is_refused=is_refused)
        elif each.status is AttemptStatus.LEAVING and _must_be_deleted_again(each, context):
            # Google accepts a deletion while a slice is PROVISIONING, and its operation fails later.
            yield replace(_release(record, each, each.attempt.release_reason), is_spare=each.attempt.is_spare)


def _must_be_deleted_again(classification: Classification, context: DecisionContext) -> bool:
    """Return whether a deletion had the time to take effect, and did not."""
    requested_at, current = classification.attempt.releasing_at, classification.slice
    # We did not request one, or its zone does not answer, so that nothing is known about it.
    if requested_at is None or current is None:
        return False
    # Google itself is deleting the slice, and must not be asked to meanwhile (AXLearn was told so).
    if current.phase in {Phase.SUSPENDING, Phase.LEAVING}:
        return False
    return context.now - requested_at >= context.patience.release_again


# A released spare that is needed after all.


def _needed_spare(replica: _Replica) -> Classification | None:
    """Return a slice to keep after all: a released spare that Google still has, where nothing else is sure to land.

    Google accepts a deletion while a slice is PROVISIONING, and its operation fails (cloud_tpu: the delete is refused,
    and must be requested again). So a spare may come up although it was released. Keeping it decides nothing yet: it
    counts among the others, of which one is kept. Where its deletion is not known to have failed, it may still be
    carried out; then the slice is as doubtful as one in a doubtful place, and is lost like a preempted one. A spare
    that serves, and whose deletion failed, is also kept in place of a slice whose server still starts.
    """
    others = [each for each in replica.fitting if each.attempt.release is None]
    spares = [each for each in replica.fitting if each.attempt.is_spare and _exists(each)]
    better = [each for each in spares if _is_better(replica, each, others)]
    return min(better, key=lambda each: preference_key(each.attempt, replica.doubtful), default=None)


def _is_better(replica: _Replica, spare: Classification, others: Collection[Classification]) -> bool:
    """Return whether a released spare is sooner of use than the other slices and requests, and stays."""
    if any(each.status is AttemptStatus.UP and not _is_unproven(replica, each) for each in others):
        # Another slice is up, and nothing says that it will be lost soon. One that serves already is better.
        observed, is_doubtful = replica.context.observed, spare.attempt.place in replica.doubtful
        is_serving = _is_up_to_stay(spare) and observed.serves(spare.attempt.name) and not is_doubtful
        return is_serving and not any(observed.serves(each.attempt.name) for each in others)
    if any(_is_sure_to_land(replica, each) for each in others):
        # Another slice is up in minutes. One that is up already, and stays, is better; any other would be a second one.
        return _is_up_to_stay(spare)
    return True


def _exists(classification: Classification) -> bool:
    """Return whether Google is creating the slice or has created it, and is not deleting it."""
    return classification.slice is not None and classification.slice.phase in {Phase.PROVISIONING, Phase.UP}


def _is_up_to_stay(classification: Classification) -> bool:
    """Return whether a slice that was released is up, and its deletion is known to have failed."""
    current = classification.slice
    return current is not None and current.phase is Phase.UP and current.undeleted is not None


# A slice that fits is up.


def _keep_one(replica: _Replica) -> Iterator[Step]:
    """Yield the steps where slices that fit are up: bring up the best one, and let go of the others."""
    keep, *surplus = replica.up
    # Clients may use a slice that was announced, so it drains, like one that is replaced. The others go at once.
    announced = [each for each in surplus if each.attempt.is_announced]
    unused = [each for each in surplus if not each.attempt.is_announced]
    yield from (_release_spare(replica.record, each, "another slice is kept") for each in unused)
    replaced = [*replica.outdated, *announced]
    step = _next_step_of_kept(replica, keep, replaced)
    steps = (step, *_settle(replica, keep, step, replaced))
    is_over = isinstance(step, Done | GiveUp)
    # Where a slice is replaced, the previous one still exists, so no third one is requested.
    may_hunt = replica.context.may_request and not is_over and not replaced
    if may_hunt and _is_unproven(replica, keep):
        # It may be lost in minutes, like the last one in its place. The hunt continues beside it until it serves.
        yield from steps
        yield from _hunt(replica, beside=(keep.attempt,))
        return
    # A request that is not visible yet is not among these: its deletion would find nothing, and it could be granted
    # afterwards.
    requests = [each for each in replica.fitting if each.status is AttemptStatus.WAITING]
    yield from (_release_spare(replica.record, each, "another slice is kept") for each in requests)
    yield from steps


def _next_step_of_kept(replica: _Replica, keep: Classification, replaced: Iterable[Classification]) -> Step:
    """Return the next step of the slice that is kept."""
    status = ServerStatus(
        deployment=replica.deployment, replica=replica.index, attempt=keep.attempt, context=replica.context
    )
    step = _next_step(status, replaced)
    if isinstance(step, PushChange | Reset):
        detour = _leave_list(replica.record, keep, replica.context)
        if detour is not None:
            # Its server is not interrupted before its clients use another replica.
            return detour
    return step


def _settle(
    replica: _Replica, keep: Classification, step: Step, replaced: Collection[Classification]
) -> Iterator[Step]:
    """Yield the steps of the other slices once the next step of the kept one is its last."""
    unsettled = [each for each in replica.remaining if each is not keep]
    if isinstance(step, Done):
        yield from _hand_over(replica, keep, replaced)
    elif isinstance(step, GiveUp):
        # It does not serve, so clients use again what it was to replace, which is kept (decision 43). Where its node
        # undid a change, it serves again itself.
        returning = [*replaced, *([keep] if step.serves else [])]
        for each in returning:
            if each.attempt.draining_at is not None and not _drains_before_its_end(replica, each):
                yield Drain(replica=replica.index, name=each.attempt.name, begins=False)
        unsettled = [each for each in unsettled if each not in replaced]
    else:
        # It starts, or its node applies a change. What it replaces is not touched before it serves.
        return
    if unsettled:
        # Google may still grant or bill it, so the end is reached only once it is gone.
        yield _wait_for(replica.record, unsettled[0], replica.context)


def _next_step(status: ServerStatus, replaced: Iterable[Classification]) -> Step:
    """Return the next step of a slice. If it fails while the one that it replaces still serves, its error says so."""
    step = serve(status)
    previous = next((each.attempt for each in replaced if can_take_clients(each, status.context)), None)
    if not isinstance(step, GiveUp) or previous is None:
        return step
    if step.serves:
        # Its node undid a change and serves as before. But no client was ever sent there, so the cutover has failed.
        return replace(step, error=failed_cutover(status, previous, cause=status.undo_cause()))
    if type(step.error) is ServingError:
        return replace(step, error=failed_cutover(status, previous, cause=status.failure()))
    # The node did not acknowledge a change. Its own error says what to do about that.
    return step


def _hand_over(replica: _Replica, keep: Classification, replaced: Iterable[Classification]) -> Iterator[Step]:
    """Yield the steps once the slice that is kept serves: retire what it replaces, and renew its own run in time."""
    if replica.context.others_serve and ends_within_drain(keep.attempt, replica.context):
        # Google deletes it at the end of its run, whatever it runs then. It is not put on the list again.
        if keep.attempt.draining_at is None:
            yield Drain(replica=replica.index, name=keep.attempt.name)
    elif keep.attempt.draining_at is not None:
        # It was changed and serves again, or clients were sent to a successor that is not wanted any more.
        yield Drain(replica=replica.index, name=keep.attempt.name, begins=False)
    yield from _retire(replica, replaced)
    if replica.context.renews and needs_successor(replica.deployment, keep.attempt, replica.context):
        # Once that is recorded, this slice no longer fits, and the next decision hunts for its successor (decision 44).
        yield Renew(replica=replica.index, name=keep.attempt.name)
        yield Wait(replica=replica.index, why="its run ends", seconds=0.0)


def _retire(replica: _Replica, replaced: Iterable[Classification]) -> Iterator[Step]:
    """Yield the steps that let go of replaced slices: at once where no client uses them, else once they are drained."""
    for each in replaced:
        attempt = each.attempt
        if each.status is AttemptStatus.UP and attempt.is_announced and attempt.draining_at is None:
            # Clients read the endpoint that is published now. Those that have the previous one may use it for a while.
            yield Drain(replica=replica.index, name=attempt.name)
        elif attempt.draining_at is None or drain_seconds_left(attempt, replica.context) <= 0:
            running = replica.context.observed.requests(attempt.name)
            unfinished = f"; {running} requests exceeded the drain limit" if running else ""
            yield _release(replica.record, each, f"its replacement serves{unfinished}")


# No slice that fits is up.


def _find_one(replica: _Replica) -> Iterator[Step]:
    """Yield the steps where no slice that fits is up: wait for what must go first, else hunt for one."""
    unwanted = [each for each in replica.outdated if _must_go_first(replica, each)]
    for each in unwanted:
        yield from _release_drained(replica.record, each, replica.context, "the profile asks for another slice")
    draining = [each for each in replica.outdated if each.attempt.draining_at is not None and each not in unwanted]
    awaited = list(unwanted)
    if _has_other_server(replica):
        # A slice that is outdated too has taken over their clients, so they are released as planned.
        yield from _retire(replica, draining)
        awaited += draining
    else:
        # The slice that was to take over is lost. Clients go back to the previous one, until another serves.
        returning = [each for each in draining if not _drains_before_its_end(replica, each)]
        yield from (Drain(replica=replica.index, name=each.attempt.name, begins=False) for each in returning)
    awaited += [each for each in replica.classifications if _holds_quota(replica, each)]
    if not awaited:
        yield from _hunt(replica)
        return
    # A request before they are gone could be refused for quota, or be a second slice where the profile allows one.
    yield from (_wait_for(replica.record, each, replica.context) for each in (*replica.waiting, *awaited))


def _drain_before_end(replica: _Replica, steps: Collection[Step]) -> Iterator[Step]:
    """Yield the drains of slices whose run ends before their successor serves. Google deletes them in any case.

    `steps` are the other steps of this decision: one may let go of the slice already.
    """
    names = {step.name for step in steps if isinstance(step, Drain | Release)}
    for each in replica.outdated:
        is_new = each.attempt.draining_at is None and each.attempt.name not in names
        if is_new and _drains_before_its_end(replica, each):
            yield Drain(replica=replica.index, name=each.attempt.name)


def _drains_before_its_end(replica: _Replica, classification: Classification) -> bool:
    """Return whether a slice takes no requests from now on because its run ends, and another replica serves."""
    attempt = classification.attempt
    is_up = classification.status is AttemptStatus.UP and attempt.is_announced
    return is_up and replica.context.others_serve and ends_within_drain(attempt, replica.context)


def _has_other_server(replica: _Replica) -> bool:
    """Return whether an outdated slice that does not drain can take clients."""
    others = [each for each in replica.outdated if each.attempt.draining_at is None]
    return any(can_take_clients(each, replica.context) for each in others)


def _must_go_first(replica: _Replica, classification: Classification) -> bool:
    """Return whether an outdated attempt goes before its replacement is there."""
    # A request that waits holds nothing that serves, and is in the way of another one.
    if classification.status is AttemptStatus.WAITING:
        return True
    return _is_destroyed_first(replica.deployment, classification.attempt)


def _is_destroyed_first(deployment: Deployment, attempt: Attempt) -> bool:
    """Return whether another slice is wanted, and the profile allows none beside this one."""
    return not deployment.lifecycle.create_before_destroy and not fits(deployment, attempt)


def _holds_quota(replica: _Replica, classification: Classification) -> bool:
    """Return whether the hunt waits for the deletion of a granted slice, because it uses quota until then."""
    attempt = classification.attempt
    is_going = classification.status in {AttemptStatus.DEAD, AttemptStatus.LEAVING}
    # A request that was never granted has no machine, and the hunt continues beside it.
    if not is_going or attempt.granted_at is None:
        return False
    # It uses quota for some seconds more, and a refusal for that is dropped with it. Every second of its notice counts.
    if is_being_preempted(attempt.name, replica.context.observed):
        return False
    # The profile allows none beside it, so it is waited for as long as it takes.
    if _is_destroyed_first(replica.deployment, attempt):
        return True
    # Most slices are gone within a minute. A deletion that loops takes over an hour: the hunt does not wait for that.
    since = attempt.releasing_at
    return since is None or replica.context.now - since < replica.context.patience.husk


# The hunt.


def _hunt(replica: _Replica, *, beside: tuple[Attempt, ...] = ()) -> Iterator[Step]:
    """Yield the requests to keep and to send: as many as are allowed, and none once one is sure to land.

    A landing in a doubtful place is one request among others: it ends nothing. `beside` is a slice that is up there.
    """
    if any(_brings_refusal(each) for each in replica.classifications):
        # The refusals of this observation are saved first. Then they count when the next place is chosen.
        yield Wait(replica=replica.index, why="choosing the next place", seconds=0.0)
        return
    if any(_is_sure_to_land(replica, each) for each in replica.waiting):
        # Google has chosen a machine. Every other request may be granted as well, and would be billed.
        yield from _await_landing(replica)
        return
    kept = _allowed_requests(replica, beside)
    # More wait than are allowed, where the profile was changed or where one of them is up by now.
    surplus = [each for each in replica.waiting if each not in kept]
    yield from (_release_spare(replica.record, each, "more requests wait than the profile allows") for each in surplus)
    kept = [each for each in replica.waiting if each in kept]
    yield from (_wait_for(replica.record, each, replica.context) for each in kept)
    end = _end_of_hunt(replica)
    yield from _request_places(replica, kept, beside) if end is None else _end_hunt(replica, end)


def _allowed_requests(replica: _Replica, beside: Iterable[Attempt]) -> list[Classification]:
    """Return the requests that the profile allows beside these slices, the best spares first."""
    allowed: list[Classification] = []
    requested = [attempt.place for attempt in beside]
    for each in sorted(replica.waiting, key=_place_in_queue):
        if has_room(replica.deployment, requested, each.attempt.place):
            allowed.append(each)
            requested.append(each.attempt.place)
    return allowed


def _end_hunt(replica: _Replica, end: GiveUp) -> Iterator[Step]:
    """Yield the steps of a hunt that cannot find a place: give up, once nothing of it is left at Google."""
    # A run ends only once Google can neither grant nor bill anything of it. What was to be replaced is kept: it is
    # waited for only where its run ends soon, because that makes room.
    unsettled = [each for each in replica.remaining if each not in replica.outdated or each.attempt.is_ending]
    if unsettled:
        yield _wait_for(replica.record, unsettled[0], replica.context)
    else:
        yield end


def _brings_refusal(classification: Classification) -> bool:
    """Return whether a request ended in this observation, with a reason that is not in the record yet."""
    is_over = classification.status in {AttemptStatus.GONE, AttemptStatus.DEAD}
    return is_over and classification.refusal is not None


def _await_landing(replica: _Replica) -> Iterator[Step]:
    """Yield the steps while a slice is sure to land: wait for it, with one other request as a spare (decision 18).

    What lands may be granted at any moment, and the spare may be granted already, unseen: only a grant that is seen
    shows which of them stays.
    """
    landing = [each for each in replica.waiting if _is_provisioning(each)]
    others = sorted((each for each in replica.waiting if each not in landing), key=_place_in_queue)
    yield from (_release_spare(replica.record, each, "another one is about to land") for each in others[1:])
    yield from (_wait_for(replica.record, each, replica.context) for each in (*landing, *others[:1]))


def _place_in_queue(classification: Classification) -> tuple[bool, float]:
    """Return a key that is lowest for the best spare: a request in a queue, and the one that waits for longest."""
    return (classification.attempt.provisioning not in QUEUED, classification.attempt.asked_at)


def _end_of_hunt(replica: _Replica) -> GiveUp | None:
    """Return the end of a hunt that cannot end by waiting, or None."""
    places, now, patience = replica.deployment.candidates, replica.context.now, replica.context.patience
    if not places:
        hint = "Widen placement.zones, placement.provisioning or placement.max_price_per_chip_hour."
        error = Denied("The profile allows no zone and provisioning model to try.", hint=hint)
        return GiveUp(replica=replica.index, error=error)
    backends = {place.backend for place in places}
    standing = standing_refusals(places, replica.record, now, patience)
    refusals = [refusal for refusal in standing if refusal.backend in backends]
    open_places = places_not_stopped(places, refusals)
    if not open_places:
        # Only a person can lift a stop, for example by enabling the API. Every API of the profile has given one.
        stops = tuple({refusal.backend: refusal for refusal in refusals if refusal.stops}.values())
        hints = (f"`tpudeploy explain {kind}` says what to do." for kind in dict.fromkeys(s.kind for s in stops))
        error = Denied("\n".join(dict.fromkeys(stop.message for stop in stops)), hint="\n".join(hints))
        return GiveUp(replica=replica.index, error=error, refusals=stops)
    return _closed_end(replica, refusals) if is_closed(open_places, refusals, now, patience) else None


_QUOTAS = frozenset({RefusalScope.ZONE_QUOTA, RefusalScope.REGION_QUOTA, RefusalScope.REGION_RESOURCES})


def _closed_end(replica: _Replica, refusals: Collection[RefusalRecord]) -> GiveUp:
    """Return the end of a hunt in places that all stay closed."""
    answers = "\n".join(_answers(refusals))
    # A quota is a matter of these words; each other cause has a remedy of its own.
    others = tuple({refusal.kind: refusal for refusal in refusals if refusal.scope not in _QUOTAS}.values())
    is_quota = any(refusal.scope in _QUOTAS for refusal in refusals)
    wider = "Request more quota, or widen placement.zones." if is_quota else "Or widen placement.zones."
    next_step = f"{wider} The next `tpudeploy apply` then tries every zone again."
    hint = f"{answers}\n{_room_after_deletion(replica, refusals)}{next_step}"
    error = Denied("All allowed zones refused the request, and retrying will not help.", hint=hint)
    return GiveUp(replica=replica.index, error=error, refusals=others)


def _answers(refusals: Iterable[RefusalRecord]) -> Iterator[str]:
    """Yield each of Google's texts once, after the places that gave it."""
    groups: dict[str, list[RefusalRecord]] = {}
    for refusal in refusals:
        groups.setdefault(refusal.zone.abstracted(refusal.message), []).append(refusal)
    for text, group in groups.items():
        places = "; ".join(str(refusal.place) for refusal in group)
        yield f"{places}: {group[0].message if len(group) == 1 else text}"


def _room_after_deletion(replica: _Replica, refusals: Iterable[RefusalRecord]) -> str:
    """Return the advice, as a line, to delete what is to be replaced first, where that makes room; else ""."""
    names = [each.attempt.name for each in replica.outdated if any(frees(each.attempt, r) for r in refusals)]
    if not names:
        return ""
    serving = "Only the other replicas serve" if replica.context.others_serve else "Nothing serves"
    return (
        f"{names[0]}, which is kept, uses a part of that quota: lifecycle.replace: destroy-before-create deletes it "
        f"first. {serving} until the new slice does.\n"
    )


def _request_places(
    replica: _Replica, waiting: Collection[Classification], beside: Iterable[Attempt]
) -> Iterator[Step]:
    """Yield the requests to send beside those that wait, as many as are allowed, and what to wait for next."""
    deployment, record, context = replica.deployment, replica.record, replica.context
    requests = [*beside, *(each.attempt for each in waiting)]
    places = next_places(
        deployment,
        record,
        requests,
        # Google ends these, and says why only at the end. Until then their places count as refused.
        unexplained=[each.attempt.place for each in replica.classifications if _is_ended_by_google(each)],
        resting=context.resting,
        scores=context.scores,
        now=context.now,
        patience=context.patience,
    )
    affordable, rationed = _ration(places, context)
    yield from (Request(replica=replica.index, candidate=place) for place in affordable)
    if rationed:
        # Each API's limit of creates per minute is shared by all deployments, which get them in turn.
        why = "the project's limit of creates per minute is reached"
        for backend in rationed:
            pause = max(context.creates_in.get(backend, 0.0), context.patience.create_every)
            yield Wait(replica=replica.index, why=why, seconds=pause, rationed_at=backend)
        return
    if not _has_more_room(deployment, [*requests, *places]):
        # As many requests wait as are allowed, so no other place matters.
        return
    # The next place may be requested once one of these counts as silent.
    opens_at = next_silence(deployment, record, requests, context.now)
    if opens_at is None:
        opens_at = next_opening(deployment, record, requests, context.now, context.patience, resting=context.resting)
    is_idle = not waiting and not places
    if opens_at is not None:
        # No observation shows that a refusal has lapsed, so this wait ends by the clock.
        why = "refused everywhere" if is_idle else "refused everywhere else"
        yield Wait(replica=replica.index, why=why, seconds=opens_at - context.now)
    elif is_idle and replica.remaining:
        # Every place is one where a request of ours leaves: it is free once that one is gone.
        yield _wait_for(record, replica.remaining[0], context)


def _has_more_room(deployment: Deployment, requests: Iterable[Attempt | Candidate]) -> bool:
    """Return whether the profile allows a request in any place beside these."""
    requested = [request.place for request in requests]
    return any(has_room(deployment, requested, candidate.place) for candidate in deployment.candidates)


def _ration(places: Iterable[Candidate], context: DecisionContext) -> tuple[list[Candidate], list[Backend]]:
    """Return the places for which the project has a create left now, and the APIs at which it has too few."""
    creates: dict[Backend, float] = {**context.creates}
    affordable: list[Candidate] = []
    rationed: list[Backend] = []
    for place in places:
        backend = place.backend
        # An API that is not in the context has no limit.
        creates_left = creates.get(backend, inf)
        if creates_left > 0:
            affordable.append(place)
            creates[backend] = creates_left - 1
        elif backend not in rationed:
            rationed.append(backend)
    return affordable, rationed


def _is_ended_by_google(classification: Classification) -> bool:
    """Return whether a slice leaves although nobody here released it."""
    return classification.status is AttemptStatus.LEAVING and classification.attempt.release is None


def _is_sure_to_land(replica: _Replica, classification: Classification) -> bool:
    """Return whether a request can be expected to be a usable slice within minutes, and to stay one."""
    if not _is_provisioning(classification) or _is_unproven(replica, classification):
        return False
    since = classification.attempt.provisioning_at
    # PROVISIONING can loop for ever, so a landing that takes longer than any did is not relied on.
    return since is None or replica.context.now - since < replica.context.patience.landing


def _is_provisioning(classification: Classification) -> bool:
    """Return whether Google has chosen a machine for the request, and creates it."""
    current = classification.slice
    # A slice whose machine is not visible is late, as long as it was never granted.
    return (
        classification.status is AttemptStatus.WAITING
        and current is not None
        and current.phase in {Phase.PROVISIONING, Phase.LOST}
    )


def _is_unproven(replica: _Replica, classification: Classification) -> bool:
    """Return whether a slice may be lost in minutes: after failed landings in its place, or by a deletion of ours."""
    attempt, current, now = classification.attempt, classification.slice, replica.context.now
    # It has served, or has lasted for longer than those that fail.
    if attempt.is_announced or (attempt.granted_at is not None and now - attempt.granted_at >= LASTING):
        return False
    # It was released and kept after all. Its deletion is carried out, unless it is known to have failed.
    if attempt.reclaim is not None and (current is None or current.undeleted is None):
        return True
    return attempt.place in replica.doubtful


# Steps.


def _leave_list(record: Record, classification: Classification, context: DecisionContext) -> Step | None:
    """Return the step before the server of this slice may be interrupted, or None once it may be (decision 60)."""
    attempt = classification.attempt
    is_up = classification.status is AttemptStatus.UP and attempt.is_announced
    if not is_up or not answers(attempt.name, context.observed):
        # It serves no client, so none is lost.
        return None
    if attempt.draining_at is not None and context.held_because:
        # Another replica was lost meanwhile. This one serves as before, so clients come back to it.
        return Drain(replica=record.index, name=attempt.name, begins=False)
    if attempt.draining_at is None and context.held_because:
        return Wait(replica=record.index, why=context.held_because, is_for_replicas=True)
    if attempt.draining_at is None:
        # Without another replica, a drain would only refuse requests that it can still serve.
        return Drain(replica=record.index, name=attempt.name) if context.others_serve else None
    # Where no other replica serves, to wait would only refuse requests for longer.
    if context.others_serve and drain_seconds_left(attempt, context) > 0:
        return _wait_for(record, classification, context)
    return None


def _release_drained(
    record: Record, classification: Classification, context: DecisionContext, reason: str
) -> Iterator[Step]:
    """Yield the release of a slice, or what comes before it while clients use the slice."""
    detour = _leave_list(record, classification, context)
    if detour is not None:
        yield detour
        return
    running = context.observed.requests(classification.attempt.name)
    unfinished = f"; {running} requests exceeded the drain limit" if running else ""
    yield _release(record, classification, f"{reason}{unfinished}")


def _wait_for(record: Record, classification: Classification, context: DecisionContext) -> Wait:
    """Return a wait for the next change of this attempt, with its state as the reason."""
    attempt, current = classification.attempt, classification.slice
    if classification.status in {AttemptStatus.HIDDEN, AttemptStatus.REFUSED}:
        # A list may not show a new request yet, and a refusal in unknown words is believed only after the grace
        # (decision 20). Both end by the clock.
        seconds = hidden_until(attempt, current, context) - context.now
        return Wait(replica=record.index, why=classification.reason, seconds=max(0.0, seconds))
    if classification.status is AttemptStatus.UP and attempt.draining_at is not None:
        # Clients were sent elsewhere, and this slice serves the requests that it still has.
        running = context.observed.requests(attempt.name)
        why = f"for clients that may still use {attempt.name}"
        if running:
            why = f"for {running} requests that {attempt.name} still runs"
        return Wait(replica=record.index, why=why, seconds=drain_seconds_left(attempt, context))
    state = classification.reason if current is None else current.raw_state
    if current is not None and current.undeleted is not None:
        state = f"{state}; its deletion failed: {current.undeleted.message}"
    if classification.status in {AttemptStatus.LEAVING, AttemptStatus.DEAD}:
        state = f"for {attempt.name} to be gone ({state})"
    return Wait(replica=record.index, why=state)


def _release_spare(record: Record, classification: Classification, reason: str) -> Release:
    """Return the release of a slice that is given up because another one is expected to replace it."""
    return replace(_release(record, classification, reason), is_spare=True)


def _release(record: Record, classification: Classification, reason: str) -> Release:
    return Release(
        replica=record.index, name=classification.attempt.name, reason=reason, refusal=classification.refusal
    )
