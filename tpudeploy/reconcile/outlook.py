"""How one replica stands with each of its places, from what is remembered and what one look showed."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Candidate, Deployment
from tpudeploy.domain.outlook import Place, PlaceState
from tpudeploy.domain.slices import Observed, Phase, Slice
from tpudeploy.domain.state import Attempt, Record, Refused
from tpudeploy.reconcile.decide import matches
from tpudeploy.reconcile.fate import Fate, Judged, Moment, judge
from tpudeploy.reconcile.landings import pair
from tpudeploy.reconcile.placement import rests_until
from tpudeploy.reconcile.refusals import closes, standing_refusals

# Of a request that waits; one whose machine is late (lost, or not there yet) counts as being made.
_WAITING = {Phase.CREATING: PlaceState.ASKED, Phase.QUEUED: PlaceState.QUEUED}


def outlook(deployment: Deployment | None, record: Record, moment: Moment) -> tuple[Place, ...]:
    """Where it asked; and, while it looks for a slice, where else it may ask: nowhere without a deployment."""
    judged = [j for a in record.attempts if (j := judge(a, moment)).fate not in {Fate.GONE, Fate.REFUSED}]
    places = tuple(_asked(j, moment.observed) for j in judged)
    if deployment is None or any(j.fate is Fate.UP and matches(deployment, j.attempt) for j in judged):
        return places
    return (*places, *_others(deployment, record, judged, moment))


def _asked(judged: Judged, observed: Observed) -> Place:
    attempt, state = judged.attempt, _state(judged)
    since, until = _span(state, attempt, judged.slice)
    return Place(
        zone=attempt.zone,
        provisioning=attempt.provisioning,
        state=state,
        name=attempt.name,
        why=attempt.release_reason or _said(judged, observed),
        since=since,
        until=until,
    )


def _said(judged: Judged, observed: Observed) -> str:
    """The machine's last word, else Google's; nothing of a request that nobody has seen yet."""
    report = observed.reports.get(judged.attempt.name)
    if judged.fate is Fate.UP and report is not None:
        return report.detail or report.phase
    if judged.slice is not None:
        return judged.slice.raw_state
    return "" if judged.fate is Fate.HIDDEN else judged.reason


def _state(judged: Judged) -> PlaceState:
    match judged.fate:
        case Fate.HIDDEN:
            return PlaceState.ASKED
        case Fate.WAITING if judged.slice is not None:
            return _WAITING.get(judged.slice.phase, PlaceState.PROVISIONING)
        case Fate.WAITING:  # its zone does not answer
            return PlaceState.QUEUED if judged.attempt.provisioning_at is None else PlaceState.PROVISIONING
        case Fate.UP:
            return PlaceState.UP
    return PlaceState.LEAVING


def _span(state: PlaceState, attempt: Attempt, found: Slice | None) -> tuple[float | None, float | None]:
    """Since when, and until when at most."""
    match state:
        case PlaceState.UP:
            return attempt.granted_at, None if found is None else found.ends_at
        case PlaceState.PROVISIONING:
            return attempt.provisioning_at, None
        case PlaceState.LEAVING:
            return attempt.releasing_at, None
    return attempt.asked_at, attempt.expires_at


def _others(deployment: Deployment, record: Record, judged: list[Judged], moment: Moment) -> Iterator[Place]:
    taken = {pair(j.attempt) for j in judged}
    waiting = [j.attempt for j in judged if j.fate in {Fate.HIDDEN, Fate.WAITING}]
    for place in deployment.candidates:
        if pair(place) not in taken:
            rests = rests_until(place, record, waiting)
            yield _other(place, _refusal(deployment, record, place, moment), rests)


def _refusal(deployment: Deployment, record: Record, place: Candidate, moment: Moment) -> Refused | None:
    """The last that speaks against it, else what was last said there: that no longer stands, but is remembered."""
    chips = deployment.accelerator.chips
    standing = standing_refusals(deployment.candidates, record, moment.now, moment.patience)
    against = [r for r in standing if closes(r, place, chips, record.attempts)]
    own = [r for r in record.refusals if (r.zone, r.provisioning) == pair(place)]
    return max(against or own, key=lambda r: r.until, default=None)


def _other(place: Candidate, last: Refused | None, rests: float | None) -> Place:
    if last is None:
        return Place(zone=place.zone, provisioning=place.provisioning, state=PlaceState.FREE, until=rests)
    return Place(
        zone=place.zone,
        provisioning=place.provisioning,
        state=PlaceState.REFUSED,
        why=last.message,
        kind=last.kind,
        since=last.at,
        until=last.until if rests is None else max(last.until, rests),
    )
