"""Instances of Compute Engine, as Google's client meets them: insert, look, list, change, delete."""

from __future__ import annotations

from typing import Any

import pytest
from emulator.compute_world import ComputeWorld, body, refused, world

ID = "00000000-0000-4000-8000-00000000000a"


def test_an_insert_s_operation_is_open_until_the_machine_runs() -> None:
    with world() as w:
        operation = w.insert()
        assert (operation["status"], operation["operationType"]) == ("PENDING", "insert")
        assert w.until("RUNNING") == ["ABSENT", "PROVISIONING", "STAGING", "RUNNING"]
        finished = w.finish(operation)
        assert (finished["status"], finished["progress"], "error" in finished) == ("DONE", 100, False)
        assert w.call("get")["id"] == finished["targetId"]
        assert w.emulator.live() == {"us-east5-b": {"a": "RUNNING"}}
        assert w.emulator.billed() == ("a",)


def test_one_list_over_all_zones_finds_what_bears_a_label_in_pages() -> None:
    with world() as w:
        for name, zone in (("a", "us-east5-b"), ("b", "us-east5-b"), ("c", "europe-west4-a")):
            w.insert(name, zone, labels={"tpudeploy-owner": "x" if name != "b" else "y"})
            w.until("RUNNING", name, zone)
        assert w.listed() == ["c", "a", "b"]
        assert w.listed("labels.tpudeploy-owner=x") == ["c", "a"]
        assert w.listed('(labels.tpudeploy-owner = "x") AND (name=a)') == ["a"]
        assert w.listed("labels.tpudeploy-owner:*") == ["c", "a", "b"]
        assert w.listed("name eq [ab]") == ["a", "b"]
        first = w.instances.aggregatedList(project="p", maxResults=2)
        second = w.instances.aggregatedList_next(first, first.execute())
        assert [scope for scope, rows in second.execute()["items"].items() if "instances" in rows] == [
            "zones/us-east5-b"
        ]
        empty = first.execute()["items"]["zones/us-east5-a"]["warning"]
        assert empty["code"] == "NO_RESULTS_ON_PAGE"
        with refused(400, "invalid", "filter"):
            w.listed("name > a")


def test_a_repeated_request_id_begins_nothing_as_long_as_google_remembers_it() -> None:
    with world(compute_engine={"remembers_request_id": 60}) as w:
        first = w.insert(request_id=ID)
        assert first["clientOperationId"] == ID
        assert w.insert(request_id=ID)["name"] == first["name"]
        w.clock.sleep(61)
        with refused(409, "alreadyExists", "projects/p/zones/us-east5-b/instances/a"):
            w.insert(request_id=ID)
        with refused(400, "invalid", "UUID"):
            w.insert("b", request_id="x")


def test_a_deleted_instance_stops_and_is_gone_and_its_name_is_free() -> None:
    with world() as w:
        w.insert()
        w.until("RUNNING")
        operation = w.call("delete", requestId=ID)
        assert w.call("delete", requestId=ID)["name"] == operation["name"]
        assert w.until("ABSENT") == ["STOPPING", "ABSENT"]
        assert w.finish(operation)["status"] == "DONE"
        with refused(404, "notFound"):
            w.call("delete")
        w.insert()
        w.until("RUNNING")


def test_operations_are_found_by_the_caller_s_request_id_and_by_their_target() -> None:
    with world() as w:
        operation = w.insert(request_id=ID)
        w.insert("b")

        def names_for(expression: str) -> list[str]:
            call = w.compute.zoneOperations().list(project="p", zone="us-east5-b", filter=expression)
            return [row["name"] for row in call.execute().get("items", ())]

        assert names_for(f"clientOperationId={ID}") == [operation["name"]]
        assert names_for(f'(targetLink="{operation["targetLink"]}")') == [operation["name"]]
        assert names_for("operationType=delete") == []
        with refused(404, "notFound"):
            w.finish({**operation, "name": "operation-other"})


PARTS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "setMetadata": ("metadata", {"items": [{"key": "k", "value": "v"}]}, "fingerprint"),
    "setTags": ("tags", {"items": ["vllm"]}, "fingerprint"),
    "setLabels": ("labels", {"labels": {"k": "v"}}, "labelFingerprint"),
}


def _fingerprint(w: ComputeWorld, field: str) -> str:
    instance = w.call("get")
    return str(instance["labelFingerprint"] if field == "labels" else instance[field]["fingerprint"])


@pytest.mark.parametrize("method", PARTS)
def test_a_part_is_replaced_by_who_knows_its_fingerprint(method: str) -> None:
    field, change, key = PARTS[method]
    with world() as w:
        w.insert()
        w.until("RUNNING")
        fingerprints = {key: _fingerprint(w, field)}
        operations = [w.call(method, body={**change, **fingerprints}), w.call(method, body={**change, **fingerprints})]
        w.clock.sleep(10)
        assert "error" not in w.finish(operations[0])
        assert w.error(operations[1])["code"] == "CONDITION_NOT_MET"
        value = w.call("get")[field]
        assert value == change["labels"] if field == "labels" else value["items"] == change["items"]
        with refused(412, "conditionNotMet", "ingerprint"):
            w.call(method, body={**change, **fingerprints})
        with refused(412, "conditionNotMet"):
            w.call(method, body=change)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a name": ({"name": "A"}, "regex"),
    "a label": ({"labels": {"A": "b"}}, "label"),
    "a tag": ({"tags": {"items": ["A"]}}, "regex"),
    "no disk": ({"disks": []}, "boot disk"),
    "no network": ({"networkInterfaces": []}, "network interface"),
    "a field": ({"nodes": 3}, 'Unknown name "nodes"'),
    "a number": ({"canIpForward": "x"}, "TYPE_BOOL"),
    "migration": ({"scheduling": {"onHostMaintenance": "MIGRATE"}}, "onHostMaintenance"),
    "restarts of spot": ({"scheduling": {"automaticRestart": True}}, "automaticRestart be false"),
    "a queue for spot": ({"params": {"requestValidForDuration": {"seconds": "90"}}}, "FLEX_START alone"),
    "a short queue": (
        {"model": "FLEX_START", "params": {"requestValidForDuration": {"seconds": "60"}}},
        "must be at least 90 and less or equal to 7200 seconds",
    ),
    "a long run": ({"model": "FLEX_START", "scheduling": {"maxRunDuration": {"seconds": "604801"}}}, "604800"),
    "any reservation": ({"model": "FLEX_START", "reservationAffinity": {}}, "NO_RESERVATION"),
    "no reservation": ({"model": "RESERVATION_BOUND", "reservationAffinity": {}}, "reservation must be named"),
    "threads": ({"machine": "ct6e-standard-8t"}, "threadsPerCore"),
    "a machine": ({"machine": "n2-standard-4"}, "must provide existing machine type"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_request_is_refused_before_anything_is_made(what: str) -> None:
    settings, text = BAD[what]
    with world() as w:
        with refused(400, "invalid", text):
            w.execute("insert", body=body(**{"name": "a", **settings}))
        assert w.emulator.live() == {}


@pytest.mark.parametrize(
    ("disk", "text"),
    [
        ({"diskType": "zones/z/diskTypes/pd-ssd"}, "pd-ssd disk type cannot be used by"),
        ({"diskSizeGb": "9"}, "smaller than the image"),
        ({"sourceImage": "projects/debian-cloud/global/images/family/debian-7"}, "image resource cannot be found"),
    ],
)
def test_a_disk_must_fit_machine_and_image(disk: dict[str, str], text: str) -> None:
    request = body()
    request["disks"][0]["initializeParams"] |= disk
    with world() as w, refused(400, "invalid", text):
        w.execute("insert", body=request)


def test_v5e_is_refused_at_this_door() -> None:
    text = "This user agent is not allowed to use the machine type [ct5lp-hightpu-1t]"
    with world() as w, refused(403, "forbidden", text):
        w.insert(machine="ct5lp-hightpu-1t", zone="us-central1-a")


def test_a_zone_that_the_catalogue_does_not_have_is_unknown() -> None:
    with world() as w, refused(400, "invalid", "Unknown zone"):
        w.insert(zone="us-east1-b")
