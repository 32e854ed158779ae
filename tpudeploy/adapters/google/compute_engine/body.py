"""The JSON body of instances.insert, as Compute Engine v1 wants it and returns it. `render request` shows it.

Durations are objects with text; 64-bit numbers are text. This module imports no Google library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpudeploy import catalog
from tpudeploy.catalog import routers
from tpudeploy.domain.accelerator import IMAGE_PROJECT, AcceleratorType
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.host_fault import HostFault
from tpudeploy.domain.orphans import ResourceRequest
from tpudeploy.domain.slices import SliceRequest

_DEFAULT_ACCOUNT = "default"
_CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
# The document of v1 calls the key `googleapis.com/reservation-name`; gcloud sends this one.
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"
_MODELS: Mapping[Provisioning, str] = {
    Provisioning.ON_DEMAND: "STANDARD",
    Provisioning.SPOT: "SPOT",
    Provisioning.FLEX_START: "FLEX_START",
    Provisioning.RESERVED: "RESERVATION_BOUND",
}
_PROVISIONING = {name: model for model, name in _MODELS.items()}


def instance(request: SliceRequest) -> dict[str, Any]:
    """Return the body. Raise KeyError for a type that Compute Engine does not serve."""
    if request.accelerator_type in routers.MACHINES:
        return _ordinary_machine(request)
    slice_type = catalog.accelerator_type(request.accelerator_type)
    backend = None if slice_type is None else catalog.generation(slice_type.generation).compute_engine
    if slice_type is None or backend is None:
        raise KeyError(request.accelerator_type)
    body = {
        **_machine(request, slice_type.machine_type, backend.disk_type, IMAGE_PROJECT),
        "scheduling": _scheduling(request),
        "reservationAffinity": _reservation(request),
    }
    if slice_type.threads_per_core is not None:
        body["advancedMachineFeatures"] = {"threadsPerCore": slice_type.threads_per_core}
    # The other models are answered at once: nothing waits.
    if request.provisioning is Provisioning.FLEX_START:
        body["params"] = {"requestValidForDuration": {"seconds": f"{request.valid_until_seconds:.0f}"}}
    return body


def _ordinary_machine(request: SliceRequest) -> dict[str, Any]:
    """Return the body for a machine without accelerators. Google moves it to another host for maintenance."""
    scheduling = {"provisioningModel": "STANDARD", "onHostMaintenance": "MIGRATE", "automaticRestart": True}
    return {
        **_machine(request, request.accelerator_type, routers.DISK_TYPE, routers.IMAGE_PROJECT),
        "scheduling": scheduling,
    }


def _machine(request: SliceRequest, machine_type: str, disk_type: str, image_project: str) -> dict[str, Any]:
    """Return what every instance has."""
    image = request.machine_image or f"family/{request.runtime_version}"
    disk = {
        "diskSizeGb": str(request.boot_disk_gib),
        "diskType": f"zones/{request.zone}/diskTypes/{disk_type}",
        "sourceImage": f"projects/{image_project}/global/images/{image}",
    }
    account = request.service_account or _DEFAULT_ACCOUNT
    body: dict[str, Any] = {
        "name": request.name,
        "machineType": f"zones/{request.zone}/machineTypes/{machine_type}",
        "labels": dict(request.labels),
        "disks": [{"boot": True, "autoDelete": True, "initializeParams": disk}],
        "networkInterfaces": [_network(request)],
        "serviceAccounts": [{"email": account, "scopes": [_CLOUD_PLATFORM]}],
        "metadata": {"items": metadata_items(request.metadata)},
    }
    if request.tags:
        body["tags"] = {"items": list(request.tags)}
    return body


def host_report(fault: HostFault) -> dict[str, Any]:
    """Return the body of instances.reportHostAsFaulty, which allows no other schedule."""
    reason = {"behavior": fault.behavior.name, "description": fault.description}
    return {"disruptionSchedule": "IMMEDIATE", "faultReasons": [reason]}


def metadata_items(metadata: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in metadata.items()]


def metadata_of(instance_body: Mapping[str, Any]) -> dict[str, str]:
    items = instance_body.get("metadata", {}).get("items", ())
    return {str(item["key"]): str(item.get("value", "")) for item in items}


def provisioning_of(instance_body: Mapping[str, Any]) -> Provisioning:
    scheduling = instance_body.get("scheduling", {})
    return _PROVISIONING.get(str(scheduling.get("provisioningModel")), Provisioning.ON_DEMAND)


def accelerator_type_of(instance_body: Mapping[str, Any]) -> str:
    """Return the slice type of a machine, the type of an ordinary one, or "" for one that the catalogue lacks."""
    machine = last_word(instance_body.get("machineType"))
    if machine in routers.MACHINES:
        return machine
    slice_type: AcceleratorType | None = catalog.accelerator_type(machine)
    return "" if slice_type is None else slice_type.name


def read_back(instance_body: Mapping[str, Any]) -> ResourceRequest:
    """Return the request that made an instance. Its image is not shown: `initializeParams` are written only."""
    interface: Mapping[str, Any] = next(iter(instance_body.get("networkInterfaces", ())), {})
    disk: Mapping[str, Any] = next(iter(instance_body.get("disks", ())), {})
    run = instance_body.get("scheduling", {}).get("maxRunDuration", {}).get("seconds")
    account: Mapping[str, Any] = next(iter(instance_body.get("serviceAccounts", ())), {})
    return ResourceRequest(
        accelerator_type=accelerator_type_of(instance_body),
        provisioning=provisioning_of(instance_body),
        nodes=(str(instance_body.get("name", "")),),
        boot_disk_gib=int(disk["diskSizeGb"]) if "diskSizeGb" in disk else None,
        network=last_word(interface.get("network")) or None,
        subnetwork=last_word(interface.get("subnetwork")) or None,
        external_ip=bool(interface.get("accessConfigs")) if interface else None,
        # A template has the word of the request; a machine has the address of the account that it stands for.
        service_account=None if account.get("email") == _DEFAULT_ACCOUNT else account.get("email"),
        reservation=next(iter(instance_body.get("reservationAffinity", {}).get("values", ())), None),
        max_run_seconds=None if run is None else float(run),
        tags=tuple(instance_body.get("tags", {}).get("items", ())),
        labels=dict(instance_body.get("labels", {})),
        metadata=metadata_of(instance_body),
    )


def last_word(url: object) -> str:
    """Return the name at the end of a resource's URL, or "" for None."""
    return str(url or "").rpartition("/")[2]


def _scheduling(request: SliceRequest) -> dict[str, Any]:
    """Return how the instance is paid for and ended. TPUs cannot migrate, so maintenance terminates them.

    Google deletes what it takes away: a stopped instance would leave a disk that is billed.
    """
    is_standard = request.provisioning is Provisioning.ON_DEMAND
    scheduling: dict[str, Any] = {
        "provisioningModel": _MODELS[request.provisioning],
        "onHostMaintenance": "TERMINATE",
        "automaticRestart": is_standard,
    }
    if request.max_run_seconds is not None:
        scheduling["maxRunDuration"] = {"seconds": f"{request.max_run_seconds:.0f}"}
    if not is_standard or request.max_run_seconds is not None:
        scheduling["instanceTerminationAction"] = "DELETE"
    return scheduling


def _reservation(request: SliceRequest) -> dict[str, Any]:
    """Return the reservation to consume. One that is not named is never consumed, because the plan did not show it."""
    if request.reservation is None:
        return {"consumeReservationType": "NO_RESERVATION"}
    _, project, *_, name = request.reservation.split("/")  # projects/P/locations/Z/reservations/R
    value = name if project == request.project else f"projects/{project}/reservations/{name}"
    return {"consumeReservationType": "SPECIFIC_RESERVATION", "key": _RESERVATION_KEY, "values": [value]}


def _network(request: SliceRequest) -> dict[str, Any]:
    interface: dict[str, Any] = {}
    if request.network is not None:
        is_path = "/" in request.network
        interface["network"] = request.network if is_path else f"global/networks/{request.network}"
    if request.subnetwork is not None:
        is_path = "/" in request.subnetwork
        region = request.zone.region
        interface["subnetwork"] = (
            request.subnetwork if is_path else f"regions/{region}/subnetworks/{request.subnetwork}"
        )
    if request.external_ip:
        interface["accessConfigs"] = [{"type": "ONE_TO_ONE_NAT", "name": "External NAT"}]
    return interface
