"""Places that behave the same way every time: what Google's clients see of each habit that a scenario names."""

from __future__ import annotations

from typing import Any

import pytest
from emulator.cloud_world import ZONE, World, refused, world

from tpudeploy.domain.errors import ScenarioInvalid
from tpudeploy.emulator.habits import HABITS
from tpudeploy.emulator.scenario_file import load_scenario
from tpudeploy.emulator.timings import Timings

HOUR = 3600.0
OTHER = "us-east5-a"


def with_habit(habit: str, **options: Any) -> Any:
    return world(habits=[{"habit": habit, **options}])


def test_a_zone_that_preempts_early_grants_spot_at_once_and_takes_it_back_each_time() -> None:
    with with_habit("early-preemption", zone=ZONE, after=300) as w:
        for name in ("a", "b"):
            w.create(name)
            w.grow(name, until="ACTIVE", most=6)
            w.clock.sleep(290)
            assert w.state(name) == "ACTIVE"
            w.clock.sleep(80)
            assert w.state(name) == "SUSPENDED"
        w.create("c", OTHER)
        w.clock.sleep(1000)
        assert w.state("c", OTHER) == "ACTIVE"


def test_a_zone_with_code_13_provisions_every_time_and_never_lands() -> None:
    with with_habit("internal-error", zone=ZONE) as w:
        for name in ("a", "b"):
            w.create(name)
            states = []
            for _ in range(20):
                w.clock.sleep(1)
                states.append(w.state(name))
            assert list(dict.fromkeys(states))[-3:] == ["PROVISIONING", "SUSPENDING", "FAILED"]
            assert w.get(name)["state"]["failedData"]["error"]["code"] == 13


def test_zones_that_reopen_together_grant_in_the_same_second() -> None:
    with with_habit("common-reopening", zone="us-*", after=HOUR) as w:
        zones = ("us-east5-a", "us-east5-b", "us-central1-a")
        for zone in zones:
            w.create("q", zone, provisioningModel="FLEX_START", runDuration={"maxRunDuration": "14400s"})
            w.create("s", zone)
        w.clock.sleep(HOUR - 1)
        assert {w.state("q", zone) for zone in zones} == {"WAITING_FOR_RESOURCES"}
        assert {w.state("s", zone) for zone in zones} == {"ABSENT"}  # a stockout: nothing was made
        w.clock.sleep(1)
        assert {w.state("q", zone) for zone in zones} == {"PROVISIONING"}
        w.create("again")
        w.clock.sleep(200)
        assert w.state("again") == "ACTIVE"


def test_a_zone_with_capacity_at_night_grants_then_and_reclaims_spot_in_the_morning() -> None:
    with with_habit("night-capacity", zone=ZONE, opens=22, closes=6) as w:
        w.clock.sleep(_seconds_to(12, w))
        w.create("spot")
        w.create("queued", provisioningModel="FLEX_START", runDuration={"maxRunDuration": "86400s"})
        w.clock.sleep(9 * HOUR + 3500)
        assert (w.state("spot"), w.state("queued")) == ("ABSENT", "WAITING_FOR_RESOURCES")
        w.clock.sleep(300)
        assert w.state("queued") == "ACTIVE"
        w.create("spot")
        w.clock.sleep(300)
        assert w.state("spot") == "ACTIVE"
        w.clock.sleep(_seconds_to(6, w) + 90)
        assert (w.state("spot"), w.state("queued")) == ("SUSPENDED", "ACTIVE")


@pytest.mark.parametrize(
    ("outcome", "shows"), [("running", (False, False)), ("done", (True, False)), ("failed", (True, True))]
)
def test_a_deletion_that_is_ignored_lets_the_slice_land(outcome: str, shows: tuple[bool, bool]) -> None:
    with with_habit("ignored-deletion", outcome=outcome) as w:
        w.create()
        w.grow(until="PROVISIONING")
        operation = w.delete(force=True)
        w.grow(until="ACTIVE")
        w.clock.sleep(1000)
        assert w.state() == "ACTIVE"
        ended = w.operation(operation)
        assert (bool(ended.get("done")), "error" in ended) == shows
        w.delete(force=True)
        w.grow(until="ABSENT")


def test_an_ignored_deletion_may_take_effect_once_the_slice_is_active() -> None:
    with with_habit("ignored-deletion", outcome="failed", takes_effect=True) as w:
        w.create()
        w.grow(until="PROVISIONING")
        w.delete(force=True)
        w.clock.sleep(200)
        assert w.state() == "ABSENT"


def test_a_region_without_quota_refuses_what_its_zone_would_allow() -> None:
    zone = {"class": "preemptible", "zone": ZONE, "limit": 16}
    with world(quota=[zone, {"class": "preemptible", "region": "us-east5", "limit": 0}]) as w:
        for _ in range(2):
            with refused(429, "RESOURCE_EXHAUSTED", "Limit: 0 in region us-east5"):
                w.create()


@pytest.mark.parametrize("name", HABITS)
def test_every_habit_can_be_named_alone(name: str) -> None:
    assert load_scenario({"habits": [{"habit": name}]}, timings=Timings()).trouble


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"habit": "early-premption"}, "did you mean `early-preemption`"),
        ({"habit": "internal-error", "after": 3}, "`after`"),
    ],
)
def test_a_habit_that_does_not_exist_is_refused_by_name(row: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioInvalid, match=says):
        load_scenario({"habits": [row]}, timings=Timings())


def _seconds_to(hour: float, w: World) -> float:
    return float((hour * HOUR - w.clock.now()) % (24 * HOUR))
