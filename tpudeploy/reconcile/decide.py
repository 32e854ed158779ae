"""One replica, one moment: every step that is right now, in an order that is safe to stop after any of them.

`decide` aims at a deployment, `remove` at nothing. Both see only data.

Why: decisions 4 and 13 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import Denied, ServingError
from tpudeploy.domain.slices import Phase
from tpudeploy.domain.state import Attempt, Record
from tpudeploy.domain.step import Done, Drain, Forget, GiveUp, Reclaim, Release, Renew, Request, Step, Wait
from tpudeploy.node.fingerprint import slice_print
from tpudeploy.reconcile.attempt_status import AttemptStatus, Classification, DecisionContext, classify
from tpudeploy.reconcile.cutover import (
    can_take_clients,
    drain_seconds_left,
    failed_cutover,
    is_handed_over,
    needs_successor,
)
from tpudeploy.reconcile.desired import desired_attributes
from tpudeploy.reconcile.failed_landings import LASTING, doubtful_places, pair
from tpudeploy.reconcile.placement import QUEUED, allows, is_closed, next_opening, next_places
from tpudeploy.reconcile.preference import preference_key
from tpudeploy.reconcile.refusals import standing_refusals
from tpudeploy.reconcile.rollout import ServerStatus, serve

_MADE = frozenset({Phase.PROVISIONING, Phase.LOST})


def decide(deployment: Deployment, record: Record, context: DecisionContext) -> tuple[Step, ...]:
    """The steps towards `deployment` for one replica. Never empty."""
    classifications = [classify(a, context) for a in record.attempts]
    spare = _needed_spare(deployment, record, classifications, context)
    if spare is not None:
        # Nothing else is sure to land: keep what was given up for it, and decide anew with that.
        reclaim = Reclaim(replica=record.index, name=spare.attempt.name)
        others = [j for j in classifications if j is not spare]
        why = f"{spare.attempt.name} is kept after all"
        return (*_clear(record, others, context), reclaim, Wait(replica=record.index, why=why, seconds=0.0))
    return (*_clear(record, classifications, context), *_aim(deployment, record, classifications, context))


def remove(record: Record, context: DecisionContext) -> tuple[Step, ...]:
    """The steps towards nothing; empty once nothing is left."""
    classifications = [classify(a, context) for a in record.attempts]
    unwanted = [j for j in classifications if j.status in {AttemptStatus.UP, AttemptStatus.WAITING}]
    waits = [j for j in classifications if j.status is not AttemptStatus.GONE]
    return (
        *_clear(record, classifications, context),
        *(_release(record, j, "no longer wanted") for j in unwanted),
        *(_hold(record, j, context) for j in waits),
    )


def matches(deployment: Deployment, attempt: Attempt) -> bool:
    """Whether this attempt's slice can be what `deployment` wants without being replaced."""
    return fits(deployment, attempt) and not is_handed_over(deployment, attempt)


def fits(deployment: Deployment, attempt: Attempt) -> bool:
    """Whether another slice would be no other than this one, whatever it serves."""
    if attempt.is_to_go:
        return False
    want = desired_attributes(deployment, attempt)
    same = attempt.spec == want or slice_print(attempt.spec) == slice_print(want)
    return same and allows(deployment, attempt)


def _clear(record: Record, classifications: Iterable[Classification], context: DecisionContext) -> Iterator[Step]:
    """Forget what is gone, release what is dead (it eats quota), ask again for deletions that did not take."""
    for j in classifications:
        match j.status:
            case AttemptStatus.GONE:
                yield Forget(replica=record.index, name=j.attempt.name, reason=j.reason, refusal=j.refusal)
            case AttemptStatus.DEAD:
                yield _release(record, j, j.reason)
            case AttemptStatus.LEAVING if _did_not_take(j, context):
                yield replace(_release(record, j, j.attempt.release_reason), is_spare=j.attempt.is_spare)
            case _:
                pass


def _aim(
    deployment: Deployment, record: Record, classifications: list[Classification], context: DecisionContext
) -> Iterator[Step]:
    fitting: list[Classification] = []
    outdated: list[Classification] = []
    for j in classifications:
        if matches(deployment, j.attempt):
            fitting.append(j)
        elif j.status in {AttemptStatus.UP, AttemptStatus.WAITING}:
            outdated.append(j)
    doubtful = doubtful_places(record, context.now)
    up = sorted((j for j in fitting if j.status is AttemptStatus.UP), key=lambda j: preference_key(j.attempt, doubtful))
    waiting = [
        j
        for j in fitting
        if j.status in {AttemptStatus.HIDDEN, AttemptStatus.WAITING} and j.attempt.releasing_at is None
    ]
    if up:
        keep, *surplus = up
        outdated += [j for j in surplus if j.attempt.is_announced]  # clients may hold it
        yield from (_spare(record, j, "another slice is kept") for j in surplus if not j.attempt.is_announced)
        steps = tuple(_keep(deployment, record, keep, classifications, outdated, context))
        ends = any(isinstance(step, Done | GiveUp) for step in steps)
        if not ends and context.may_ask and not outdated and _is_unproven(record, keep, context):
            # It may be gone in minutes, like the last one there: the hunt goes on beside it until it serves.
            yield from steps
            yield from _hunt(deployment, record, classifications, waiting, context, beside=(keep.attempt,))
            return
        yield from (_spare(record, j, "another slice is kept") for j in fitting if j.status is AttemptStatus.WAITING)
        yield from steps
        return
    # A waiting request for what is no longer wanted holds nothing that serves; neither does a slice that
    # must go first.
    first = [j for j in outdated if j.status is AttemptStatus.WAITING or _goes_first(deployment, j.attempt)]
    yield from (_release(record, j, "the profile asks for another slice") for j in first)
    leaving = [j for j in outdated if j not in first and j.attempt.draining_at is not None]
    if any(can_take_clients(j, context) for j in outdated if j.attempt.draining_at is None):
        yield from _retire(record, leaving, context)
    else:  # what was to take over is gone itself
        yield from (Drain(replica=record.index, name=j.attempt.name, begins=False) for j in leaving)
        leaving = []
    granted = (j for j in classifications if j.attempt.granted_at is not None)
    blocking = [*first, *leaving, *(j for j in granted if _blocks(deployment, j, context))]
    if blocking:
        yield from (_hold(record, j, context) for j in (*waiting, *blocking))
    else:
        yield from _hunt(deployment, record, classifications, waiting, context)


def _keep(  # noqa: PLR0917 - one replica's slices, told apart
    deployment: Deployment,
    record: Record,
    keep: Classification,
    classifications: list[Classification],
    outdated: list[Classification],
    context: DecisionContext,
) -> Iterator[Step]:
    """Bring up the slice that is kept; once it serves, let go of those that it takes over from."""
    replica = record.index
    standing = ServerStatus(deployment=deployment, replica=replica, attempt=keep.attempt, context=context)
    step = _next_step(standing, outdated)
    yield step
    if isinstance(step, Done):
        if keep.attempt.draining_at is not None:
            yield Drain(replica=replica, name=keep.attempt.name, begins=False)
        yield from _retire(record, outdated, context)
        if context.renews and needs_successor(deployment, keep.attempt, context):
            yield Renew(replica=replica, name=keep.attempt.name)
            yield Wait(replica=replica, why="its run ends", seconds=0.0)
    elif isinstance(step, GiveUp):
        back = (j.attempt.name for j in outdated if j.attempt.draining_at is not None)
        yield from (Drain(replica=replica, name=name, begins=False) for name in back)
    # The end is reached only when nothing else of ours is left, or can still appear: Google may yet grant it.
    # What a slice that failed was to replace stays, though.
    others = [j for j in classifications if j is not keep and j.status is not AttemptStatus.GONE]
    left = [j for j in others if isinstance(step, Done) or j not in outdated]
    if left and isinstance(step, Done | GiveUp):
        yield _hold(record, left[0], context)


def _next_step(standing: ServerStatus, outdated: list[Classification]) -> Step:
    """Its next step; where it gives up, and another slice serves on, its error says so."""
    step = serve(standing)
    old = next((j.attempt for j in outdated if can_take_clients(j, standing.context)), None)
    if not isinstance(step, GiveUp) or old is None:
        return step
    if step.serves:
        # A change of a slice that was yet to take over was undone: it serves again, but no client was ever sent there.
        return replace(step, error=failed_cutover(standing, old, cause=standing.undone))
    if type(step.error) is ServingError:
        return replace(step, error=failed_cutover(standing, old, cause=standing.failure))
    return step


def _retire(record: Record, outdated: Iterable[Classification], context: DecisionContext) -> Iterator[Step]:
    """Let go of what another one has taken over from: what nobody was given at once, the rest once it is drained."""
    for j in outdated:
        if j.status is AttemptStatus.UP and j.attempt.is_announced and j.attempt.draining_at is None:
            yield Drain(replica=record.index, name=j.attempt.name)
        elif j.attempt.draining_at is None or drain_seconds_left(j.attempt, context) <= 0:
            running = context.observed.running.get(j.attempt.name)
            cut = f"; {running} requests took longer than may be waited for" if running else ""
            yield _release(record, j, f"its replacement serves{cut}")


def _hunt(
    deployment: Deployment,
    record: Record,
    classifications: list[Classification],
    waiting: list[Classification],
    context: DecisionContext,
    *,
    beside: tuple[Attempt, ...] = (),
) -> Iterator[Step]:
    """Ask in as many places as may be; once one is about to land, in none, with one spare for a landing that fails.

    A landing in a doubtful place is one request among others: it ends nothing. `beside` is a slice that is up there.
    """
    # What this very look refused is written down first, then counts.
    if any(j.status in {AttemptStatus.GONE, AttemptStatus.DEAD} and j.refusal is not None for j in classifications):
        yield Wait(replica=record.index, why="choosing the next place", seconds=0.0)
        return
    if any(_is_landing(j, context) and not _is_unproven(record, j, context) for j in waiting):
        made = [j for j in waiting if _is_provisioning(j)]
        queued = sorted((j for j in waiting if not _is_provisioning(j)), key=_place_in_queue)
        yield from (_spare(record, j, "another one is about to land") for j in queued[1:])
        yield from (_hold(record, j, context) for j in (*made, *queued[:1]))
        return
    # What is gone holds nothing: it makes room in this very look.
    record = replace(record, attempts=tuple(j.attempt for j in classifications if j.status is not AttemptStatus.GONE))
    most = deployment.max_parallel_requests - len(beside)
    kept = sorted(waiting, key=_place_in_queue)[:most]
    yield from (_spare(record, j, "more are asked for than may be") for j in waiting if j not in kept)
    waiting = [j for j in waiting if j in kept]
    yield from (_hold(record, j, context) for j in waiting)
    denied = _denied(deployment, record, context)
    left = [j for j in classifications if j.status is not AttemptStatus.GONE]
    if denied is not None:
        yield _hold(record, left[0], context) if left else GiveUp(replica=record.index, error=denied)
        return
    attempts = [*beside, *(j.attempt for j in waiting)]
    unexplained = [pair(j.attempt) for j in left if _goes_by_itself(j)]
    places = next_places(
        deployment,
        record,
        attempts,
        unexplained=unexplained,
        scores=context.luck,
        now=context.now,
        patience=context.patience,
    )
    yield from (Request(replica=record.index, candidate=c) for c in places[: context.creates])
    if len(places) > context.creates:
        pause = max(context.creates_in, context.patience.create_every)
        why = "the project's creates a minute are used up"
        yield Wait(replica=record.index, why=why, seconds=pause, is_rationed=True)
    elif len(waiting) + len(places) < most:
        opens = next_opening(deployment, record, attempts, context.now, context.patience)
        if opens is not None:
            why = "refused everywhere else" if waiting or places else "refused everywhere"
            yield Wait(replica=record.index, why=why, seconds=max(0.0, opens - context.now))
        elif left and not waiting and not places:
            yield _hold(record, left[0], context)


def _denied(deployment: Deployment, record: Record, context: DecisionContext) -> Denied | None:
    """Why waiting is no use, or None."""
    if not deployment.candidates:
        hint = "Widen placement.zones, placement.provisioning or placement.max_price_per_chip_hour."
        return Denied("No place is left that the profile allows to ask.", hint=hint)
    standing = standing_refusals(deployment.candidates, record, context.now, context.patience)
    stop = next((r for r in standing if r.stops), None)
    if stop is not None:
        return Denied(stop.message, hint=f"`tpudeploy explain {stop.kind}` says what to do.")
    if is_closed(deployment.candidates, standing, context.now, context.patience):
        said = "\n".join(f"{r.zone}, {r.provisioning}: {r.message}" for r in standing)
        hint = f"{said}\nAsk for quota, or widen placement.zones; `tpudeploy apply` then asks everywhere anew."
        return Denied("Every place that the profile allows has refused, and waiting will not change that.", hint=hint)
    return None


def _needed_spare(
    deployment: Deployment, record: Record, classifications: list[Classification], context: DecisionContext
) -> Classification | None:
    """Return a slice to keep after all: a released spare that Google still has, where nothing else is sure to land.

    Google takes a deletion while a slice is PROVISIONING, and its operation fails (cloud_tpu: the delete is refused,
    and must be asked for again). So a spare may come up though it was given up. Taking it back decides nothing: it
    counts again beside whatever else there is, of which one is kept. Where its deletion was not seen to fail, it may
    yet be carried out; then the slice is as doubtful as one in a doubtful place, and goes like a preempted one.
    """
    others = [j for j in classifications if j.attempt.releasing_at is None and matches(deployment, j.attempt)]
    if any(
        j.status is AttemptStatus.UP and (j.attempt.is_announced or not _is_unproven(record, j, context))
        for j in others
    ):
        return None
    is_sure = any(_is_landing(j, context) and not _is_unproven(record, j, context) for j in others)
    spares = [j for j in classifications if j.attempt.is_spare and _is_alive(j) and matches(deployment, j.attempt)]
    if is_sure:  # what is up beats what is about to be
        spares = [j for j in spares if j.slice is not None and j.slice.phase is Phase.UP and j.slice.undeleted]
    doubtful = doubtful_places(record, context.now)
    return min(spares, key=lambda j: preference_key(j.attempt, doubtful), default=None)


def _is_alive(classification: Classification) -> bool:
    """Whether Google makes it or has made it, and does not delete it."""
    return classification.slice is not None and classification.slice.phase in {Phase.PROVISIONING, Phase.UP}


def _is_unproven(record: Record, classification: Classification, context: DecisionContext) -> bool:
    """Whether a slice may be gone in minutes: by the last landings of its place, or by a deletion still under way."""
    attempt, found = classification.attempt, classification.slice
    if attempt.is_announced or (attempt.granted_at is not None and context.now - attempt.granted_at >= LASTING):
        return False
    may_be_deleted = attempt.reclaim is not None and (found is None or found.undeleted is None)
    return may_be_deleted or pair(attempt) in doubtful_places(record, context.now)


def _is_provisioning(classification: Classification) -> bool:
    """Whether Google has chosen it: a machine is being made."""
    return (
        classification.status is AttemptStatus.WAITING
        and classification.slice is not None
        and classification.slice.phase in _MADE
    )


def _is_landing(classification: Classification, context: DecisionContext) -> bool:
    """Whether it can be expected to be usable within minutes. One that takes longer may loop for ever."""
    since = classification.attempt.provisioning_at
    return _is_provisioning(classification) and (since is None or context.now - since < context.patience.landing)


def _hold(record: Record, classification: Classification, context: DecisionContext) -> Wait:
    attempt, slice_ = classification.attempt, classification.slice
    if classification.status in {AttemptStatus.HIDDEN, AttemptStatus.REFUSED}:
        # A list may not show a new request yet, and a refusal in unknown words is believed only after the grace.
        seconds = attempt.asked_at + context.patience.grace - context.now
        return Wait(replica=record.index, why=classification.reason, seconds=max(0.0, seconds))
    if classification.status is AttemptStatus.UP and attempt.draining_at is not None:
        # Clients were sent elsewhere, and this slice serves the requests that it still has.
        seconds = drain_seconds_left(attempt, context)
        running = context.observed.running.get(attempt.name, 0)
        why = f"for clients that may still hold {attempt.name}"
        if running:
            why = f"for {running} requests that {attempt.name} still runs"
        return Wait(replica=record.index, why=why, seconds=seconds)
    state = classification.reason if slice_ is None else slice_.raw_state
    if slice_ is not None and slice_.undeleted is not None:
        state = f"{state}; its deletion failed: {slice_.undeleted.message}"
    if classification.status in {AttemptStatus.LEAVING, AttemptStatus.DEAD}:
        state = f"for {attempt.name} to be gone ({state})"
    return Wait(replica=record.index, why=state)


def _spare(record: Record, classification: Classification, reason: str) -> Release:
    """Give it up because another one is expected to do."""
    return replace(_release(record, classification, reason), is_spare=True)


def _release(record: Record, classification: Classification, reason: str) -> Release:
    return Release(
        replica=record.index, name=classification.attempt.name, reason=reason, refusal=classification.refusal
    )


def _did_not_take(classification: Classification, context: DecisionContext) -> bool:
    """Whether a deletion must be asked for again. Never while Google itself is deleting (AXLearn was told so)."""
    asked, found = classification.attempt.releasing_at, classification.slice
    if asked is None or found is None or found.phase in {Phase.SUSPENDING, Phase.LEAVING}:
        return False
    return context.now - asked >= context.patience.release_again


def _goes_by_itself(classification: Classification) -> bool:
    """Whether Google ends it, which says why only at the end."""
    return classification.status is AttemptStatus.LEAVING and classification.attempt.releasing_at is None


def _blocks(deployment: Deployment, classification: Classification, context: DecisionContext) -> bool:
    """Whether to wait until a slice that was granted is gone: it holds quota, and goes within a minute.

    Where it must go first, it is waited for as long as it takes.
    """
    if classification.status not in {AttemptStatus.DEAD, AttemptStatus.LEAVING}:
        return False
    if _goes_first(deployment, classification.attempt):
        return True
    since = classification.attempt.releasing_at
    return since is None or context.now - since < context.patience.husk


def _goes_first(deployment: Deployment, attempt: Attempt) -> bool:
    """Whether another slice is wanted, but none before this one has gone."""
    return not deployment.lifecycle.create_before_destroy and not fits(deployment, attempt)


def _place_in_queue(classification: Classification) -> tuple[bool, float]:
    """The best spare first: one that queues, and has for longest."""
    return (classification.attempt.provisioning not in QUEUED, classification.attempt.asked_at)
