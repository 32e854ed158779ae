"""The contents of an insert, checked as Compute Engine checks them before anything is created.

Most texts are UNVERIFIED: a client can rely on the HTTP status and on the reason alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tpudeploy import catalog
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.names import LABEL_KEY, LABEL_VALUE
from tpudeploy.emulator import create_request, discovery, listings
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.compute_engine import networks, texts
from tpudeploy.emulator.compute_engine.offers import image_exists, is_served, ordinary_machine
from tpudeploy.emulator.records import IMAGE_DISK_GB
from tpudeploy.emulator.wire import ApiCall

DOCUMENT = "compute.v1"
_NAME = r"(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)"
_REQUEST_ID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_FLEX_RUN = (600, 604_800)
_RUN = (30, 120 * 86_400)
_VALID = (90, 7_200)
_RESERVATION_KEYS = ("compute.googleapis.com/reservation-name", "googleapis.com/reservation-name")


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertRequest:
    """A request that is well formed, for a machine type that is offered here."""

    body: dict[str, Any]
    accelerator: AcceleratorType
    model: str


def read(cloud: Cloud, call: ApiCall) -> InsertRequest:
    """Return the request of a call. Raise ApiError for what Compute Engine refuses at once."""
    body = discovery.accept(call.body or {}, "Instance", DOCUMENT, at="resource")
    check_request_id(call)
    check_name(body)
    return _check(cloud, call, body, _accelerator(cloud, call, body))


def read_properties(cloud: Cloud, call: ApiCall, properties: Mapping[str, Any]) -> InsertRequest:
    """Return the properties of a template as a request for one of its instances, in the zone of the call.

    A template names machine and disk type without a zone; one that is checked before its group has no zone.
    """
    machine = str(properties.get("machineType", ""))
    zone = call.zone or next((z for z in listings.zones(cloud) if z.startswith(f"{call.query['region']}-")), "")
    if "/" in machine:
        raise texts.invalid("properties.machineType", machine, "A template names the machine type alone.")
    body = {**properties, "machineType": f"zones/{zone}/machineTypes/{machine}"}
    place = replace(call, zone=zone)
    if call.zone:
        return _check(cloud, place, body, _accelerator(cloud, place, body))
    check_labels(body.get("labels", {}))
    check_metadata(body.get("metadata", {}))
    check_tags(body.get("tags", {}))
    type_ = next((t for t in catalog.accelerator_types() if t.machine_type == machine and t.hosts == 1), None)
    if type_ is None:
        raise texts.refuse("type-unsupported", zone=zone, machine=machine)
    return InsertRequest(body=body, accelerator=type_, model="")


def check_name(body: Mapping[str, Any]) -> None:
    if not re.fullmatch(_NAME, body.get("name", "")):
        raise texts.invalid("name", body.get("name", ""), f"Must be a match of regex '{_NAME}'")


def _check(cloud: Cloud, call: ApiCall, body: dict[str, Any], accelerator: AcceleratorType) -> InsertRequest:
    check_labels(body.get("labels", {}))
    check_metadata(body.get("metadata", {}))
    check_tags(body.get("tags", {}))
    _check_disk(cloud, body, accelerator)
    _check_networks(cloud, call, body)
    model = _check_scheduling(body, can_migrate=not accelerator.chips)
    _check_reservation(body, model)
    threads, required = body.get("advancedMachineFeatures", {}).get("threadsPerCore"), accelerator.threads_per_core
    if required is not None and threads != required:
        text = f"It must be {required} for this machine type."
        raise texts.invalid("advancedMachineFeatures.threadsPerCore", threads, text)
    return InsertRequest(body=body, accelerator=accelerator, model=model)


def check_request_id(call: ApiCall) -> None:
    request_id = call.query.get("requestId", "")
    if request_id and not _REQUEST_ID.fullmatch(request_id):
        raise texts.invalid("requestId", request_id, "Must be a valid UUID.")


def check_labels(labels: Mapping[str, str]) -> None:
    for key, value in labels.items():
        if not LABEL_KEY.fullmatch(key) or not LABEL_VALUE.fullmatch(value):
            raise texts.invalid("labels", f"{key}={value}", "Label keys and values must match their regex.")


def check_metadata(metadata: Mapping[str, Any]) -> None:
    keys = [item.get("key", "") for item in metadata.get("items", ())]
    for key in keys:
        if keys.count(key) > 1:
            raise texts.invalid("metadata.items", key, "Duplicate metadata key.")
    create_request.check_metadata({item.get("key", ""): item.get("value", "") for item in metadata.get("items", ())})


def check_tags(tags: Mapping[str, Any]) -> None:
    for tag in tags.get("items", ()):
        if not re.fullmatch(_NAME, tag):
            raise texts.invalid("tags.items", tag, f"Must be a match of regex '{_NAME}'")


def _accelerator(cloud: Cloud, call: ApiCall, body: Mapping[str, Any]) -> AcceleratorType:
    """Return what the machine type is. One that is not sold here exists in its zones and is refused all the same."""
    place, _, machine = body.get("machineType", "").rpartition("/")
    if call.zone not in listings.zones(cloud):
        raise texts.refuse("zone-unsupported", zone=call.zone)
    machines = listings.machines(cloud, call.zone)
    type_ = next((t for t in machines if t.machine_type == machine), None) or ordinary_machine(machine)
    if type_ is None or not place.endswith(f"zones/{call.zone}/machineTypes"):
        raise texts.refuse("type-unsupported", zone=call.zone, machine=machine)
    if not is_served(type_):
        raise texts.refuse("machine-refused", machine=machine)
    return type_


def _check_disk(cloud: Cloud, body: Mapping[str, Any], accelerator: AcceleratorType) -> None:
    boot = [disk for disk in body.get("disks", ()) if disk.get("boot")]
    if len(boot) != 1:
        raise texts.invalid("disks", len(boot), "Exactly one boot disk is required.")
    settings = boot[0].get("initializeParams", {})
    kind = settings.get("diskType", "pd-standard").rpartition("/")[2]
    offer = catalog.generation(accelerator.generation).compute_engine if accelerator.generation else None
    # E2 has persistent disks alone, and each TPU machine one kind of disk.
    fits = kind.startswith("pd-") if not accelerator.chips else offer is None or kind == offer.disk_type
    if not fits:
        text = f"{kind} disk type cannot be used by {accelerator.machine_type}."
        raise texts.invalid("disks[0].initializeParams.diskType", kind, text)
    if int(settings.get("diskSizeGb", IMAGE_DISK_GB)) < IMAGE_DISK_GB:
        text = f"Requested disk size cannot be smaller than the image size ({IMAGE_DISK_GB} GB)"
        raise texts.invalid("disks[0].initializeParams.diskSizeGb", settings["diskSizeGb"], text)
    image = settings.get("sourceImage", "")
    if not image_exists(cloud, image):
        text = "The referenced image resource cannot be found."
        raise texts.invalid("disks[0].initializeParams.sourceImage", image, text)


def _check_networks(cloud: Cloud, call: ApiCall, body: Mapping[str, Any]) -> None:
    interfaces = body.get("networkInterfaces", ())
    if not interfaces:
        raise texts.invalid("networkInterfaces", "", "At least one network interface is required.")
    region = call.zone.rpartition("-")[0]
    for interface in interfaces:
        link = interface.get("subnetwork", interface.get("network", "default"))
        name = link.rpartition("/")[2]
        if networks.find_subnetwork(cloud, name, region) is None:
            text = f"Network projects/{call.project}/global/networks/{name} does not have a subnetwork in {region}."
            raise texts.invalid("networkInterfaces[0].network", link, text)


def _check_scheduling(body: dict[str, Any], *, can_migrate: bool) -> str:
    """Complete the scheduling with Compute Engine's defaults, and return the provisioning model."""
    scheduling = body.get("scheduling", {})
    model = str(scheduling.get("provisioningModel", "SPOT" if scheduling.get("preemptible") else "STANDARD"))
    usual = {"provisioningModel": model, "onHostMaintenance": "MIGRATE", "automaticRestart": model == "STANDARD"}
    body["scheduling"] = scheduling = {**usual, "preemptible": model == "SPOT", **scheduling}
    if scheduling["onHostMaintenance"] != "TERMINATE" and not can_migrate:
        raise texts.invalid("scheduling.onHostMaintenance", "MIGRATE", "It must be TERMINATE for this machine type.")
    if model == "SPOT":
        if scheduling["automaticRestart"]:
            text = "Scheduling must have automaticRestart be false when preemptible is true."
            raise texts.invalid("scheduling", model, text)
        scheduling.setdefault("instanceTerminationAction", "STOP")
    run = scheduling.get("maxRunDuration")
    if model == "FLEX_START" and run is None:
        raise texts.invalid("scheduling.maxRunDuration", "", "It is required by the provisioning model FLEX_START.")
    if run is not None:
        _check_seconds("scheduling.maxRunDuration", run, _FLEX_RUN if model == "FLEX_START" else _RUN)
    if (run is not None or model == "FLEX_START") and "instanceTerminationAction" not in scheduling:
        raise texts.invalid("scheduling.instanceTerminationAction", "", "It is required with maxRunDuration.")
    valid = body.get("params", {}).get("requestValidForDuration")
    if valid is not None:
        if model != "FLEX_START":
            raise texts.invalid("params.requestValidForDuration", model, "It is for FLEX_START alone.")
        _check_seconds("params.requestValidForDuration", valid, _VALID)
    return model


def _check_reservation(body: Mapping[str, Any], model: str) -> None:
    affinity = body.get("reservationAffinity", {})
    kind = affinity.get("consumeReservationType", "")
    if model == "FLEX_START" and kind != "NO_RESERVATION":
        text = "It must be NO_RESERVATION with the provisioning model FLEX_START."
        raise texts.invalid("reservationAffinity.consumeReservationType", kind, text)
    if model == "RESERVATION_BOUND" or kind == "SPECIFIC_RESERVATION":
        is_named = affinity.get("key") in _RESERVATION_KEYS and len(affinity.get("values", ())) == 1
        if kind != "SPECIFIC_RESERVATION" or not is_named:
            raise texts.invalid("reservationAffinity", kind, "A specific reservation must be named by key and value.")


def _check_seconds(field: str, duration: Mapping[str, Any], limits: Sequence[int]) -> None:
    least, most = limits
    if not least <= int(duration.get("seconds", 0)) <= most:
        text = f"must be at least {least} and less or equal to {most} seconds"
        raise texts.invalid(field, duration.get("seconds", 0), text)
