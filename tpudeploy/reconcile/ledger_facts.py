"""Make facts for the ledger: what a state's change or an observation says of the cost of its requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpudeploy import catalog
from tpudeploy.domain.ending import EndCause
from tpudeploy.domain.ledger import (
    BackendMove,
    EndEvidence,
    LedgerFact,
    MachineEnd,
    NewRequest,
    PricedRequest,
    Sighting,
    StateRemoval,
    StillRuns,
)
from tpudeploy.domain.orphans import CloudResource
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import Observed, Phase, Refusal, SliceEnd
from tpudeploy.domain.state import Attempt, State
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.attempt_status import AttemptStatus, DecisionContext, classify
from tpudeploy.reconcile.machine_end import past_deletion
from tpudeploy.reconcile.refusals import UNANSWERED, chips_of

_LABELS = "placement.labels."
_SOURCE = "list price in the catalog of tpudeploy"
_LEAST_LIFE = 300.0  # seconds from a request to the earliest end of a machine that served


def new_requests(before: Iterable[Attempt], after: State, now: float) -> Iterator[NewRequest]:
    """Yield a fact for each request that `after` tracks and the state before did not."""
    names = {attempt.name for attempt in before}
    for index, attempt in after.indexed_attempts:
        if attempt.name not in names:
            request = priced_request(after.deployment, index, attempt)
            yield NewRequest(request=request, at=now, began=attempt.granted_at)


def departures(
    kind: type[MachineEnd | StateRemoval | BackendMove], before: State, names: Iterable[str], now: float
) -> Iterator[LedgerFact]:
    """Yield a fact for each of these requests that leave the state `before`."""
    leaving = frozenset(names)
    for index, attempt in before.indexed_attempts:
        if attempt.name not in leaving:
            continue
        if kind is MachineEnd:
            yield _departure(before, index, attempt, now)
        else:
            request = priced_request(before.deployment, index, attempt)
            yield kind(request=request, at=now, began=attempt.granted_at)


def _departure(state: State, index: int, attempt: Attempt, now: float) -> MachineEnd:
    """Return the end of a request that is proven to be gone."""
    released, granted, ended, evidence = attempt.releasing_at, attempt.granted_at, None, EndEvidence.DELETED
    if granted is not None:
        # A release that came before the grant was refused: the slice was seen to run after it.
        is_released = released is not None and released >= granted
        ended = released if is_released else past_deletion(attempt, state, now)
        evidence = EndEvidence.BOUND if not is_released or attempt.is_lost else evidence
    request = priced_request(state.deployment, index, attempt)
    reason = attempt.release_reason
    return MachineEnd(request=request, at=now, began=granted, ended=ended, evidence=evidence, reason=reason)


def unseen_run(
    deployment: str, replica: int, attempt: Attempt, refusal: Refusal | None, now: float
) -> Iterator[MachineEnd]:
    """Yield a fact, a bound, for a request without a trace that may have been granted and have deleted itself.

    What Google refused, or let lapse, never ran.
    """
    has_trace = refusal is not None and refusal.kind != UNANSWERED
    is_unseen = attempt.granted_at is None and attempt.releasing_at is None and not has_trace
    if _ends_itself(attempt) and is_unseen and now - attempt.asked_at >= _LEAST_LIFE:
        yield MachineEnd(
            request=priced_request(deployment, replica, attempt),
            at=now,
            began=attempt.asked_at,
            ended=now,
            evidence=EndEvidence.BOUND,
            reason="no run saw it: it may have run until its own end",
        )


def _ends_itself(attempt: Attempt) -> bool:
    """Return whether the machine of a request may delete itself while no run looks."""
    return any(attempt.spec.get(cause) is not None for cause in EndCause)


def sightings(state: State, observed: Observed, *, releases: bool) -> Iterator[Sighting | MachineEnd]:
    """Yield what an observation shows that the state does not know: machines that run, and those that no run ended.

    The end is that of Google's record. Without one, a slice whose machine is gone ended by now. A machine that is lost
    may come back, unless the caller `releases` what is lost.
    """
    phases = {Phase.HUSK, Phase.LOST} if releases else {Phase.HUSK}
    now = observed.at
    for index, attempt in state.indexed_attempts:
        end, slice_ = observed.ends.get(attempt.name), observed.slices.get(attempt.name)
        request = priced_request(state.deployment, index, attempt)
        if end is not None:
            yield _end_by_google(request, attempt.granted_at, end, now)
        elif slice_ is None:
            continue
        elif slice_.phase is Phase.UP and slice_.operation is None and attempt.granted_at is None:
            created_at = now if slice_.created_at is None else slice_.created_at
            began = max(min(attempt.asked_at, now), min(created_at, now))
            yield Sighting(request=request, at=now, began=began, ends_at=slice_.ends_at)
        elif slice_.phase in phases and not slice_.machines_running and attempt.holds_slice:
            yield MachineEnd(
                request=request,
                at=now,
                began=attempt.granted_at,
                ended=now,
                evidence=EndEvidence.BOUND,
                reason="its machine is gone",
            )


def absences(state: State, observed: Observed, patience: Patience) -> Iterator[MachineEnd]:
    """Yield the end of each request that an observation proves to be gone, and that the state still tracks."""
    context = DecisionContext(observed=observed, patience=patience)
    for index, attempt in state.indexed_attempts:
        classification = classify(attempt, context)
        if attempt.name not in observed.ends and classification.status is AttemptStatus.GONE:
            unseen = unseen_run(state.deployment, index, attempt, classification.refusal, observed.at)
            yield next(unseen, _departure(state, index, attempt, observed.at))


def news(facts: Iterable[Sighting | MachineEnd], recorded: Iterable[LedgerFact]) -> Iterator[Sighting | MachineEnd]:
    """Yield the facts that add to those of the ledger, all about requests that it knows.

    A state may have slices that are not adopted yet.
    """
    by_name: dict[str, list[LedgerFact]] = {}
    for fact in recorded:
        by_name.setdefault(fact.request.name, []).append(fact)
    for fact in facts:
        own = by_name.get(fact.request.name, [])
        reopened = max((each.at for each in own if isinstance(each, StillRuns)), default=0.0)
        same = [each for each in own if isinstance(each, type(fact)) and each.at >= reopened]
        is_better = _is_recorded(fact) and not any(map(_is_recorded, same))
        if own and (not same or is_better):
            yield fact


def _is_recorded(fact: LedgerFact) -> bool:
    return isinstance(fact, MachineEnd) and fact.evidence is EndEvidence.RECORDED


def removal(
    request: PricedRequest, resource: CloudResource, end: SliceEnd | None, *, at: float, now: float
) -> Iterator[LedgerFact]:
    """Yield the facts of a slice that no state tracked until a run requested its deletion at `at`.

    A machine that still ran has run until then, whatever the ledger says. One that was gone before has the `end` of
    Google's record, or ended by now.
    """
    slice_, began = resource.slice, resource.slice.created_at
    if slice_.phase is Phase.HUSK or slice_.is_remainder:
        yield untracked_end(request, began, end, now)
        return
    if slice_.phase is Phase.UP or resource.ref.is_bare:
        yield StillRuns(request=request, at=at, began=began)
    yield MachineEnd(request=request, at=at, began=began, ended=at)


def untracked_end(request: PricedRequest, began: float | None, end: SliceEnd | None, now: float) -> MachineEnd:
    """Return the end of a slice that no state tracks and that is gone: by Google's record, or as a bound from now."""
    if end is not None:
        return _end_by_google(request, began, end, now)
    reason = "no state tracked it, and it is gone"
    return MachineEnd(request=request, at=now, began=began, ended=now, evidence=EndEvidence.BOUND, reason=reason)


def _end_by_google(request: PricedRequest, began: float | None, end: SliceEnd, now: float) -> MachineEnd:
    reason = f"{end.cause}: its machine deleted itself" if end.cause else "not by a run, by Google's record"
    return MachineEnd(request=request, at=now, began=began, ended=end.at, evidence=EndEvidence.RECORDED, reason=reason)


def priced_request(deployment: str, index: int, attempt: Attempt) -> PricedRequest:
    """Return a request with its place, its chips and their list price."""
    kind = catalog.accelerator_type(str(attempt.spec.get("tpu.type", "")))
    return PricedRequest(
        deployment=deployment,
        replica=index,
        name=attempt.name,
        project=attempt.project,
        zone=attempt.zone,
        provisioning=attempt.provisioning,
        backend=attempt.backend,
        type=str(attempt.spec.get("tpu.type") or attempt.spec.get("vm.machine") or ""),
        chips=0 if kind is None else chips_of(attempt),
        model=str(attempt.spec.get("model.id", "")),
        labels={k.removeprefix(_LABELS): str(v) for k, v in attempt.spec.items() if k.startswith(_LABELS)},
        usd_per_hour=prices.usd_per_hour(attempt),
        price_as_of="" if kind is None else catalog.generation(kind.generation).prices_as_of,
        price_source="" if kind is None else _SOURCE,
    )
