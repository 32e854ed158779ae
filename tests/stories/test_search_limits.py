"""How wide a search is: what all its requests may cost together, and zones that answer slowly or open for a minute."""

from __future__ import annotations

import json
import re

import pytest
from command_line import PROFILE, CommandLine, Open, Result
from stories.hunts import APPLY, CENTRAL, CHILE, TOKYO, WEST, A, B, heard, holds

from tpudeploy import catalog

SIXTEEN = catalog.generation("v6e").zones[:16]
FULL = {"fault": "stockout", "until": 1200}

ANYWHERE = PROFILE.replace("  zones: [us-east5-a, us-east5-b, europe-west4-a]\n", "").replace(
    "  max_parallel_requests: 1\n", ""
)


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


def _most_open(applied: Result) -> int:
    """The most requests that were open at one time before the first grant."""
    names: set[str] = set()
    most = 0
    for line in applied.out.splitlines():
        event = json.loads(line)
        if event.get("type") == "requested":
            names.add(event["name"])
        elif event.get("type") == "not_granted":
            names.discard(event["name"])
        most = max(most, len(names))
    return most


def test_a_search_begins_with_three_places_and_has_more_requests_once_places_are_full(cli: Open) -> None:
    at = cli(trouble=[FULL], timings={"queued": 30})
    at.write(_spot(*SIXTEEN))
    applied = at.run(*APPLY, "-json")
    assert applied.code == 0, applied.all
    refused_at = next(heard(applied, "not_granted"))["at"]
    requests = [(event["at"], event["zone"]) for event in heard(applied, "requested")]
    assert [zone for asked_at, zone in requests if asked_at < refused_at] == list(SIXTEEN[:3])
    assert {zone for _, zone in requests} == set(SIXTEEN), "every place has its turn"
    assert _most_open(applied) > 3, "three at a time would take four minutes for a round"
    holds(at)


def test_a_search_that_names_a_number_begins_with_as_many(cli: Open) -> None:
    at = cli(trouble=[FULL], timings={"queued": 30})
    at.write(_spot(*SIXTEEN, more="  max_parallel_requests: 16\n"))
    applied = at.run(*APPLY, "-json")
    requests = [(event["at"], event["zone"]) for event in heard(applied, "requested")]
    assert [zone for asked_at, zone in requests if asked_at < requests[0][0] + 30] == list(SIXTEEN)
    holds(at)


@pytest.mark.parametrize("models", ["flex-start, spot", "spot"])
def test_where_every_place_is_open_a_search_buys_three_slices_at_most(cli: Open, models: str) -> None:
    at = cli()
    at.write(ANYWHERE.replace("[spot]", f"[{models}]\n  max_run_duration: 12h"))
    assert at.run(*APPLY).code == 0
    assert len(at.requested_zones()) == 3
    holds(at)


def test_the_cheapest_places_are_requested_first_and_those_without_a_price_last(cli: Open) -> None:
    at = cli(trouble=[{"fault": "quota-zero", "attempt": 1}])
    at.write(ANYWHERE)
    planned = at.run("plan", "gemma.yaml")
    assert "3 places without a known price, only if no other is left" in planned.out
    assert at.run(*APPLY, "--timeout", "30m").code != 0
    prices = [catalog.usd_per_chip_hour("v6e", zone.rpartition("-")[0], "spot") for zone in at.requested_zones()]
    assert prices[-3:] == [None] * 3
    assert prices[:-3] == sorted(price for price in prices if price is not None)


def test_a_limit_that_was_written_for_a_smaller_slice_leaves_one_request_at_a_time(cli: Open) -> None:
    at = cli()
    at.write(_spot(A, B, type_="v6e-8", more="  max_search_price_per_hour: 5\n"))
    assert at.run(*APPLY).code == 0
    assert at.requested_zones() == [A]


@pytest.mark.parametrize(
    ("more", "most"), [("", 40.0), ("  max_search_price_per_hour: 30\n", 30.0), ("  max_parallel_requests: 2\n", 36.4)]
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
