"""Trouble as Google's client of Compute Engine meets it: the rows of a scenario strike both APIs, each in its words."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any

import pytest
from emulator.cloud_world import QUICK, ZONE
from emulator.compute_world import ComputeWorld, refused, world
from googleapiclient.errors import HttpError
from real_time import DEADLINE

AT_ONCE = [
    ("rate-limit", 403, "rateLimitExceeded", "Rate Limit Exceeded"),
    ("iam-denied", 403, "forbidden", "Required 'compute.instances.create' permission for 'projects/p/zones/us-east5-b"),
    ("api-off", 403, "forbidden", "Compute Engine API has not been used in project p before or it is disabled."),
    ("no-subnetwork", 400, "invalid", "No default subnetwork was found in region us-east5"),
    ("org-policy", 412, "conditionNotMet", "violates constraint constraints/gcp.resourceLocations"),
    ("type-unsupported", 400, "invalid", "must provide existing machine type"),
    ("unavailable", 503, "backendError", "currently unavailable"),
    ("backend-error", 500, "backendError", "Internal error"),
]
IN_THE_OPERATION = [
    ("stockout", "ZONE_RESOURCE_POOL_EXHAUSTED", "(state:STOCKOUT"),
    ("insufficient-capacity", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "does not have enough resources"),
    ("quota-zero", "QUOTA_EXCEEDED", "Quota 'PREEMPTIBLE_TPU_V6E' exceeded. Limit: 0.0 in region us-east5."),
    ("ip-quota", "QUOTA_EXCEEDED", "IN_USE_ADDRESSES"),
    ("reservation-missing", "RESOURCE_NOT_FOUND", "Reservation not found"),
    ("model-unsupported", "INVALID_USAGE", "SPOT"),
    ("internal-error", "INTERNAL_ERROR", "Internal error"),
]


@pytest.mark.parametrize(("fault", "http", "reason", "text"), AT_ONCE)
def test_an_insert_refused_at_once_leaves_nothing_behind(fault: str, http: int, reason: str, text: str) -> None:
    with world({"fault": fault, "times": 1}) as w:
        with refused(http, reason, text):
            w.insert()
        assert w.emulator.live() == {}
        w.insert()
        w.until("RUNNING")


@pytest.mark.parametrize(("fault", "code", "text"), IN_THE_OPERATION)
def test_an_insert_refused_in_its_operation_leaves_nothing_behind(fault: str, code: str, text: str) -> None:
    with world({"fault": fault}) as w:
        operation = w.insert()
        w.clock.sleep(10)
        error = w.error(operation)
        assert error["code"] == code
        assert text in error["message"]
        assert w.emulator.live() == {}


def test_a_late_failure_shows_the_instance_before() -> None:
    with world({"fault": "internal-error"}) as w:
        w.insert()
        assert w.until("STAGING") == ["ABSENT", "PROVISIONING", "STAGING"]
        w.until("ABSENT")


def test_a_row_strikes_one_api_alone_where_it_names_its_method() -> None:
    rows = [{"fault": "stockout", "method": "queuedResources.create"}, {"fault": "unavailable", "method": "compute.*"}]
    with world(*rows) as w:
        with refused(503, "backendError"):
            w.insert()
        w.create("q")
        w.clock.sleep(5)
        assert w.emulator.live() == {}


def test_a_queued_resource_and_an_instance_of_one_name_are_two() -> None:
    with world() as w:
        w.create("a")
        w.insert("a")
        w.clock.sleep(10)
        assert w.emulator.live() == {ZONE: {"a": "ACTIVE", "instances/a": "RUNNING"}}
        assert w.emulator.billed() == ("a", "a")


def test_a_zone_can_be_full_for_one_api_alone() -> None:
    rows = [{"habit": "common-reopening", "zone": ZONE, "after": 60, "api": "tpu"}]
    with world({"fault": "stockout", "zone": "us-east5-a", "api": "compute"}, habits=rows) as w:
        w.create("q")
        w.insert("a")
        w.create("r", "us-east5-a")
        w.insert("b", "us-east5-a")
        w.clock.sleep(10)
        assert w.emulator.live() == {ZONE: {"a": "RUNNING"}, "us-east5-a": {"r": "ACTIVE"}}


def test_a_lost_reply_leaves_an_operation_that_the_request_id_finds() -> None:
    id_ = "00000000-0000-4000-8000-00000000000b"
    with world({"fault": "lost-reply", "times": 1}) as w:
        with pytest.raises(ConnectionResetError):
            w.insert(request_id=id_)
        call = w.compute.zoneOperations().list(project="p", zone=ZONE, filter=f'clientOperationId = "{id_}"')
        (operation,) = call.execute()["items"]
        assert w.insert(request_id=id_)["name"] == operation["name"]
        w.until("RUNNING")


def test_a_refused_connection_carries_nothing_out() -> None:
    with world({"fault": "connection-refused", "method": "compute.instances.insert", "times": 1}) as w:
        with pytest.raises(ConnectionResetError):
            w.insert()
        assert w.emulator.live() == {}


@pytest.mark.parametrize(
    ("fault", "http", "reason"), [("failed-reply", 503, "backendError"), ("already-exists", 409, "alreadyExists")]
)
def test_a_reply_can_deny_what_was_carried_out(fault: str, http: int, reason: str) -> None:
    with world({"fault": fault, "times": 1}) as w:
        with refused(http, reason):
            w.insert()
        w.until("RUNNING")


def test_an_instance_can_be_visible_late_or_missing_in_lists() -> None:
    with world({"fault": "hidden", "name": "a", "seconds": 70}, {"fault": "unlisted", "name": "b", "seconds": 70}) as w:
        w.insert("a")
        w.insert("b")
        w.clock.sleep(60)
        assert (w.status("a"), w.status("b"), w.listed()) == ("ABSENT", "RUNNING", [])
        w.clock.sleep(10)
        assert (w.status("a"), w.listed()) == ("RUNNING", ["a", "b"])


def test_an_instance_can_stay_invisible_for_a_while_after_its_operation() -> None:
    with world({"fault": "hidden-after-operation", "seconds": 60}) as w:
        operation = w.insert("a")
        while w.finish(operation)["status"] != "DONE":
            assert (w.status("a"), w.listed()) == ("ABSENT", [])
            w.clock.sleep(1)
        w.clock.sleep(58)
        assert w.status("a") == "ABSENT"
        w.clock.sleep(2)
        assert (w.status("a"), w.listed()) == ("RUNNING", ["a"])


def test_the_operations_of_an_instance_can_stay_open_for_ever() -> None:
    with world({"fault": "operation-never-ends"}, {"fault": "deletion-hangs"}) as w:
        inserted = w.insert("a")
        w.until("RUNNING")
        deleted = w.call("delete")
        w.clock.sleep(86_400)
        assert w.status("a") == "STOPPING"
        assert [w.finish(each)["status"] for each in (inserted, deleted)] == ["RUNNING", "RUNNING"]


def test_an_insert_s_operation_can_end_late_or_lie() -> None:
    rows: list[dict[str, Any]] = [
        {"fault": "slow-operation", "name": "a", "seconds": 500},
        {"fault": "operation-fails", "name": "b"},
    ]
    with world(*rows) as w:
        late, lying = w.insert("a"), w.insert("b")
        w.until("RUNNING")
        w.until("RUNNING", "b")
        assert w.finish(late)["status"] == "RUNNING"
        assert w.error(lying)["code"] == "INTERNAL_ERROR"
        w.clock.sleep(500)
        assert w.finish(late)["status"] == "DONE"
        assert w.status("b") == "RUNNING"


@pytest.mark.parametrize(("outcome", "status"), [("running", "RUNNING"), ("done", "DONE"), ("failed", "DONE")])
def test_a_deletion_while_provisioning_can_be_taken_and_ignored(outcome: str, status: str) -> None:
    with world({"fault": "deletion-ignored", "outcome": outcome}, timings=QUICK | {"provisioning": 20}) as w:
        w.insert()
        w.until("PROVISIONING")
        operation = w.call("delete")
        w.clock.sleep(5)
        finished = w.finish(operation)
        assert (finished["status"], "error" in finished) == (status, outcome == "failed")
        w.until("RUNNING")
        w.call("delete")
        w.until("ABSENT")


def test_an_ignored_deletion_can_come_into_force_when_the_machine_runs() -> None:
    with world({"fault": "deletion-ignored", "takes_effect": True}) as w:
        w.insert()
        w.until("PROVISIONING")
        w.call("delete")
        w.until("STOPPING")
        w.until("ABSENT")


def test_a_deletion_can_be_taken_and_fail() -> None:
    with world({"fault": "delete-refused", "times": 1}) as w:
        w.insert()
        w.until("RUNNING")
        operation = w.call("delete")
        w.clock.sleep(2)
        assert w.error(operation)["code"] == "RESOURCE_NOT_READY"
        assert w.status() == "RUNNING"


def test_an_instance_can_vanish_without_a_word() -> None:
    with world({"fault": "vanish", "after": 10}) as w:
        w.insert()
        w.until("RUNNING")
        w.clock.sleep(10)
        assert w.status() == "ABSENT"
        operations = w.compute.zoneOperations().list(project="p", zone=ZONE).execute()["items"]
        assert [row["operationType"] for row in operations] == ["insert"]


def _everywhere(w: ComputeWorld, *, partial: bool) -> dict[str, Any]:
    request = w.instances.aggregatedList(project="p")
    if partial:  # the document describes this parameter and does not declare it
        request.uri += "&returnPartialSuccess=true"
    answer: dict[str, Any] = request.execute(num_retries=0)
    return answer


def test_a_silent_zone_fails_a_list_that_takes_no_partial_answer_and_is_named_in_one_that_does() -> None:
    with world({"fault": "unreachable", "zones": "us-east5-*"}) as w:
        w.insert("a")
        w.insert("b", zone="europe-west4-a")
        w.clock.sleep(10)
        with refused(503, "backendError"):
            _everywhere(w, partial=False)
        with refused(503, "backendError"):
            w.execute("list")
        answer = _everywhere(w, partial=True)
        rows = [one["name"] for scope in answer["items"].values() for one in scope.get("instances", ())]
        warned = {z for z, scope in answer["items"].items() if scope.get("warning", {}).get("code") == "UNREACHABLE"}
        assert rows == ["b"]
        assert {place.rpartition("/")[2] for place in [*warned, *answer.get("unreachables", ())]} == {
            f"us-east5-{letter}" for letter in "abc"
        }


def test_a_parameter_or_a_body_that_google_does_not_know_is_refused_in_this_api_s_form() -> None:
    with world() as w:
        connection = HTTPConnection(w.emulator.host, timeout=DEADLINE)
        path = f"/compute/v1/projects/p/zones/{ZONE}/instances?colour=red"
        connection.request("GET", path)
        reply = connection.getresponse()
        error = json.loads(reply.read())["error"]
        connection.close()
        assert (reply.status, error["errors"][0]["reason"], "status" in error) == (400, "invalid", False)


def test_a_method_that_is_not_served_says_so() -> None:
    with world() as w:
        with pytest.raises(HttpError) as caught:
            w.instances.suspend(project="p", zone=ZONE, instance="a").execute(num_retries=0)
        assert caught.value.status_code == 501
        assert any("suspend" in what for what in w.emulator.unsupported)
