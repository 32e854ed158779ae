"""Where to ask next: pure policy over what the profile allows, what is held, what was refused, and recent luck.

A request that is queued holds a place, and keeps it. One that fails fast is answered at once: its pairs are swept,
each again when its refusal has lapsed. Where the profile allows both, each kind has its share of the requests: a queue
misses no window of its zone, a sweep sees more zones than there are requests. What a queue watches is swept seldom: a
window there would be granted to both.

Where more places are due than may be asked, by the number of requests or by the creates a minute, the sweep goes round:
first what was never asked, by preference; then what was looked at longest ago. By preference alone the last places of
the profile would never be seen again, for the first ones are due again sooner than the round is over.

A grant is worth what it lasts. A place whose landings failed is held back for growing times and comes last
(reconcile/landings.py). A slice there is one request among others until it serves: the hunt continues around it, and no
place in another queue is given up for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import inf

from tpudeploy.domain.deployment import Candidate, Deployment, Provisioning
from tpudeploy.domain.names import Zone
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import Scope
from tpudeploy.domain.state import Attempt, Record, Refused
from tpudeploy.reconcile.landings import Pair, doubtful_places, pair
from tpudeploy.reconcile.luck import preference
from tpudeploy.reconcile.refusals import closes, covers, kept_out, standing_refusals

Luck = Mapping[Pair, float]

# Spot and on-demand are answered at once where nothing is free; these wait for it (cloud_tpu: flex-start, DWS).
QUEUED = frozenset({Provisioning.FLEX_START, Provisioning.RESERVED})
# Seconds between two sweeps of a zone that a queue watches.
_WATCHED = 1200.0


def allows(deployment: Deployment, attempt: Attempt) -> bool:
    """Whether the profile (still) allows the place where this attempt asked."""
    zone, model = pair(attempt)
    return any(c.provisioning is model and c.zone == zone for c in deployment.candidates)


def next_places(
    deployment: Deployment,
    record: Record,
    waiting: Collection[Attempt],
    *,
    unsaid: Iterable[Pair] = (),
    luck: Luck,
    now: float,
    patience: Patience,
) -> tuple[Candidate, ...]:
    """Where to ask now, best first, beside `waiting`: those of this replica's requests that may still be granted.

    `unsaid` are pairs that are refusing, and have yet to say why.
    """
    standing = standing_refusals(deployment.candidates, record, now, patience)
    doubtful = doubtful_places(record, now)
    taken = {pair(a) for a in waiting} | set(unsaid)
    shares = _shares(deployment)
    chips = deployment.accelerator.chips
    asked = [a.provisioning in QUEUED for a in waiting]
    watched = _watched(waiting)
    chosen: list[Candidate] = []
    for place in _in_turn(ranked(deployment, record.home, luck, doubtful, kept_out(record)), record, doubtful):
        if len(asked) >= deployment.max_parallel_requests:
            break
        queues = place.provisioning in QUEUED
        if pair(place) in taken or asked.count(queues) >= shares[queues]:
            continue
        if _rests_until(place, record, watched) > now:
            continue
        if not any(_is_full(r, place, chips, chosen, record.attempts) for r in standing):
            chosen.append(place)
            asked.append(queues)
            if queues:
                watched[place.zone] = now
    return tuple(chosen)


def ranked(
    deployment: Deployment,
    home: Zone | None,
    luck: Luck,
    doubtful: Collection[Pair] = (),
    unanswered: Collection[Pair] = (),
) -> tuple[Candidate, ...]:
    """Home first; then by preference, price, and luck; doubtful places last. `zones: any` prefers none.

    `unanswered` are places that only chips of ours kept us out of. They come before others of their kind: what else
    could be asked now has refused since, and leaves a husk that would keep us out of them again.
    """
    is_listed = deployment.attributes.get("placement.zones") != "any"
    models = list(dict.fromkeys(c.provisioning for c in deployment.candidates))

    def rank(row: tuple[int, Candidate]) -> tuple[bool, bool, int, bool, float, float, int]:
        number, place = row
        wish = preference(place.usd_per_chip_hour, luck.get(pair(place), 0.0), is_listed=is_listed)
        model = models.index(place.provisioning)
        return (pair(place) in doubtful, place.zone != home, model, pair(place) not in unanswered, *wish, number)

    return tuple(place for _, place in sorted(enumerate(deployment.candidates), key=rank))


def _in_turn(places: Collection[Candidate], record: Record, doubtful: Collection[Pair]) -> list[Candidate]:
    """Put those that fail fast in the order of a round: home first, doubtful places last, as in their rank.

    Only what a place said of itself is a look at it: after a refusal that speaks of more (a quota, a limit on requests
    a minute), it comes first again, for what it has was never said. What queues stays where it is.
    """
    unanswered = kept_out(record)
    looks: dict[Pair, float] = {}
    for refused in record.refusals:
        place = pair(refused)
        if refused.scope is Scope.PAIR and place not in unanswered:
            looks[place] = max(refused.at, looks.get(place, -inf))

    def turn(place: Candidate) -> tuple[bool, bool, float]:
        return (pair(place) in doubtful, place.zone != record.home, looks.get(pair(place), -inf))

    sweeps = iter(sorted((p for p in places if p.provisioning not in QUEUED), key=turn))
    return [p if p.provisioning in QUEUED else next(sweeps) for p in places]


def opens_at(
    deployment: Deployment, record: Record, waiting: Iterable[Attempt], now: float, patience: Patience
) -> float | None:
    """When the first pair that is refused now may be asked again, in seconds since the epoch; None where none is."""
    known = list(waiting)
    taken = {pair(a) for a in known}
    watched = _watched(known)
    standing = standing_refusals(deployment.candidates, record, now, patience)
    until = (
        max(_until(c, standing, now), _rests_until(c, record, watched))
        for c in deployment.candidates
        if pair(c) not in taken
    )
    return min((u for u in until if u > now), default=None)


def rests_until(place: Candidate, record: Record, waiting: Iterable[Attempt]) -> float | None:
    """Until when it is not asked because one of `waiting` queues there, in seconds since the epoch, past or not."""
    until = _rests_until(place, record, _watched(waiting))
    return None if until == -inf else until


def is_closed(candidates: Iterable[Candidate], refusals: Collection[Refused], now: float, patience: Patience) -> bool:
    """Whether every pair is refused for so long that a person, not time, must open one. A failed landing passes."""
    places, verdicts = tuple(candidates), [r for r in refusals if not r.landed]
    return bool(places) and all(_until(c, verdicts, now) - now > patience.refused for c in places)


def _watched(waiting: Iterable[Attempt]) -> dict[Zone, float]:
    """The zones in which one queues, and since when."""
    return {a.zone: a.asked_at for a in waiting if a.provisioning in QUEUED}


def _rests_until(place: Candidate, record: Record, watched: Mapping[Zone, float]) -> float:
    """Until when a zone that a queue watches is not swept, in seconds since the epoch. The two may draw from different
    stock (flex-start has its own scheduler), so it is not left out.
    """
    since = watched.get(place.zone)
    if since is None or place.provisioning in QUEUED:
        return -inf
    refused = (r.at for r in record.refusals if (r.zone, r.provisioning) == pair(place))
    return max(since, *refused, -inf) + _WATCHED


def _until(place: Candidate, refusals: Iterable[Refused], now: float) -> float:
    return max((r.until for r in refusals if r.until > now and covers(r, place)), default=now)


def _is_full(
    refused: Refused, place: Candidate, chips: int, chosen: Iterable[Candidate], held: Collection[Attempt]
) -> bool:
    beside = sum(chips for c in chosen if covers(refused, c))
    return closes(refused, place, beside + chips, held)


def _shares(deployment: Deployment) -> Mapping[bool, int]:
    """How many requests may wait in queues (True), how many may sweep: half each, unless either has too few pairs."""
    most = deployment.max_parallel_requests
    queues = sum(c.provisioning in QUEUED for c in deployment.candidates)
    sweeps = len(deployment.candidates) - queues
    if most == 1 or not queues or not sweeps:
        return {True: most, False: most}
    queued = min(queues, max(most // 2, most - sweeps))
    return {True: queued, False: most - queued}
