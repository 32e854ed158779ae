"""Make lines of the ledger: what a state's change, or an observation, says of the cost of its requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tpudeploy import catalog
from tpudeploy.domain.ending import EndCause
from tpudeploy.domain.ledger import LedgerEvent, LedgerLine
from tpudeploy.domain.slices import Observed, Phase, SliceEnd
from tpudeploy.domain.state import Attempt, State
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.machine_end import past_deletion
from tpudeploy.reconcile.refusals import chips_of

_LABELS = "placement.labels."
_SOURCE = "list price in the catalog of tpudeploy"
_LEAST_LIFE = 300.0  # seconds from a request to the earliest end of a machine that served


def new_requests(before: Iterable[Attempt], after: State, now: float) -> Iterator[LedgerLine]:
    """Yield a line for each request that `after` tracks and the state before did not."""
    names = {attempt.name for attempt in before}
    for index, attempt in after.indexed_attempts:
        if attempt.name not in names:
            yield line_of(LedgerEvent.REQUESTED, after.deployment, index, attempt, now, began=attempt.granted_at)


def grants(before: State, after: State, observed: Observed) -> Iterator[LedgerLine]:
    """Yield a line for each request whose machine an observation showed for the first time to be ready."""
    waiting = {attempt.name for attempt in before.attempts if attempt.granted_at is None}
    for index, attempt in after.indexed_attempts:
        slice_ = observed.slices.get(attempt.name)
        if attempt.name in waiting and attempt.granted_at is not None and slice_ is not None:
            created_at = slice_.created_at if slice_.created_at is not None else attempt.granted_at
            began = max(attempt.asked_at, min(created_at, attempt.granted_at))
            yield line_of(
                LedgerEvent.RUNNING, after.deployment, index, attempt, observed.at, began=began, ends_at=slice_.ends_at
            )


def departures(event: LedgerEvent, before: State, names: Iterable[str], now: float) -> Iterator[LedgerLine]:
    """Yield a line for each of these requests that leave the state `before`."""
    leaving = frozenset(names)
    for index, attempt in before.indexed_attempts:
        if attempt.name in leaving:
            released, granted, ended, is_bound = attempt.releasing_at, attempt.granted_at, None, False
            if granted is not None:
                # A release that came before the grant was refused: the slice was seen to run after it.
                is_released = released is not None and released >= granted
                ended = released if is_released else past_deletion(attempt, before, now)
                is_bound = not is_released or attempt.is_lost
            yield line_of(
                event,
                before.deployment,
                index,
                attempt,
                now,
                began=granted,
                ended=ended,
                is_bound=is_bound,
                reason=attempt.release_reason,
            )


def unseen_run(deployment: str, replica: int, attempt: Attempt, now: float) -> Iterator[LedgerLine]:
    """Yield a line, a bound, for a request without a trace that may have been granted and have deleted itself."""
    is_unseen = attempt.granted_at is None and attempt.releasing_at is None
    if ends_itself(attempt) and is_unseen and now - attempt.asked_at >= _LEAST_LIFE:
        reason = "no run saw it: it may have run until its own end"
        began = attempt.asked_at
        yield line_of(
            LedgerEvent.GONE, deployment, replica, attempt, now, began=began, ended=now, is_bound=True, reason=reason
        )


def ends_itself(attempt: Attempt) -> bool:
    """Return whether the machine of a request may delete itself while no run looks."""
    return any(attempt.spec.get(cause) is not None for cause in EndCause)


def unseen_ends(state: State, observed: Observed) -> Iterator[LedgerLine]:
    """Yield a line for each slice that ended and that no run deleted: by Google's record, or as a bound from now."""
    for index, attempt in state.indexed_attempts:
        end, slice_ = observed.ends.get(attempt.name), observed.slices.get(attempt.name)
        ran = attempt.granted_at is not None and attempt.releasing_at is None
        if end is None and not (ran and slice_ is not None and slice_.phase is Phase.HUSK):
            continue
        reason = "its machine is gone"
        if end is not None:
            reason = f"{end.cause}: its machine deleted itself" if end.cause else "not by a run, by Google's record"
        yield line_of(
            LedgerEvent.GONE,
            state.deployment,
            index,
            attempt,
            observed.at,
            began=attempt.granted_at,
            ended=observed.at if end is None else end.at,
            is_bound=end is None,
            is_recorded=end is not None,
            reason=reason,
        )


def removal(
    deployment: str, replica: int, attempt: Attempt, now: float, *, began: float | None, still_ran: bool = False
) -> Iterator[LedgerLine]:
    """Yield the lines of a slice that no state tracked until it was deleted at `now`, at the request of a run.

    `still_ran`: its request was gone before, and a line says so.
    """
    if still_ran:
        reason = "its request is gone, and its machine is not"
        yield line_of(LedgerEvent.RUNNING, deployment, replica, attempt, now, began=began, reason=reason)
    yield line_of(LedgerEvent.GONE, deployment, replica, attempt, now, began=began, ended=now)


def untracked_end(line: LedgerLine, end: SliceEnd | None, now: float) -> LedgerLine:
    """Return the line of a slice that no state tracks and that is gone: by Google's record, or as a bound from now."""
    return replace(
        line,
        at=now,
        event=LedgerEvent.GONE,
        ended=now if end is None else end.at,
        is_bound=end is None,
        is_recorded=end is not None,
        reason="no state tracked it, and it is gone",
    )


def line_of(
    event: LedgerEvent,
    deployment: str,
    index: int,
    attempt: Attempt,
    now: float,
    *,
    began: float | None = None,
    ended: float | None = None,
    ends_at: float | None = None,
    is_bound: bool = False,
    is_recorded: bool = False,
    reason: str = "",
) -> LedgerLine:
    """Return a line about a request, with its place, its chips and their list price."""
    kind = catalog.accelerator_type(str(attempt.spec.get("tpu.type", "")))
    return LedgerLine(
        at=now,
        event=event,
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
        began=began,
        ended=ended,
        ends_at=ends_at,
        is_bound=is_bound,
        is_recorded=is_recorded,
        reason=reason,
    )
