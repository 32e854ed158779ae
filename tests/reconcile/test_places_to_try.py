"""Where a replica is requested next, and when: what was refused, by whom, and how long ago. No cloud, no clock."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import inf

import pytest
from reconcile.cases import (
    FLEX,
    HOUR,
    INSTANCES,
    MINUTE,
    NOW,
    ON_DEMAND,
    PATIENCE,
    RESERVED,
    SPOT,
    TPU_API,
    ZONES,
    A,
    B,
    C,
    D,
    attempt,
    candidate,
    deployment,
    failed_landing,
    granted,
    queued,
    record,
    refused,
)

from tpudeploy.domain.deployment import Area, Candidate, Place, Provisioning
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import RefusalScope
from tpudeploy.domain.state import Attempt, Record, RefusalRecord
from tpudeploy.reconcile.placement import (
    allows,
    is_closed,
    next_opening,
    next_places,
    order_by_preference,
    sweep_resumes_at,
)

Places = Sequence[Place]


def everywhere(*models: Provisioning, zones: Collection[Zone] = ZONES) -> tuple[Candidate, ...]:
    return tuple(candidate(zone, model) for model in models for zone in zones)


def tried(
    state: Record,
    *,
    requests: int = 2,
    models: tuple[Provisioning, ...] = (SPOT,),
    waiting: Collection[Attempt] = (),
    chips: int = 8,
    zones: Collection[Zone] = ZONES,
    unexplained: Places = (),
    scores: Mapping[Place, float] | None = None,
) -> list[Place]:
    """Return the places that are requested next."""
    target = deployment(everywhere(*models, zones=zones), requests=requests, chips=chips)
    places = next_places(
        target, state, waiting, unexplained=unexplained, scores=scores or {}, now=NOW, patience=PATIENCE
    )
    return [place.place for place in places]


@pytest.mark.parametrize(
    ("refusals", "zones"),
    [
        pytest.param([], [A, B], id="by preference, where nothing was requested yet"),
        pytest.param([refused(A, 2), refused(B, 2)], [C, D], id="what was never requested comes first"),
        pytest.param(
            [refused(A, 2), refused(B, 5), refused(C, 4), refused(D, 3)],
            [B, C],
            id="then what was requested longest ago",
        ),
        pytest.param(
            [refused(A, 9), refused(A, 2), refused(B, 5), refused(C, 4), refused(D, 3)],
            [B, C],
            id="the last of several refusals counts",
        ),
        pytest.param(
            [refused(A, 2), refused(A, 9), refused(B, 5), refused(C, 4), refused(D, 3)],
            [B, C],
            id="the last of several refusals counts, in whatever order they are kept",
        ),
        pytest.param([refused(A, lasts=1)], [B, C], id="not what is refused now"),
        pytest.param([refused(A, 1, zones_available=(D, C))], [C, D], id="zones that a refusal names come first"),
        pytest.param(
            [refused(A, 1, zones_available=(D,)), refused(D, 0.5)], [B, C], id="but not what was looked at since"
        ),
        pytest.param([refused(A, 1, zones_available=(D,)), refused(D, 2)], [D, B], id="what was looked at before"),
        pytest.param([refused(A, 8, zones_available=(D,))], [B, C], id="and not what it named eight minutes ago"),
        pytest.param([refused(A, 7.9, zones_available=(D,))], [D, B], id="windows last minutes"),
        pytest.param([refused(A, 1, zones_available=(D,), provisioning=FLEX)], [A, B], id="it speaks of its own model"),
        pytest.param([refused(A, 1, zones_available=(D,), backend=INSTANCES)], [A, B], id="and of its own API"),
        pytest.param(
            [refused(A, 1, zones_available=(D,)), failed_landing(D, minutes_ago=200)],
            [B, C],
            id="a doubtful place stays doubtful, whatever a refusal says",
        ),
        pytest.param([refused(A, 2, lasts=-0.01)], [B, C], id="what was refused comes after what was not"),
        pytest.param(
            [refused(A, scope=RefusalScope.REGION, lasts=1)], [C, D], id="not what a refusal of the whole region covers"
        ),
        pytest.param([refused(A, scope=RefusalScope.PROJECT, lasts=1)], [], id="nothing, where the project is refused"),
        pytest.param(
            [
                refused(A, 5),
                refused(B, 9),
                refused(C, 4),
                refused(D, 3),
                refused(B, 2, scope=RefusalScope.REGION_QUOTA, held=8),
            ],
            [B, A],
            id="a place that our own chips kept us out of has not been seen yet",
        ),
        pytest.param(
            [
                refused(A, 5),
                refused(B, 9),
                refused(C, 4),
                refused(D, 3),
                refused(B, 2, scope=RefusalScope.REGION_QUOTA),
            ],
            [B, A],
            id="a full quota says nothing of what a place has",
        ),
        pytest.param(
            [refused(zone, lasts=1) for zone in (A, B, C)],
            [D],
            id="the only place that does not refuse",
        ),
    ],
)
def test_the_sweep_goes_round_the_places(refusals: Sequence[RefusalRecord], zones: Sequence[Zone]) -> None:
    assert tried(record(refusals=refusals)) == [Place(zone, SPOT) for zone in zones]


@pytest.mark.parametrize("scope", set(RefusalScope) - {RefusalScope.PAIR})
def test_a_refusal_that_covers_more_than_one_place_says_nothing_of_what_that_place_has(scope: RefusalScope) -> None:
    assert tried(record(refusals=[refused(A, 2, scope=scope)])) == [Place(A, SPOT), Place(B, SPOT)]


def test_home_is_requested_before_the_round_goes_on() -> None:
    assert tried(record(home=A, refusals=[refused(A, 2), refused(B, 5)])) == [Place(A, SPOT), Place(C, SPOT)]


def test_a_place_whose_landing_failed_comes_after_all_others() -> None:
    lapsed = failed_landing(A, minutes_ago=30, held_for=29)
    state = record(refusals=[lapsed, refused(B, 2), refused(C, 3)])
    assert tried(state, requests=4) == [Place(D, SPOT), Place(C, SPOT), Place(B, SPOT), Place(A, SPOT)]
    assert tried(record(home=A, refusals=[lapsed, refused(B, 2)]), requests=4)[-1] == Place(A, SPOT)


def test_a_place_whose_landing_failed_has_its_turn_once_the_others_have_had_theirs() -> None:
    lapsed = failed_landing(A, minutes_ago=30, held_for=29)
    state = record(refusals=[lapsed, refused(B, 0.5, lasts=0), refused(C, 0.6, lasts=0), refused(D, 0.7, lasts=0)])
    assert tried(state) == [Place(A, SPOT), Place(D, SPOT)]


def test_a_place_whose_landing_failed_is_not_put_first_because_another_refusal_names_it() -> None:
    lapsed = failed_landing(A, minutes_ago=30, held_for=29)
    named = replace(refused(B, 0.5, lasts=0), zones_available=(A,))
    assert tried(record(refusals=[lapsed, named]), requests=4)[-2:] == [Place(A, SPOT), Place(B, SPOT)]


def test_no_more_is_requested_than_all_slices_together_may_cost() -> None:
    costs = {A: 1.0, B: 3.0, C: 2.0, D: 1.0}
    places = [candidate(zone, SPOT, usd) for zone, usd in costs.items()]
    target = replace(deployment(places, requests=4), search_usd_per_hour=32.0)
    chosen = next_places(target, record(), [], scores={}, now=NOW, patience=PATIENCE)
    assert [each.zone for each in chosen] == [A, B], "8 and 24 dollars an hour: the others come later"
    beside = next_places(target, record(), [attempt(B, SPOT)], scores={}, now=NOW, patience=PATIENCE)
    assert [each.zone for each in beside] == [A]
    small = replace(target, search_usd_per_hour=20.0)
    assert [
        each.zone for each in next_places(small, record(), [attempt(A)], scores={}, now=NOW, patience=PATIENCE)
    ] == [D], "what is too expensive beside the others does not keep out what is not"


@pytest.mark.parametrize(
    ("resting", "places"),
    [
        pytest.param({(A, TPU_API): NOW + 1}, [Place(B, SPOT), Place(C, SPOT)], id="not before it has rested"),
        pytest.param({(A, TPU_API): NOW}, [Place(A, SPOT), Place(B, SPOT)], id="once it has rested"),
        pytest.param({(A, INSTANCES): NOW + 1}, [Place(A, SPOT), Place(B, SPOT)], id="the other API is slow there"),
    ],
)
def test_a_zone_that_answers_slowly_is_left_out_for_a_while(resting: Mapping[Area, float], places: Places) -> None:
    target = deployment(everywhere(SPOT))
    chosen = next_places(target, record(), [], resting=resting, scores={}, now=NOW, patience=PATIENCE)
    assert [each.place for each in chosen] == places


def test_the_end_of_a_rest_is_waited_for_like_that_of_a_refusal() -> None:
    target = deployment(everywhere(SPOT, zones=(A, B)))
    rest = {(A, TPU_API): NOW + 20}
    state = record(refusals=[refused(B, 0, lasts=1)])
    assert next_opening(target, state, [], NOW, PATIENCE, resting=rest) == NOW + 20


@pytest.mark.parametrize(
    ("requests", "models", "places"),
    [
        pytest.param(1, (FLEX, SPOT), [Place(A, FLEX)], id="one request goes to the preferred model"),
        pytest.param(2, (FLEX, SPOT), [Place(A, FLEX), Place(B, SPOT)], id="half of two requests queue"),
        pytest.param(
            3,
            (FLEX, SPOT),
            [Place(A, FLEX), Place(B, SPOT), Place(C, SPOT)],
            id="the odd request sweeps, for a sweep sees more",
        ),
        pytest.param(
            4,
            (FLEX, SPOT),
            [Place(A, FLEX), Place(B, FLEX), Place(C, SPOT), Place(D, SPOT)],
            id="half of four requests queue",
        ),
        pytest.param(
            8, (FLEX, SPOT), [Place(zone, FLEX) for zone in ZONES], id="no zone is swept that a queue watches"
        ),
        pytest.param(2, (SPOT, RESERVED), [Place(A, SPOT), Place(A, RESERVED)], id="a reservation queues as well"),
        pytest.param(2, (SPOT, ON_DEMAND), [Place(A, SPOT), Place(B, SPOT)], id="on-demand is swept as well"),
        pytest.param(9, (SPOT,), [Place(zone, SPOT) for zone in ZONES], id="every place, where more may be requested"),
    ],
)
def test_each_kind_of_place_has_its_share_of_the_requests(
    requests: int, models: tuple[Provisioning, ...], places: Places
) -> None:
    assert tried(record(), requests=requests, models=models) == places


@pytest.mark.parametrize(
    ("flex_zones", "spot_zones", "requests", "queues", "sweeps"),
    [
        pytest.param([A], [B, C, D], 4, 1, 3, id="too few queues leave their share to the sweep"),
        pytest.param([A, B, C], [D], 4, 3, 1, id="too few places to sweep leave their share to the queues"),
        pytest.param([A, B], [C, D], 9, 2, 2, id="more requests than places"),
    ],
)
def test_what_one_kind_does_not_need_the_other_has(
    flex_zones: list[Zone], spot_zones: list[Zone], requests: int, queues: int, sweeps: int
) -> None:
    places = (*(candidate(z, FLEX) for z in flex_zones), *(candidate(z, SPOT) for z in spot_zones))
    target = deployment(places, requests=requests)
    models = [p.provisioning for p in next_places(target, record(), (), scores={}, now=NOW, patience=PATIENCE)]
    assert (models.count(FLEX), models.count(SPOT)) == (queues, sweeps)


def test_what_queues_is_chosen_by_preference_whatever_the_round_says() -> None:
    state = record(refusals=[refused(A, 2), refused(B, 2), refused(A, 2, provisioning=FLEX)])
    assert tried(state, requests=4, models=(FLEX, SPOT)) == [
        Place(A, FLEX),
        Place(B, FLEX),
        Place(C, SPOT),
        Place(D, SPOT),
    ]


def test_home_and_what_we_kept_ourselves_out_of_come_first_among_the_queues_too() -> None:
    quota = refused(B, 2, scope=RefusalScope.ZONE_QUOTA, held=8, provisioning=FLEX)
    assert tried(record(home=C), models=(FLEX,)) == [Place(C, FLEX), Place(A, FLEX)]
    assert tried(record(refusals=[quota]), models=(FLEX,)) == [Place(B, FLEX), Place(A, FLEX)]


def test_where_every_place_queues_requests_elsewhere_take_no_share_of_them() -> None:
    assert len(tried(record(), requests=4, models=(FLEX,), zones=(A, B), waiting=[queued(C), queued(D)])) == 2


@pytest.mark.parametrize(
    ("waiting", "requests", "places"),
    [
        pytest.param([attempt(A)], 2, [Place(B, SPOT)], id="where one waits, the next place"),
        pytest.param([attempt(A), attempt(B)], 2, [], id="no more than are allowed"),
        pytest.param([attempt(A), attempt(B), attempt(C)], 2, [], id="none, where more wait than are allowed"),
        pytest.param([queued(A)], 2, [Place(B, SPOT)], id="a queue elsewhere leaves the sweep its share"),
        pytest.param(
            [queued(A), queued(B)], 4, [Place(C, SPOT), Place(D, SPOT)], id="a zone that a queue watches is not swept"
        ),
        pytest.param(
            [queued(A, minutes_ago=20)], 2, [Place(A, SPOT)], id="it is swept again 20 minutes after the request"
        ),
        pytest.param([queued(A, minutes_ago=19.9)], 2, [Place(B, SPOT)], id="and not sooner"),
    ],
)
def test_requests_that_wait_take_their_place(waiting: list[Attempt], requests: int, places: Places) -> None:
    models = (FLEX, SPOT) if any(a.provisioning is FLEX for a in waiting) else (SPOT,)
    assert [p for p in tried(record(), requests=requests, waiting=waiting, models=models) if p[1] is SPOT] == places


def test_a_watched_zone_is_swept_20_minutes_after_its_last_refusal_there() -> None:
    waiting = [queued(A, minutes_ago=60)]
    zones = [A]
    for minutes, places in ((19, []), (20, [Place(A, SPOT)])):
        state = record(refusals=[refused(A, minutes), refused(A, 50), refused(B, 1), refused(A, 1, provisioning=FLEX)])
        assert tried(state, waiting=waiting, models=(FLEX, SPOT), zones=zones) == places


def test_a_place_that_refuses_and_has_not_said_why_is_left_out() -> None:
    assert tried(record(), unexplained=[Place(A, SPOT)]) == [Place(B, SPOT), Place(C, SPOT)]
    assert tried(record(), unexplained=[Place(A, FLEX)]) == [Place(A, SPOT), Place(B, SPOT)]


def test_a_queue_keeps_the_sweep_of_its_own_api_out_of_its_zone_and_no_other() -> None:
    """A queue at Compute Engine that has no quota looks like one that waits, so it may watch nothing."""
    sweeps = [candidate(A), candidate(A, backend=INSTANCES)]
    queue = queued(A, backend=INSTANCES, name="queue")
    target = deployment([candidate(A, FLEX, backend=INSTANCES), *sweeps], requests=4)
    places = next_places(target, record(queue), [queue], scores={}, now=NOW, patience=PATIENCE)
    assert places == (candidate(A),)
    assert sweep_resumes_at(sweeps[0], record(queue), [queue]) is None


@pytest.mark.parametrize(
    ("chips", "places"),
    [
        pytest.param(4, [Place(A, SPOT), Place(B, SPOT)], id="two slices of 4 chips fit in the 8 chips that were free"),
        pytest.param(
            8, [Place(A, SPOT), Place(C, SPOT)], id="of 8 chips only one, so the second goes to another region"
        ),
        pytest.param(16, [Place(C, SPOT), Place(D, SPOT)], id="of 16 chips none"),
    ],
)
def test_a_quota_that_was_full_while_8_chips_were_held_has_room_for_8(chips: int, places: Places) -> None:
    full = refused(A, 1, lasts=9, scope=RefusalScope.REGION_QUOTA, held=8)
    assert tried(record(refusals=[full]), chips=chips) == places


def test_what_is_still_held_counts_against_the_quota() -> None:
    full = refused(A, 1, lasts=9, scope=RefusalScope.REGION_QUOTA, held=16)
    assert tried(record(granted(B), refusals=[full])) == [Place(A, SPOT), Place(C, SPOT)]


def preferred(
    places: Sequence[Candidate],
    *,
    home: Zone | None = None,
    zones: object = "any",
    scores: Mapping[Place, float] | None = None,
    doubtful: Places = (),
    unanswered: Places = (),
) -> list[Candidate]:
    target = deployment(places, attributes={"placement.zones": zones})
    return list(order_by_preference(target, home, scores or {}, doubtful, unanswered))


CHEAP, DEAR, UNPRICED = candidate(C, SPOT, 1.0), candidate(B, SPOT, 2.0), candidate(A, SPOT)


@pytest.mark.parametrize(
    ("settings", "order"),
    [
        pytest.param({}, [CHEAP, DEAR, UNPRICED], id="the cheapest first, an unknown price last"),
        pytest.param({"zones": ["us"]}, [UNPRICED, DEAR, CHEAP], id="as the profile lists them"),
        pytest.param(
            {"zones": ["us"], "scores": {Place(C, SPOT): 9.0}}, [UNPRICED, DEAR, CHEAP], id="whatever the results there"
        ),
        pytest.param({"home": B}, [DEAR, CHEAP, UNPRICED], id="home before price"),
        pytest.param({"home": A}, [CHEAP, DEAR, UNPRICED], id="but not without a price"),
        pytest.param({"doubtful": [Place(C, SPOT)]}, [DEAR, CHEAP, UNPRICED], id="doubtful places last"),
        pytest.param(
            {"doubtful": [Place(C, SPOT)], "home": C}, [DEAR, CHEAP, UNPRICED], id="even home, if it is doubtful"
        ),
        pytest.param(
            {"unanswered": [Place(B, SPOT)]}, [DEAR, CHEAP, UNPRICED], id="what we kept ourselves out of first"
        ),
    ],
)
def test_the_order_of_preference(settings: Mapping[str, object], order: list[Candidate]) -> None:
    assert preferred((UNPRICED, DEAR, CHEAP), **settings) == order  # type: ignore[arg-type]  # one row, one argument


def test_at_the_same_price_the_place_with_better_results_comes_first() -> None:
    places = [candidate(A, SPOT, 1.0), candidate(B, SPOT, 1.0), candidate(C, SPOT, 1.0)]
    assert preferred(places, scores={Place(B, SPOT): 1.0, Place(A, SPOT): -1.0}) == [places[1], places[2], places[0]]
    assert preferred(places, scores={Place(C, SPOT): 0.5})[0] == places[2]
    assert preferred(places) == places


def test_the_order_of_the_models_comes_before_the_price_and_after_home() -> None:
    dear, cheap, other = candidate(A, FLEX, 9.0), candidate(A, SPOT, 1.0), candidate(B, FLEX, 1.0)
    assert preferred([dear, cheap, other]) == [other, dear, cheap]
    assert preferred([dear, cheap, other], home=A) == [dear, cheap, other]
    assert preferred([cheap, dear, other], unanswered=[Place(A, FLEX)]) == [cheap, dear, other]


@pytest.mark.parametrize(
    ("place", "is_allowed"),
    [
        pytest.param(attempt(A), True, id="a zone and a model of the profile"),
        pytest.param(attempt(B), False, id="another zone"),
        pytest.param(attempt(A, FLEX), False, id="another model"),
        pytest.param(attempt(C, FLEX), True, id="the profile's second place"),
    ],
)
def test_whether_the_profile_allows_the_place_of_a_request(place: Attempt, is_allowed: bool) -> None:
    assert allows(deployment([candidate(A), candidate(C, FLEX)]), place) is is_allowed


@pytest.mark.parametrize(
    ("refusals", "waiting", "minutes"),
    [
        pytest.param([], [], None, id="never, where nothing is refused"),
        pytest.param([refused(A, lasts=3), refused(B, lasts=2)], [], 2, id="with the first refusal that ends"),
        pytest.param([refused(A, lasts=3), refused(A, lasts=5)], [], 5, id="with the longest of one place's refusals"),
        pytest.param([refused(A, lasts=5), refused(A, lasts=3)], [], 5, id="in whatever order they are kept"),
        pytest.param([refused(A, lasts=-1), refused(B, lasts=0)], [], None, id="not with one that has ended"),
        pytest.param([refused(A, lasts=3)], [attempt(A)], None, id="not where one waits already"),
        pytest.param([], [queued(A, minutes_ago=5)], 15, id="once a zone that a queue watches is swept again"),
        pytest.param([refused(A, lasts=18)], [queued(A, minutes_ago=5)], 20, id="20 minutes after its last refusal"),
        pytest.param([refused(A, 4, lasts=18)], [queued(A, minutes_ago=5)], 18, id="but not while it is refused"),
    ],
)
def test_when_the_first_place_that_is_refused_now_opens(
    refusals: list[RefusalRecord], waiting: list[Attempt], minutes: float | None
) -> None:
    target = deployment(everywhere(SPOT, zones=(A, B)))
    opens = next_opening(target, record(refusals=refusals), iter(waiting), NOW, PATIENCE)
    assert opens == (None if minutes is None else NOW + minutes * MINUTE)


@pytest.mark.parametrize(
    ("place", "waiting", "minutes_ago"),
    [
        pytest.param(candidate(A), [], None, id="no request waits"),
        pytest.param(candidate(A), [queued(B)], None, id="a request waits in another zone"),
        pytest.param(candidate(A), [attempt(A)], None, id="the request there does not queue"),
        pytest.param(candidate(A, FLEX), [queued(A)], None, id="the place is a queue itself"),
        pytest.param(candidate(A), [queued(A, minutes_ago=30)], 10, id="20 minutes from the request, though past"),
        pytest.param(candidate(A), [queued(A, RESERVED, minutes_ago=30)], 10, id="a reservation watches its zone too"),
    ],
)
def test_until_when_a_zone_that_a_queue_watches_is_not_swept(
    place: Candidate, waiting: list[Attempt], minutes_ago: float | None
) -> None:
    until = sweep_resumes_at(place, record(refusals=[refused(B)]), waiting)
    assert until == (None if minutes_ago is None else NOW - minutes_ago * MINUTE)


@pytest.mark.parametrize(
    ("refusals", "closed"),
    [
        pytest.param([], False, id="nothing is refused"),
        pytest.param([refused(A, lasts=121), refused(B, lasts=121)], True, id="every place for more than two hours"),
        pytest.param([refused(A, lasts=121), refused(B, lasts=120)], False, id="one place for two hours"),
        pytest.param([refused(A, lasts=121)], False, id="one place is not refused"),
        pytest.param([refused(A, lasts=121, scope=RefusalScope.REGION)], True, id="the region for more than two hours"),
        pytest.param(
            [refused(A, lasts=121, landed=True, scope=RefusalScope.REGION)], False, id="a failed landing passes"
        ),
        pytest.param([refused(C, lasts=121), refused(D, lasts=121)], False, id="other places"),
        pytest.param(
            [refused(A, lasts=121), refused(B, lasts=1), refused(B, lasts=300)], True, id="the longest counts"
        ),
    ],
)
def test_whether_only_a_person_can_open_a_place(refusals: list[RefusalRecord], closed: bool) -> None:
    assert is_closed(iter(everywhere(SPOT, zones=(A, B))), refusals, NOW, PATIENCE) is closed


def test_a_profile_without_places_is_not_closed() -> None:
    assert not is_closed((), [refused(A, lasts=inf)], NOW, PATIENCE)
    assert PATIENCE.refused == HOUR * 2
