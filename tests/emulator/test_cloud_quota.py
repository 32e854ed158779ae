"""Quota: husks keep eating it, zones and regions both count, spot and on-demand have pools of their own."""

from __future__ import annotations

from typing import Any

import pytest
from emulator.cloud_world import refused, world

REGION = {"class": "preemptible", "region": "us-east5", "limit": 16}


def test_a_region_s_limit_is_shared_by_its_zones() -> None:
    with world(quota=[REGION]) as w:
        w.create("a", zone="us-east5-a")
        w.create("b", zone="us-east5-b")
        text = "Quota 'TPUV6EPreemptiblePerProjectPerRegionForTPUAPI' exhausted. Limit 16 in region us-east5"
        with refused(429, "RESOURCE_EXHAUSTED", text):
            w.create("c", zone="us-east5-c")
        w.create("d", zone="europe-west4-a")
        w.create("e", project="other")


@pytest.mark.parametrize("ending", ["SUSPENDED", "FAILED"])
def test_a_husk_keeps_eating_quota_until_it_is_deleted(ending: str) -> None:
    faults: dict[str, dict[str, Any]] = {
        "SUSPENDED": {"fault": "preempt", "after": 1},
        "FAILED": {"fault": "internal-error"},
    }
    with world(faults[ending] | {"times": 1}, quota=[{"class": "preemptible", "zone": "*", "limit": 8}]) as w:
        w.create("a")
        w.grow("a", until=ending)
        text = "Quota 'TPUV6EPreemptiblePerProjectPerZoneForTPUAPI' exhausted. Limit 8 in zone us-east5-b"
        with refused(429, "RESOURCE_EXHAUSTED", text):
            w.create("b")
        w.delete("a")
        w.grow("a", until="ABSENT")
        w.create("b")


def test_a_waiting_request_eats_quota() -> None:
    with world({"fault": "wait-for-ever"}, quota=[REGION | {"limit": 8}]) as w:
        w.create("a")
        w.grow("a", until="WAITING_FOR_RESOURCES")
        with refused(429, "RESOURCE_EXHAUSTED"):
            w.create("b")


def test_a_refused_request_eats_none() -> None:
    with world({"fault": "stockout", "times": 1}, quota=[REGION | {"limit": 8}]) as w:
        w.create("a")
        w.clock.sleep(1)
        w.create("b")


def test_limits_of_zero_are_named_together() -> None:
    rows = [REGION | {"limit": 0}, {"class": "preemptible", "zone": "us-east5-b", "limit": 0}]
    names = "TPUV6EPreemptiblePerProjectPerRegionForTPUAPI,TPUV6EPreemptiblePerProjectPerZoneForTPUAPI"
    text = f"Quota limit '{names}' has been exceeded. Limit: 0,0 in region us-east5,zone us-east5-b."
    with world(quota=rows) as w, refused(429, "RESOURCE_EXHAUSTED", text):
        w.create()


def test_on_demand_and_preemptible_are_different_pools() -> None:
    with world(quota=[{"class": "on-demand", "region": "*", "limit": 0}]) as w:
        w.create("a", provisioningModel="FLEX_START")
        w.create("b", provisioningModel="SPOT")
        for model in ("STANDARD", "RESERVATION_BOUND"):
            with refused(429, "RESOURCE_EXHAUSTED", "'TPUV6EPerProjectPerRegionForTPUAPI'"):
                w.create("c", provisioningModel=model)


def test_a_project_s_creates_a_minute_can_be_limited() -> None:
    with world(creates_per_minute=2) as w:
        w.create("a")
        w.create("b")
        with refused(429, "RESOURCE_EXHAUSTED", "Maximum number of CreateNode requests per minute"):
            w.create("c")
        w.create("c", project="other")
        w.clock.sleep(61)
        w.create("c")
