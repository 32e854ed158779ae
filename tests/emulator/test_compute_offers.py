"""What Compute Engine says it has, and the form of all that it says: each reply is held against Google's document."""

from __future__ import annotations

from typing import Any

import pytest
from emulator.cloud_world import world as cloud_world
from emulator.compute_world import FAMILY, ComputeWorld, body, refused, world
from emulator.test_cloud_any_body import TREES
from emulator.test_services import problems
from googleapiclient.errors import HttpError
from hypothesis import HealthCheck, given, settings

from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain.accelerator import Backend, Generation

PROJECT = "ubuntu-os-accelerator-images"


def test_a_machine_type_is_listed_in_the_zones_of_the_catalogue_alone() -> None:
    with world(offers={"us-west4-a": ["v6e-1", "v6e-16"]}) as w:
        calls = w.compute.machineTypes()
        items = calls.aggregatedList(project="p", filter="name=ct6e-standard-1t").execute()["items"]
        zones = {scope.removeprefix("zones/") for scope, rows in items.items() if "machineTypes" in rows}
        assert {"us-east5-b", "us-west4-a"} <= zones
        one = calls.get(project="p", zone="us-west4-a", machineType="ct6e-standard-1t").execute()
        assert (one["guestCpus"], one["accelerators"]) == (
            44,
            [{"guestAcceleratorType": "ct6e", "guestAcceleratorCount": 1}],
        )
        with refused(404, "notFound"):
            calls.get(project="p", zone="us-west4-a", machineType="ct6e-standard-4t").execute()
        with refused(404, "notFound"):
            calls.get(project="p", zone="us-east1-b", machineType="ct6e-standard-1t").execute()
        with refused(400, "invalid", "must provide existing machine type"):
            w.insert(zone="us-west4-a", machine="ct6e-standard-4t")


@pytest.mark.parametrize("generation", GENERATIONS, ids=lambda each: each.name)
def test_each_api_creates_the_types_that_the_catalogue_has_for_it_alone(generation: Generation) -> None:
    zone, elsewhere = generation.zones[0], "us-east4-b"
    with world() as w, cloud_world() as tpu:
        parent = f"projects/p/locations/{zone}"
        calls = tpu.alpha.projects().locations().acceleratorTypes()
        at_tpu_api = {t.name for t in generation.types if Backend.QUEUED_RESOURCE in t.backends}
        if at_tpu_api:
            listed = {each["type"] for each in calls.list(parent=parent).execute()["acceleratorTypes"]}
            assert at_tpu_api == listed & {t.name for t in generation.types}
        for slice_type in (t for t in generation.types if t.hosts == 1):
            name = f"a-{slice_type.name}"
            node = {"acceleratorType": slice_type.name, "runtimeVersion": "tpu-ubuntu2204-base"}
            if slice_type.name in at_tpu_api:
                tpu.create(name, zone, node=node)
            else:
                with pytest.raises(HttpError, match=r"not supported|could not be found"):
                    tpu.create(name, zone, node=node)
            with pytest.raises(HttpError, match="not supported"):
                tpu.create(name, elsewhere, node=node)
            machine: dict[str, Any] = {"machine": slice_type.machine_type}
            if slice_type.threads_per_core is not None:
                machine["advancedMachineFeatures"] = {"threadsPerCore": slice_type.threads_per_core}
            if Backend.GCE_INSTANCE in slice_type.backends:
                # Only its own zones have the machine; what its disk or image lacks would be refused afterwards.
                with refused(400, "invalid", "Unknown zone"):
                    w.insert(zone=elsewhere, **machine)
                w.insert(name, zone=zone, **machine)
            else:
                with refused(403, "forbidden", "not allowed to use the machine type"):
                    w.insert(name, zone=zone, **machine)


def test_a_family_has_another_image_each_week_and_the_pinned_one_can_still_be_had() -> None:
    with world() as w:
        images = w.compute.images()
        first = images.getFromFamily(project=PROJECT, family=FAMILY).execute()
        w.clock.sleep(7 * 86_400)
        second = images.getFromFamily(project=PROJECT, family=FAMILY).execute()
        assert first["name"] != second["name"]
        for image in (first["selfLink"], f"projects/{PROJECT}/global/images/{first['name']}"):
            request = body(f"a{len(image)}")
            request["disks"][0]["initializeParams"]["sourceImage"] = image
            w.execute("insert", body=request)
        for project, family in ((PROJECT, "other"), ("p", FAMILY)):
            with refused(404, "notFound"):
                images.getFromFamily(project=project, family=family).execute()


def test_an_image_that_was_not_built_yet_is_not_found() -> None:
    request = body()
    request["disks"][0]["initializeParams"]["sourceImage"] = f"projects/{PROJECT}/global/images/{FAMILY}-v20991231"
    with world() as w, refused(400, "invalid", "cannot be found"):
        w.execute("insert", body=request)


def test_an_insert_into_a_network_without_a_subnetwork_there_is_refused() -> None:
    networks: Any = {"networks": {"default": {"us-east1": {}}}}
    with world(project=networks) as w, refused(400, "invalid", "does not have a subnetwork"):
        w.insert()


def _replies(w: ComputeWorld) -> dict[str, dict[str, Any]]:
    """One reply of each schema, in a world in which as much as possible is said."""
    inserted = w.insert("a", model="STANDARD", labels={"k": "v"}, tags={"items": ["t"]}, metadata={"k": "v"})
    w.insert("f", model="FLEX_START", metadata={"enable-guest-attributes": "TRUE"})
    failed = w.insert("full")
    w.until("RUNNING")
    w.until("RUNNING", "f")
    w.clock.sleep(10)
    zonal, at = w.compute.zoneOperations(), {"project": "p", "zone": "us-east5-b"}
    types = w.compute.machineTypes()
    return {
        "Operation": w.finish(inserted),
        "Operation failed": w.finish(failed),
        "OperationList": zonal.list(**at).execute(),
        "Instance": w.call("get"),
        "Instance flex": w.call("get", "f"),
        "InstanceList": w.execute("list"),
        "InstanceAggregatedList": w.instances.aggregatedList(project="p").execute(),
        "GuestAttributes": w.call("getGuestAttributes", "f", queryPath="tpudeploy/"),
        "SerialPortOutput": w.call("getSerialPortOutput"),
        "MachineType": types.get(**at, machineType="ct6e-standard-1t").execute(),
        "MachineTypeAggregatedList": types.aggregatedList(project="p").execute(),
        "Image": w.compute.images().getFromFamily(project=PROJECT, family=FAMILY).execute(),
        "Region": w.compute.regions().get(project="p", region="us-east5").execute(),
    }


def test_every_reply_is_in_the_form_that_google_s_document_gives() -> None:
    rows: list[dict[str, Any]] = [
        {"fault": "stockout", "name": "full"},
        {"fault": "maintenance", "name": "a", "after": 1},
    ]
    with world(*rows) as w:
        replies = _replies(w)
    for schema, reply in replies.items():
        assert list(problems(reply, schema.partition(" ")[0], "compute.v1", at=schema)) == []


def test_a_reply_can_be_cut_to_the_fields_that_are_asked_for() -> None:
    with world() as w:
        w.insert(labels={"k": "v"})
        w.until("RUNNING")
        assert w.call("get", fields="name,status") == {"name": "a", "status": "RUNNING"}
        listed = w.instances.aggregatedList(project="p", fields="items/*/instances(name,labels)").execute()
        assert listed["items"]["zones/us-east5-b"] == {"instances": [{"name": "a", "labels": {"k": "v"}}]}
        with pytest.raises(HttpError, match="fields"):
            w.call("get", fields="nome")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=TREES)
def test_any_body_is_taken_or_refused(tree: Any) -> None:
    with world() as w:
        for request in (tree, *({**body(), field: tree} for field in ("disks", "metadata", "scheduling", "params"))):
            try:
                w.execute("insert", body=request)
            except HttpError as error:
                if error.status_code not in (400, 409):
                    raise
            except (TypeError, ValueError):
                pass  # Google's client cannot send it
