"""How wide a search is: what all its requests may cost together, and zones that answer slowly or open for a minute."""

from __future__ import annotations

import json
import re

import pytest
from command_line import PROFILE, CommandLine, Open
from stories.hunts import APPLY, CENTRAL, CHILE, TOKYO, WEST, A, B, heard, holds

from tpudeploy import catalog

SIXTEEN = catalog.generation("v6e").zones[:16]
FULL = {"fault": "stockout", "until": 1200}


def _spot(*zones: str, type_: str = "v6e-1", more: str = "") -> str:
    """A profile without a word on how many requests there may be."""
    profile = PROFILE.replace("us-east5-a, us-east5-b, europe-west4-a", ", ".join(zones)).replace("v6e-1", type_)
    return profile.replace("  max_parallel_requests: 1\n", more)


def _price_of_live_requests(at: CommandLine) -> float:
    """The list price of everything that Google may grant, or has granted, at this moment."""
    total = 0.0
    for where, slices in at.emulator.live().items():
        zone = re.sub(r".*/", "", where)
        price = catalog.usd_per_chip_hour("v6e", zone.rsplit("-", 1)[0], "spot")
        total += sum(
            8 * (price or 0.0) for state in slices.values() if state not in {"DELETING", "FAILED", "SUSPENDED"}
        )
    return total


def test_a_small_slice_is_requested_everywhere_at_once(cli: Open) -> None:
    at = cli(trouble=[FULL], timings={"queued": 30})
    at.write(_spot(*SIXTEEN))
    applied = at.run(*APPLY, "-json")
    assert applied.code == 0, applied.all
    requests = [(event["at"], event["zone"]) for event in heard(applied, "requested")]
    first_round = [zone for asked_at, zone in requests if asked_at < requests[0][0] + 30]
    assert first_round == list(SIXTEEN), "four at a time would take three minutes for a round"
    holds(at)


@pytest.mark.parametrize(
    ("more", "most"), [("", 100.0), ("  max_search_price_per_hour: 30\n", 30.0), ("  max_parallel_requests: 2\n", 36.4)]
)
def test_all_requests_together_never_cost_more_than_the_plan_said(cli: Open, more: str, most: float) -> None:
    at = cli(trouble=[FULL], timings={"queued": 30})
    at.write(
        _spot(
            *(zone for zone in SIXTEEN if "southamerica" not in zone and "asia-east1" not in zone),
            type_="v6e-8",
            more=more,
        )
    )
    planned = json.loads(at.run("plan", "-json", "gemma.yaml").out)
    ceiling = planned["goals"][0]["changes"][0]["usd_per_hour_at_once"]
    assert ceiling <= most + 0.01
    prices: list[float] = []
    at.clock.on_advance.append(lambda: prices.append(_price_of_live_requests(at)))
    assert at.run(*APPLY).code == 0
    assert 0.5 * ceiling < max(prices) <= ceiling + 0.01
    holds(at)


def test_a_place_that_alone_costs_more_than_the_search_may_is_not_requested(cli: Open) -> None:
    at = cli()
    at.write(_spot(WEST, CENTRAL, more="  max_search_price_per_hour: 1\n"))
    assert at.run(*APPLY).code == 0
    assert at.requested_zones() == [CENTRAL]


def test_a_zone_that_answers_slowly_does_not_hold_up_the_others(cli: Open) -> None:
    slow = {"fault": "slow", "zone": B, "seconds": 15}
    at = cli(trouble=[slow, FULL], timings={"queued": 30})
    at.write(_spot(A, B, WEST, TOKYO, CHILE, CENTRAL))
    began = at.clock.now()
    assert at.run(*APPLY).code == 0
    slow_calls = [r for r in at.emulator.requests if f"/{B}/" in r.resource]
    assert len(slow_calls) * 15 < 0.3 * (at.clock.now() - began), "a fifth of the time goes to the slow zone"
    rounds = {zone: at.requested_zones().count(zone) for zone in (A, B, WEST)}
    assert rounds[A] >= 10
    assert rounds[WEST] >= 10
    assert rounds[B] >= 2, "it is requested too, but seldom"
    holds(at)


def test_where_every_zone_answers_slowly_none_waits_for_its_turn(cli: Open) -> None:
    at = cli(
        trouble=[{"fault": "slow", "seconds": 15, "method": "queuedResources.*"}, {"fault": "stockout", "attempt": 1}]
    )
    at.write(_spot(A, WEST, CENTRAL))
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert "answers slowly" not in applied.all
    holds(at)


def test_a_landing_that_fails_is_tried_again_soon_while_every_other_place_is_full(cli: Open) -> None:
    others = [{"fault": "stockout", "zone": zone} for zone in (B, WEST, CENTRAL)]
    at = cli(trouble=[{"fault": "internal-error", "zone": A, "attempt": 1}, *others], timings={"queued": 30})
    at.write(_spot(A, B, WEST, CENTRAL))
    applied = at.run(*APPLY, "-json")
    assert applied.code == 0, applied.all
    _, second = (event["at"] for event in heard(applied, "requested") if event["zone"] == A)
    (failed,) = (event["at"] for event in heard(applied, "not_granted") if event["zone"] == A)
    assert second - failed < 180, "no other place has anything, so ten minutes more would gain nothing"
    holds(at)
