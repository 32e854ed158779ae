"""Where to request a slice next: pure policy over the profile's places, our requests, the refusals and earlier results.

A queued request holds a place in its queue, and keeps it. Where nothing is queued, Google answers at once: those places
are swept, each one again when its refusal has lapsed. Where the profile allows both, each kind has its share of the
requests: a queue misses no window of its zone, a sweep sees more zones than there are requests. A zone that a queue
watches is swept seldom at the same API, because a window there would be granted to both. The other API is swept as if
there were no queue.

Where more places are due than may be requested, by the number of requests or by the creates per minute, the sweep goes
round: first the places in which a refusal has just said that there is capacity; then those that were never requested,
by preference; then the one that was looked at longest ago. By preference alone the last places of the profile would
never be reached, because the first ones are due again before the round is over.

A grant is worth what it lasts. A place whose landings failed is held back for growing times, and then waits for its
turn like any other (reconcile/failed_landings.py). A slice there is one request among others until it serves: the
search continues around it, and no place in another queue is given up for it.

Money limits the number of requests: all of them may be granted in the same minute (reconcile/prices.py). A search
begins with a few, and has as many open as places were full lately or stay silent: the more there are, the fewer
requests are granted together. A place without a known price comes last, unless the profile names its zone. A zone that
answers slowly is requested seldom, so that it does not hold up the others (engine/slow_zones.py).

Why: decisions 18, 58 and 80 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum, auto
from math import inf
from types import MappingProxyType

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Area, Candidate, Deployment, Place, Provisioning
from tpudeploy.domain.names import Zone
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import RefusalScope
from tpudeploy.domain.state import Attempt, Record, RefusalRecord
from tpudeploy.reconcile.capacity_score import preference
from tpudeploy.reconcile.failed_landings import doubtful_places, effective_refusals
from tpudeploy.reconcile.prices import has_room
from tpudeploy.reconcile.refusals import closes, covers, places_we_filled, standing_refusals

CapacityScores = Mapping[Place, float]

# Where nothing is free, Google refuses spot and on-demand at once; these wait (cloud_tpu: flex-start, DWS).
QUEUED = frozenset({Provisioning.FLEX_START, Provisioning.RESERVED})
# Seconds between two sweeps of a zone that a queue watches.
_WATCHED = 1200.0
# Seconds for which a refusal's word about capacity counts: windows last minutes.
_HINT = 480.0
# Seconds after which a request without a grant counts as silent: a place that has capacity grants one sooner.
_SILENT = 120.0


def allows(deployment: Deployment, attempt: Attempt) -> bool:
    """Return whether the profile (still) allows the place of this attempt."""
    return any(candidate.place == attempt.place for candidate in deployment.candidates)


def next_places(
    deployment: Deployment,
    record: Record,
    waiting: Collection[Attempt],
    *,
    unexplained: Iterable[Place] = (),
    resting: Mapping[Area, float] = MappingProxyType({}),
    scores: CapacityScores,
    now: float,
    patience: Patience,
) -> tuple[Candidate, ...]:
    """Return the places to request now, best first, beside `waiting`: the requests that may still be granted.

    `unexplained` are places whose request was refused, and whose refusal is not known yet. `resting` are zones
    that answer slowly, with the moment until which nothing is requested there.
    """
    active_refusals = standing_refusals(deployment.candidates, record, now, patience)
    doubtful = doubtful_places(record, now)
    holds = effective_refusals(deployment.candidates, record, now, patience)
    requested = [a.place for a in waiting]
    unavailable = {*requested, *unexplained}
    most = _allowed_requests(deployment, record, waiting, now)
    shares = _shares(deployment, most)
    chips = deployment.accelerator.chips
    kinds = [_kind(a.provisioning) for a in waiting]
    watched_zones = _watched_zones(waiting)
    preferred = order_by_preference(deployment, record.home, scores, doubtful, places_we_filled(record))
    choices: list[Candidate] = []
    is_priced_left = False
    for candidate in _order_sweep(deployment, preferred, record, doubtful, holds, now=now):
        kind = _kind(candidate.provisioning)
        # A request of ours is there already.
        if candidate.place in unavailable:
            continue
        # A queue of ours watches the zone, and a window there would be granted to both; or its calls would hold up the
        # search in all other places.
        rests_until = resting.get((candidate.zone, candidate.backend), now)
        if max(rests_until, _sweep_resumes_at(candidate, record, watched_zones)) > now:
            continue
        # A request would certainly be refused, alone or beside the choices so far, which share its quota.
        if any(_is_full(r, candidate, chips, choices, record.attempts) for r in active_refusals):
            continue
        is_unpriced = _is_unpriced(deployment, candidate)
        # Nobody knows what it costs, and others are to be had.
        if is_unpriced and is_priced_left:
            continue
        is_priced_left |= not is_unpriced
        # As many requests are open as are allowed now, or the other kind has a right to those that are left.
        if len(kinds) >= most or kinds.count(kind) >= shares[kind]:
            continue
        if not has_room(deployment, [*requested, *(c.place for c in choices)], candidate.place):
            continue
        choices.append(candidate)
        kinds.append(kind)
        if kind is _RequestKind.QUEUED:
            watched_zones[candidate.zone, candidate.backend] = now
    return tuple(choices)


def order_by_preference(
    deployment: Deployment,
    home: Zone | None,
    scores: CapacityScores,
    doubtful: Collection[Place] = (),
    unanswered: Collection[Place] = (),
) -> tuple[Candidate, ...]:
    """Return the places in the order of preference: home, then by model, price and score; doubtful places last.

    Places without a known price come after all others, unless the profile names zones. `zones: any` prefers no zone.
    `unanswered` are places that only our own chips kept us out of. They come before others of their model: every other
    place has refused since, and would leave a husk that keeps us out of them again.
    """
    is_listed = _lists_zones(deployment)
    models = list(dict.fromkeys(c.provisioning for c in deployment.candidates))

    def rank(row: tuple[int, Candidate]) -> tuple[bool, bool, bool, int, bool, float, float, int]:
        number, candidate = row
        by_price = preference(candidate.usd_per_chip_hour, scores.get(candidate.place, 0.0), is_listed=is_listed)
        model = models.index(candidate.provisioning)
        return (
            _is_unpriced(deployment, candidate),
            candidate.place in doubtful,
            candidate.zone != home,
            model,
            candidate.place not in unanswered,
            *by_price,
            number,
        )

    return tuple(candidate for _, candidate in sorted(enumerate(deployment.candidates), key=rank))


def _lists_zones(deployment: Deployment) -> bool:
    return deployment.attributes.get("placement.zones") != "any"


def _is_unpriced(deployment: Deployment, candidate: Candidate) -> bool:
    """Return whether a place has no known price, and the profile doesn't name its zone."""
    return candidate.usd_per_chip_hour is None and not _lists_zones(deployment)


def _allowed_requests(deployment: Deployment, record: Record, waiting: Iterable[Attempt], now: float) -> int:
    """Return how many requests may be open now: one for each full or silent place, a few at first.

    With as many refusals as requests, fewer than one of these is granted on average.
    """
    first = deployment.first_requests
    if first is None:
        return deployment.max_parallel_requests
    full = {r.place for r in record.refusals if r.scope is RefusalScope.PAIR and now - r.at < _HINT}
    silent = {a.place for a in waiting if _is_silent(a, now)}
    return min(deployment.max_parallel_requests, max(first, len(full | silent)))


def _is_silent(attempt: Attempt, now: float) -> bool:
    return attempt.granted_at is None and attempt.provisioning_at is None and now - attempt.asked_at >= _SILENT


def next_silence(deployment: Deployment, record: Record, waiting: Collection[Attempt], now: float) -> float | None:
    """Return when the first of these requests counts as silent, which may allow another one (epoch seconds).

    Return None where as many are open as the profile allows, or fewer than are allowed now.
    """
    if len(waiting) >= deployment.max_parallel_requests:
        return None
    if len(waiting) < _allowed_requests(deployment, record, waiting, now):
        return None
    fresh = (a.asked_at + _SILENT for a in waiting if not _is_silent(a, now))
    return min(fresh, default=None)


def _order_sweep(
    deployment: Deployment,
    places: Collection[Candidate],
    record: Record,
    doubtful: Collection[Place],
    holds: Iterable[RefusalRecord],
    *,
    now: float,
) -> list[Candidate]:
    """Put the places that are swept in the order of a round: home first, a doubtful place once after all others.

    Those without a known price stay behind all that have one.

    Only a refusal of the place itself is a look at it. After one that is about more (a quota, a limit on requests per
    minute), the place comes first again, because whether it has capacity was not answered. Queues keep their order.
    """
    unanswered = places_we_filled(record)
    last_looks: dict[Place, float] = {}
    for refused in record.refusals:
        place = refused.place
        if refused.scope is RefusalScope.PAIR and place not in unanswered:
            last_looks[place] = max(refused.at, last_looks.get(place, -inf))

    hinted = _hinted_places(record, last_looks, now)

    # Of a doubtful place, the end of its hold counts as a look: it is requested once the others have had their turn.
    for refused in holds:
        if refused.place in doubtful and refused.landed:
            last_looks[refused.place] = max(refused.until, last_looks.get(refused.place, -inf))

    def turn(candidate: Candidate) -> tuple[bool, bool, bool, float]:
        place = candidate.place
        is_trusted = place not in doubtful
        is_hinted, is_home = is_trusted and place in hinted, is_trusted and place.zone == record.home
        return (_is_unpriced(deployment, candidate), not is_hinted, not is_home, last_looks.get(place, -inf))

    sweeps = iter(sorted((p for p in places if p.provisioning not in QUEUED), key=turn))
    return [p if p.provisioning in QUEUED else next(sweeps) for p in places]


def _hinted_places(record: Record, last_looks: Mapping[Place, float], now: float) -> set[Place]:
    """Return the places that have capacity, by a recent refusal of another one, and were not looked at since."""
    places: set[Place] = set()
    for refused in record.refusals:
        # A window of capacity lasts minutes, so an older refusal says nothing about now.
        if now - refused.at < _HINT:
            hinted = {Place(zone, refused.provisioning, refused.backend) for zone in refused.zones_available}
            places |= {place for place in hinted if refused.at > last_looks.get(place, -inf)}
    return places


def next_opening(
    deployment: Deployment,
    record: Record,
    waiting: Iterable[Attempt],
    now: float,
    patience: Patience,
    *,
    resting: Mapping[Area, float] = MappingProxyType({}),
) -> float | None:
    """Return when the first place that is refused now may be requested again (epoch seconds), or None without one."""
    requests = list(waiting)
    requested_places = {a.place for a in requests}
    watched_zones = _watched_zones(requests)
    active_refusals = standing_refusals(deployment.candidates, record, now, patience)
    openings = (
        max(
            _refused_until(c, active_refusals, now),
            _sweep_resumes_at(c, record, watched_zones),
            resting.get((c.zone, c.backend), now),
        )
        for c in deployment.candidates
        if c.place not in requested_places
    )
    return min((opening for opening in openings if opening > now), default=None)


def sweep_resumes_at(place: Candidate, record: Record, waiting: Iterable[Attempt]) -> float | None:
    """Return until when a queue of ours in that zone keeps the sweep away (epoch seconds, past or not), or None."""
    until = _sweep_resumes_at(place, record, _watched_zones(waiting))
    return None if until == -inf else until


def is_closed(
    candidates: Iterable[Candidate], refusals: Collection[RefusalRecord], now: float, patience: Patience
) -> bool:
    """Return whether every place is refused for so long that a person, not time, must open one."""
    # A failed landing passes with time.
    places, lasting = tuple(candidates), [r for r in refusals if not r.landed]
    return bool(places) and all(_refused_until(c, lasting, now) - now > patience.refused for c in places)


def _watched_zones(waiting: Iterable[Attempt]) -> dict[tuple[Zone, Backend], float]:
    """Return the zones in which one of our requests queues, by the API of that queue, and since when."""
    return {(a.zone, a.backend): a.asked_at for a in waiting if a.provisioning in QUEUED}


def _sweep_resumes_at(
    candidate: Candidate, record: Record, watched_zones: Mapping[tuple[Zone, Backend], float]
) -> float:
    """Return until when a zone that a queue watches is not swept, in seconds since the epoch; -inf for any other.

    The two may draw from different stock (flex-start has its own scheduler), so the zone is swept seldom, not never.
    """
    since = watched_zones.get((candidate.zone, candidate.backend))
    if since is None or candidate.provisioning in QUEUED:
        return -inf
    refused = (r.at for r in record.refusals if r.place == candidate.place)
    return max(since, *refused, -inf) + _WATCHED


def _refused_until(place: Candidate, refusals: Iterable[RefusalRecord], now: float) -> float:
    return max((r.until for r in refusals if r.until > now and covers(r, place)), default=now)


def _is_full(
    refused: RefusalRecord,
    place: Candidate,
    chips: int,
    choices: Iterable[Candidate],
    own_attempts: Collection[Attempt],
) -> bool:
    """Return whether `place` would refuse a slice of `chips`, beside the requests that are chosen already."""
    chosen_chips = sum(chips for c in choices if covers(refused, c))
    return closes(refused, place, chosen_chips + chips, own_attempts)


class _RequestKind(Enum):
    """Whether a request waits in a queue of Google's, or is refused at once and sweeps the zones."""

    QUEUED = auto()
    SWEPT = auto()


def _kind(provisioning: Provisioning) -> _RequestKind:
    return _RequestKind.QUEUED if provisioning in QUEUED else _RequestKind.SWEPT


def _shares(deployment: Deployment, most: int) -> Mapping[_RequestKind, int]:
    """Return how many of `most` requests of each kind may wait.

    Half of them each, unless one kind has too few places.
    """
    queues = sum(c.provisioning in QUEUED for c in deployment.candidates)
    sweeps = len(deployment.candidates) - queues
    # A single request goes to the preferred place, whatever its kind; and one kind alone shares with nobody.
    if most == 1 or not queues or not sweeps:
        return dict.fromkeys(_RequestKind, most)
    queued = min(queues, max(most // 2, most - sweeps))
    return {_RequestKind.QUEUED: queued, _RequestKind.SWEPT: most - queued}
