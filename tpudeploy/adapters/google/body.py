"""A request for a slice as Cloud TPU v2alpha1 wants it: the JSON that `render request` shows. No Google library here.

v2alpha1 because only its REST form has `provisioningModel`, `runDuration` and the boot disk's size.
"""

from __future__ import annotations

from typing import Any

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.slices import SliceRequest

_CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"


def queued_resource(request: SliceRequest) -> dict[str, Any]:
    """The body of queuedResources.create. Durations are text with an `s`, 64-bit numbers are text."""
    body: dict[str, Any] = {
        "tpu": {"nodeSpec": [{"parent": parent(request), "nodeId": request.name, "node": _node(request)}]},
        "queueingPolicy": {"validUntilDuration": f"{request.valid_until_seconds:.0f}s"},
        **_tier(request),
    }
    if request.max_run_seconds is not None:
        body["runDuration"] = {"maxRunDuration": f"{request.max_run_seconds:.0f}s"}
    return body


def parent(request: SliceRequest) -> str:
    return f"projects/{request.project}/locations/{request.zone}"


def _tier(request: SliceRequest) -> dict[str, Any]:
    """On-demand sets neither tier. `spot: {}` beside SPOT is refused by v2alpha1 in practice."""
    match request.provisioning:
        case Provisioning.FLEX_START:
            return {"provisioningModel": "FLEX_START"}
        case Provisioning.SPOT:
            return {"provisioningModel": "SPOT"}
        case Provisioning.RESERVED:
            named = {"reservationName": request.reservation} if request.reservation else {}
            return {"guaranteed": {"reserved": True}, **named}
        case Provisioning.ON_DEMAND:
            return {}


def _node(request: SliceRequest) -> dict[str, Any]:
    network: dict[str, Any] = {"enableExternalIps": request.external_ip}
    if request.network is not None:
        network["network"] = request.network
    if request.subnetwork is not None:
        network["subnetwork"] = request.subnetwork
    node: dict[str, Any] = {
        "acceleratorType": request.accelerator_type,
        "runtimeVersion": request.runtime_version,
        "networkConfig": network,
        "bootDiskConfig": {"diskSizeGb": str(request.boot_disk_gib)},
        "labels": dict(request.labels),
        "metadata": dict(request.metadata),
    }
    if request.tags:
        node["tags"] = list(request.tags)
    if request.service_account is not None:
        node["serviceAccount"] = {"email": request.service_account, "scope": [_CLOUD_PLATFORM]}
    return node
