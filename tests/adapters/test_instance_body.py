"""What Compute Engine is asked for: bodies that its document accepts, for every size and provisioning model."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from tpudeploy import catalog
from tpudeploy.adapters.google.compute_engine.body import instance, read_back
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import SliceRequest
from tpudeploy.emulator import discovery

RESERVATION = "projects/p/locations/us-east5-a/reservations/r"
REQUEST = SliceRequest(
    name="gemma-0123abcd-0-0",
    project="p",
    zone=Zone("us-east5-a"),
    provisioning=Provisioning.FLEX_START,
    accelerator_type="v6e-1",
    runtime_version="ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e",
    boot_disk_gib=200,
    metadata={"tpudeploy-spec": "f" * 16, "enable-guest-attributes": "TRUE"},
    labels={"tpudeploy-lineage": "0123abcd", "team": "search"},
    network="default",
    subnetwork=None,
    external_ip=True,
    tags=("vllm",),
    service_account=None,
    reservation=None,
    max_run_seconds=14_400.0,
    valid_until_seconds=7200.0,
    backend=Backend.GCE_INSTANCE,
)


def _asking(provisioning: Provisioning, **changes: Any) -> SliceRequest:
    reservation = RESERVATION if provisioning is Provisioning.RESERVED else None
    return replace(REQUEST, provisioning=provisioning, reservation=reservation, **changes)


@pytest.mark.parametrize("provisioning", Provisioning)
@pytest.mark.parametrize("size", ["v6e-1", "v6e-4", "v6e-8"])
def test_the_document_of_compute_engine_accepts_every_request_as_it_is(provisioning: Provisioning, size: str) -> None:
    body = instance(_asking(provisioning, accelerator_type=size))
    assert discovery.accept(body, "Instance", "compute.v1", at="resource") == body


def test_a_flex_start_request_is_what_was_granted_elsewhere() -> None:
    assert instance(REQUEST) == {
        "name": "gemma-0123abcd-0-0",
        "machineType": "zones/us-east5-a/machineTypes/ct6e-standard-1t",
        "labels": {"tpudeploy-lineage": "0123abcd", "team": "search"},
        "tags": {"items": ["vllm"]},
        "disks": [
            {
                "boot": True,
                "autoDelete": True,
                "initializeParams": {
                    "diskSizeGb": "200",
                    "diskType": "zones/us-east5-a/diskTypes/hyperdisk-balanced",
                    "sourceImage": "projects/ubuntu-os-accelerator-images/global/images/family/"
                    "ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e",
                },
            }
        ],
        "networkInterfaces": [
            {
                "network": "global/networks/default",
                "accessConfigs": [{"type": "ONE_TO_ONE_NAT", "name": "External NAT"}],
            }
        ],
        "serviceAccounts": [{"email": "default", "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}],
        "metadata": {
            "items": [
                {"key": "tpudeploy-spec", "value": "f" * 16},
                {"key": "enable-guest-attributes", "value": "TRUE"},
            ]
        },
        "scheduling": {
            "provisioningModel": "FLEX_START",
            "onHostMaintenance": "TERMINATE",
            "automaticRestart": False,
            "maxRunDuration": {"seconds": "14400"},
            "instanceTerminationAction": "DELETE",
        },
        "params": {"requestValidForDuration": {"seconds": "7200"}},
        "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
    }


@pytest.mark.parametrize(
    ("provisioning", "scheduling"),
    [
        (
            Provisioning.ON_DEMAND,
            {"provisioningModel": "STANDARD", "onHostMaintenance": "TERMINATE", "automaticRestart": True},
        ),
        (
            Provisioning.SPOT,
            {
                "provisioningModel": "SPOT",
                "onHostMaintenance": "TERMINATE",
                "automaticRestart": False,
                "instanceTerminationAction": "DELETE",
            },
        ),
    ],
)
def test_only_what_never_ends_is_restarted_and_only_flex_start_waits(
    provisioning: Provisioning, scheduling: dict[str, Any]
) -> None:
    body = instance(_asking(provisioning, max_run_seconds=None))
    assert body["scheduling"] == scheduling
    assert "params" not in body


def test_an_on_demand_instance_with_an_end_is_deleted_at_it() -> None:
    assert instance(_asking(Provisioning.ON_DEMAND))["scheduling"]["instanceTerminationAction"] == "DELETE"


@pytest.mark.parametrize(
    ("reservation", "value"),
    [(RESERVATION, "r"), ("projects/q/locations/us-east5-a/reservations/r", "projects/q/reservations/r")],
)
def test_a_reservation_is_named_alone_or_with_the_project_that_shares_it(reservation: str, value: str) -> None:
    body = instance(replace(REQUEST, provisioning=Provisioning.RESERVED, reservation=reservation))
    assert body["scheduling"]["provisioningModel"] == "RESERVATION_BOUND"
    assert body["reservationAffinity"] == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [value],
    }


def test_networks_are_named_by_path_and_a_private_instance_has_no_external_address() -> None:
    body = instance(replace(REQUEST, network="vpc", subnetwork="sub", external_ip=False))
    assert body["networkInterfaces"] == [
        {"network": "global/networks/vpc", "subnetwork": "regions/us-east5/subnetworks/sub"}
    ]
    path = "projects/host/global/networks/vpc"
    assert instance(replace(REQUEST, network=path))["networkInterfaces"][0]["network"] == path


def test_eight_chips_in_one_machine_are_asked_for_with_one_thread_a_core() -> None:
    threads = {
        size: instance(replace(REQUEST, accelerator_type=size)).get("advancedMachineFeatures")
        for size in ("v6e-1", "v6e-4", "v6e-8")
    }
    assert threads == {"v6e-1": None, "v6e-4": None, "v6e-8": {"threadsPerCore": 1}}


@pytest.mark.parametrize("provisioning", Provisioning)
def test_what_was_asked_is_read_back_from_what_is_listed(provisioning: Provisioning) -> None:
    request = _asking(provisioning, subnetwork="sub", service_account="a@p.iam.gserviceaccount.com")
    body = instance(request)
    # Google leaves the parameters of the disk out, and gives its size.
    requests = read_back({**body, "disks": [{"boot": True, "diskSizeGb": "200"}]})
    assert requests.nodes == (request.name,)
    assert requests.reservation == ("r" if provisioning is Provisioning.RESERVED else None)
    for name in (f.name for f in fields(requests) if f.name not in {"nodes", "runtime_version", "reservation"}):
        assert getattr(requests, name) == getattr(request, name), name


def test_every_single_host_machine_has_one_type() -> None:
    singles = [t for t in catalog.accelerator_types() if t.hosts == 1]
    assert [catalog.accelerator_type(t.machine_type) for t in singles] == singles
