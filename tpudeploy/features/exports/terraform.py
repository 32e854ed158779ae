"""A deployment on Compute Engine as Terraform configuration: a `google_compute_instance`, in Terraform's JSON syntax.

The provider's names are those of hashicorp/google 8; the JSON syntax is
https://developer.hashicorp.com/terraform/language/syntax/json. It was not planned against a real project.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment, Provisioning
from tpudeploy.domain.slices import SliceRequest
from tpudeploy.features.exports import missing_rules

# The API whose requests Terraform can express.
TERRAFORM_BACKEND = Backend.GCE_INSTANCE
# FLEX_START and RESERVATION_BOUND arrived with it (GoogleCloudPlatform/magic-modules#16838).
_PROVIDER = ">= 8.0"


def export_terraform(deployment: Deployment, request: SliceRequest, body: Mapping[str, Any]) -> str:
    """Return the configuration. `body` is that of `instances.insert` for the request.

    The comments say what Terraform cannot express; it ignores the key `//`.
    """
    title = f"{deployment.name}: the first request that `tpudeploy apply` would send, as a resource of Terraform."
    missing = "Not in this file, because Terraform cannot express it:"
    document = {
        "//": [title, missing, *_missing(deployment, request)],
        "terraform": {"required_providers": {"google": {"source": "hashicorp/google", "version": _PROVIDER}}},
        "resource": {"google_compute_instance": {request.name: _without_templates(_instance(request, body))}},
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _instance(request: SliceRequest, body: Mapping[str, Any]) -> dict[str, Any]:
    disk = body["disks"][0]["initializeParams"]
    instance: dict[str, Any] = {
        "project": request.project,
        "zone": request.zone,
        "name": request.name,
        "machine_type": _last_word(body["machineType"]),
        "labels": body["labels"],
        "tags": body.get("tags", {}).get("items", []),
        "metadata": {item["key"]: item["value"] for item in body["metadata"]["items"]},
        "boot_disk": {
            "auto_delete": True,
            "initialize_params": {
                "size": int(disk["diskSizeGb"]),
                "type": _last_word(disk["diskType"]),
                "image": disk["sourceImage"],
            },
        },
        "network_interface": _network(body["networkInterfaces"][0]),
        "service_account": _account(body["serviceAccounts"][0]),
        "scheduling": _scheduling(request, body["scheduling"]),
        "reservation_affinity": _reservation(body["reservationAffinity"]),
    }
    if "advancedMachineFeatures" in body:
        instance["advanced_machine_features"] = {"threads_per_core": body["advancedMachineFeatures"]["threadsPerCore"]}
    return instance


def _network(interface: Mapping[str, Any]) -> dict[str, Any]:
    """Return the interface. An empty `access_config` is an external address."""
    names = {key: interface[key] for key in ("network", "subnetwork") if key in interface}
    return {**names, "access_config": {}} if "accessConfigs" in interface else names


def _account(account: Mapping[str, Any]) -> dict[str, Any]:
    """Return the service account. The provider takes the default one where no address is named."""
    scopes = {"scopes": account["scopes"]}
    return scopes if account["email"] == "default" else {"email": account["email"], **scopes}


def _scheduling(request: SliceRequest, scheduling: Mapping[str, Any]) -> dict[str, Any]:
    block: dict[str, Any] = {
        "provisioning_model": scheduling["provisioningModel"],
        "preemptible": request.provisioning is Provisioning.SPOT,  # the provider requires it of SPOT
        "automatic_restart": scheduling["automaticRestart"],
        "on_host_maintenance": scheduling["onHostMaintenance"],
    }
    if "instanceTerminationAction" in scheduling:
        block["instance_termination_action"] = scheduling["instanceTerminationAction"]
    if "maxRunDuration" in scheduling:
        block["max_run_duration"] = {"seconds": int(scheduling["maxRunDuration"]["seconds"])}
    return block


def _reservation(affinity: Mapping[str, Any]) -> dict[str, Any]:
    block: dict[str, Any] = {"type": affinity["consumeReservationType"]}
    if "values" in affinity:
        block["specific_reservation"] = {"key": affinity["key"], "values": affinity["values"]}
    return block


def _missing(deployment: Deployment, request: SliceRequest) -> Iterator[str]:
    others = len(deployment.candidates) - 1
    if others:
        yield f"The {others} other zones and provisioning models of the profile: Terraform requests this one alone."
    yield from missing_rules(deployment)
    if request.provisioning is Provisioning.FLEX_START:
        yield (
            f"How long the request may wait ({request.valid_until_seconds:.0f} s): the provider lacks "
            "requestValidForDuration (reported of 8.2.0), so the request can wait for as long as Google lets it."
        )
    yield "Waiting until a prompt is completed: Terraform is done when the machine runs."
    yield "A change of the server on the running machine: Terraform would write the metadata, and wait for nothing."


def _without_templates(value: Any) -> Any:
    """Return the value with every text escaped: Terraform would read `${` and `%{` in it as templates."""
    match value:
        case str():
            return value.replace("${", "$${").replace("%{", "%%{")
        case Mapping():
            return {key: _without_templates(entry) for key, entry in value.items()}
        case list():
            return [_without_templates(entry) for entry in value]
    return value


def _last_word(path: str) -> str:
    return path.rpartition("/")[2]
