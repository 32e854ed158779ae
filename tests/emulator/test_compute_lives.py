"""The lives of instances, as Google's client sees them: queues, grants, ends, failures of hosts, and what lies."""

from __future__ import annotations

from typing import Any

import pytest
from emulator.cloud_world import QUICK, ZONE
from emulator.compute_world import ComputeWorld, refused, world

SLOW = QUICK | {"waiting": 100}
STOPS = {"instanceTerminationAction": "STOP"}
FULL = "The zone 'projects/p/zones/us-east5-b' does not have enough resources available to fulfill the request."


def events(w: ComputeWorld, zone: str = ZONE) -> list[str]:
    """What Google did to instances by itself, in order."""
    rows = w.compute.zoneOperations().list(project="p", zone=zone).execute().get("items", ())
    return [row["operationType"] for row in rows if row["name"].startswith("systemevent-")]


def test_a_flex_start_insert_stays_open_while_its_instance_waits() -> None:
    with world(timings=SLOW) as w:
        operation = w.insert(model="FLEX_START")
        w.until("PENDING")
        w.clock.sleep(90)
        assert w.finish(operation)["status"] == "RUNNING"
        assert w.emulator.billed() == ()
        assert w.until("RUNNING") == ["PENDING", "PROVISIONING", "STAGING", "RUNNING"]
        assert w.finish(operation)["status"] == "DONE"


def test_a_waiting_instance_may_not_be_visible_and_then_cannot_be_deleted() -> None:
    with world(timings=SLOW, compute_engine={"shows_pending": False}) as w:
        operation = w.insert(model="FLEX_START")
        w.clock.sleep(50)
        assert (w.status(), w.listed()) == ("ABSENT", [])
        with refused(404, "notFound"):
            w.call("delete")
        with refused(409, "alreadyExists"):
            w.insert(model="FLEX_START")
        assert w.finish(operation)["status"] == "RUNNING"
        w.until("RUNNING")


@pytest.mark.parametrize("has_error", [False, True])
def test_a_request_that_lapses_vanishes_with_or_without_an_error(has_error: bool) -> None:
    with world({"fault": "wait-for-ever"}, compute_engine={"lapse_has_error": has_error}) as w:
        params = {"requestValidForDuration": {"seconds": "90"}}
        operation = w.insert(model="FLEX_START", params=params)
        w.clock.sleep(89)
        assert w.status() == "PENDING"
        w.clock.sleep(1)
        assert w.status() == "ABSENT"
        finished = w.finish(operation)
        assert (finished["status"], "error" in finished) == ("DONE", has_error)
        assert w.emulator.live() == {}


def test_a_waiting_instance_can_be_deleted_and_its_insert_ends_with_it() -> None:
    with world({"fault": "wait-for-ever"}) as w:
        operation = w.insert(model="FLEX_START")
        w.until("PENDING")
        w.call("delete")
        w.clock.sleep(1)
        assert w.status() == "ABSENT"
        assert w.error(operation)["code"] == "OPERATION_CANCELED_BY_USER"


def test_spot_learns_in_seconds_that_a_zone_is_full_and_where_else_to_ask() -> None:
    with world({"fault": "stockout", "zones_available": "us-east5-a,us-east5-c"}) as w:
        operation = w.insert()
        w.clock.sleep(1)
        error = w.error(operation)
        assert error["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED"
        assert error["message"].startswith(FULL)
        assert error["errorDetails"][0]["errorInfo"]["reason"] == "stockout"
        assert error["errorDetails"][0]["errorInfo"]["metadatas"] == {
            "zone": ZONE,
            "vmType": "ct6e-standard-1t",
            "attachment": "",
            "zonesAvailable": "us-east5-a,us-east5-c",
        }
        assert w.finish(operation)["httpErrorStatusCode"] == 503
        assert w.emulator.live() == {}


@pytest.mark.parametrize("model", ["STANDARD", "SPOT", "RESERVATION_BOUND"])
def test_where_nothing_is_granted_only_flex_start_waits(model: str) -> None:
    with world({"fault": "no-grant", "until": 60}) as w:
        operation = w.insert("a", model=model)
        w.insert("f", model="FLEX_START")
        w.clock.sleep(2)
        assert w.error(operation)["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED"
        assert w.status("f") == "PENDING"
        w.clock.sleep(58)
        assert w.status("f") == "PROVISIONING"


@pytest.mark.parametrize(("action", "end"), [("DELETE", "ABSENT"), ("STOP", "TERMINATED")])
def test_a_run_ends_when_it_says_and_is_deleted_or_stays(action: str, end: str) -> None:
    run = {"maxRunDuration": {"seconds": "600"}, "instanceTerminationAction": action}
    with world() as w:
        w.insert(model="FLEX_START", scheduling=run)
        w.until("RUNNING")
        ends = w.call("get")["resourceStatus"]["scheduling"]["terminationTimestamp"]
        assert ends.startswith("2026-09-21T14:23:")
        w.clock.sleep(600)
        assert w.status() == "STOPPING"
        w.until(end)
        assert w.emulator.billed() == ()


def test_a_preempted_instance_is_announced_and_stops_after_half_a_minute() -> None:
    with world({"fault": "preempt", "after": 10}, timings=QUICK | {"preempted": 30}) as w:
        w.insert()
        w.until("RUNNING")
        w.clock.sleep(10)
        assert (w.status(), events(w)) == ("RUNNING", ["compute.instances.preempted"])
        w.clock.sleep(30)
        assert w.until("ABSENT") == ["STOPPING", "ABSENT"]


def test_a_preempted_instance_that_is_to_stop_stays_and_can_start_again() -> None:
    with world(compute_engine={"stopped_state": "STOPPED"}) as w:
        w.insert(scheduling=STOPS)
        w.until("RUNNING")
        w.emulator.preempt("a")
        w.until("STOPPED")
        assert "lastStopTimestamp" in w.call("get")
        operation = w.call("start")
        w.until("RUNNING")
        assert w.finish(operation)["status"] == "DONE"


def test_an_instance_that_google_stops_can_be_deleted_meanwhile() -> None:
    with world() as w:
        w.insert(scheduling=STOPS)
        w.until("RUNNING")
        w.emulator.preempt("a")
        w.until("STOPPING")
        operations = [w.call("delete"), w.call("delete")]
        w.until("ABSENT")
        assert [w.finish(operation)["status"] for operation in operations] == ["DONE", "DONE"]
        w.clock.sleep(60)
        assert w.status() == "ABSENT"


@pytest.mark.parametrize("state", ["REPAIRING", "TERMINATED"])
def test_an_instance_whose_host_failed_runs_again_by_itself(state: str) -> None:
    with world({"fault": "host-error", "after": 10, "down": 60, "shows": state}) as w:
        w.insert(model="STANDARD")
        w.until("RUNNING")
        w.clock.sleep(10)
        assert w.until("RUNNING") == [state, "PROVISIONING", "STAGING", "RUNNING"]
        assert events(w) == ["compute.instances.hostError", "compute.instances.automaticRestart"]
        w.clock.sleep(3600)
        assert w.status() == "RUNNING"


def test_without_automatic_restart_a_failed_host_leaves_a_husk() -> None:
    with world({"fault": "host-error", "after": 10}) as w:
        w.insert()
        w.until("RUNNING")
        w.until("TERMINATED")
        w.clock.sleep(3600)
        assert w.status() == "TERMINATED"
        w.call("delete")
        w.until("ABSENT")


def test_maintenance_is_announced_and_takes_the_machine_away_for_a_while() -> None:
    with world({"fault": "maintenance", "after": 10, "notice": 100, "window": 60}) as w:
        w.insert(model="STANDARD")
        w.until("RUNNING")
        w.clock.sleep(10)
        announced = w.call("get")["resourceStatus"]["upcomingMaintenance"]
        assert (announced["maintenanceStatus"], announced["type"]) == ("PENDING", "SCHEDULED")
        w.clock.sleep(100)
        assert w.status() == "TERMINATED"
        assert w.call("get")["resourceStatus"]["upcomingMaintenance"]["maintenanceStatus"] == "ONGOING"
        w.until("RUNNING")
        assert "upcomingMaintenance" not in w.call("get").get("resourceStatus", {})


def test_a_host_with_a_bad_chip_can_be_reported_and_is_left() -> None:
    report = {"disruptionSchedule": "IMMEDIATE", "faultReasons": [{"behavior": "CHIP_ERROR", "description": "vfio"}]}
    with world() as w:
        w.insert(model="STANDARD")
        with refused(404, "notFound"):
            w.call("reportHostAsFaulty", body=report)
        w.until("RUNNING")
        with refused(400, "invalid", "fault reason"):
            w.call("reportHostAsFaulty", body={"disruptionSchedule": "IMMEDIATE"})
        with refused(400, "invalid", "IMMEDIATE"):
            w.call("reportHostAsFaulty", body={**report, "disruptionSchedule": "FUTURE"})
        operation = w.call("reportHostAsFaulty", body=report)
        w.clock.sleep(600)
        assert (w.status(), w.finish(operation)["status"]) == ("RUNNING", "RUNNING")
        w.until("REPAIRING")
        w.until("RUNNING")
        assert w.finish(operation)["status"] == "DONE"


QUOTA: Any = [
    {"class": "preemptible", "region": "us-east5", "limit": 8, "api": "compute"},
    {"class": "on-demand", "region": "*", "limit": 0, "api": "compute"},
]


def test_the_quota_of_this_api_is_another_than_the_tpu_api_s() -> None:
    with world(quota=[*QUOTA, {"class": "preemptible", "region": "*", "limit": 8}]) as w:
        w.create("q", node={"acceleratorType": "v6e-8"})
        w.insert("a", machine="ct6e-standard-4t")
        w.insert("b", zone="us-east5-a", machine="ct6e-standard-4t")
        operations = [w.insert("c"), w.insert("d", model="STANDARD")]
        w.clock.sleep(10)
        spot, standard = map(w.error, operations)
        assert (spot["code"], spot["message"]) == (
            "QUOTA_EXCEEDED",
            "Quota 'PREEMPTIBLE_TPU_V6E' exceeded. Limit: 8.0 in region us-east5.",
        )
        assert spot["errorDetails"][0]["quotaInfo"]["limit"] == 8
        assert standard["message"] == "Quota 'TPUS_PER_TPU_FAMILY' exceeded. Limit: 0.0 in region us-east5."
        assert w.emulator.live() == {"us-east5-b": {"q": "ACTIVE", "a": "RUNNING"}, "us-east5-a": {"b": "RUNNING"}}


def test_flex_start_without_quota_looks_like_flex_start_without_capacity() -> None:
    with world(quota=QUOTA) as w:
        w.insert("a", machine="ct6e-standard-4t")
        w.insert("b", machine="ct6e-standard-4t")
        operation = w.insert("f", model="FLEX_START")
        w.clock.sleep(60)
        assert (w.status("f"), w.finish(operation)["status"]) == ("PENDING", "RUNNING")
        w.call("delete", "a")
        w.until("RUNNING", "f")


@pytest.mark.parametrize(
    ("project", "text"),
    [
        ({"hyperdisk_gb": {"us-east5": 100}}, "Quota 'HDB_TOTAL_GB' exceeded. Limit: 100.0 in region us-east5."),
        ({"addresses": {"*": 0}}, "Quota 'IN_USE_ADDRESSES' exceeded. Limit: 0.0 in region us-east5."),
    ],
)
def test_disk_and_address_need_quota_too_and_the_region_shows_it(project: Any, text: str) -> None:
    with world(project=project) as w:
        operation = w.insert()
        w.clock.sleep(2)
        assert w.error(operation)["message"] == text
        region = w.compute.regions().get(project="p", region="us-east5").execute()
        assert {row["metric"] for row in region["quotas"]} >= {"CPUS", "HDB_TOTAL_GB", "IN_USE_ADDRESSES"}


def test_a_running_instance_uses_disk_and_address_of_its_region() -> None:
    with world() as w:
        w.insert()
        w.until("RUNNING")
        region = w.compute.regions().get(project="p", region="us-east5").execute()
        usage = {row["metric"]: row["usage"] for row in region["quotas"]}
        assert (usage["HDB_TOTAL_GB"], usage["IN_USE_ADDRESSES"]) == (200.0, 1.0)
