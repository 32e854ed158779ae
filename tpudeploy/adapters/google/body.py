"""The JSON body of a request for a slice, as Cloud TPU v2alpha1 wants it and returns it. `render request` shows it.

The version is v2alpha1 because only its REST form has `provisioningModel`, `runDuration` and the boot disk's size.
This module imports no Google library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.orphans import ResourceRequest
from tpudeploy.domain.slices import SliceRequest

_CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
_MODELS = {
    "FLEX_START": Provisioning.FLEX_START,
    "SPOT": Provisioning.SPOT,
    "RESERVATION_BOUND": Provisioning.RESERVED,
}


def queued_resource(request: SliceRequest) -> dict[str, Any]:
    """Return the body of queuedResources.create. Durations are text with an `s`; 64-bit numbers are text."""
    body: dict[str, Any] = {
        "tpu": {"nodeSpec": [{"parent": parent(request), "nodeId": request.name, "node": _node(request)}]},
        "queueingPolicy": {"validUntilDuration": f"{request.valid_until_seconds:.0f}s"},
        **_tier(request),
    }
    if request.max_run_seconds is not None:
        body["runDuration"] = {"maxRunDuration": f"{request.max_run_seconds:.0f}s"}
    return body


def read_back(resource: Mapping[str, Any]) -> ResourceRequest:
    """Return the request that made a listed queued resource.

    Google leaves out fields that are false, empty or unknown to it.
    """
    spec: Mapping[str, Any] = next(iter(resource.get("tpu", {}).get("nodeSpec", ())), {})
    node = spec.get("node", {})
    network = node.get("networkConfig")
    disk = node.get("bootDiskConfig", {}).get("diskSizeGb")
    run = resource.get("runDuration", {}).get("maxRunDuration")
    return ResourceRequest(
        accelerator_type=str(node.get("acceleratorType", "")),
        provisioning=_provisioning(resource),
        nodes=tuple(_machines(resource)),
        runtime_version=node.get("runtimeVersion"),
        boot_disk_gib=None if disk is None else int(disk),
        network=(network or {}).get("network"),
        subnetwork=(network or {}).get("subnetwork"),
        external_ip=None if network is None else bool(network.get("enableExternalIps", False)),
        service_account=node.get("serviceAccount", {}).get("email"),
        reservation=resource.get("reservationName"),
        max_run_seconds=None if run is None else float(str(run).removesuffix("s")),
        tags=tuple(node.get("tags", ())),
        labels=dict(node.get("labels", {})),
        metadata=dict(node.get("metadata", {})),
    )


def _machines(resource: Mapping[str, Any]) -> Iterator[str]:
    """Yield the node ids of each spec: one id, or several that are a prefix and a number.

    Source: `MultiNodeParams` in the document of v2alpha1.
    """
    for spec in resource.get("tpu", {}).get("nodeSpec", ()):
        if "multiNodeParams" in spec:
            many = spec["multiNodeParams"]
            yield from (f"{many.get('nodeIdPrefix', '')}-{n}" for n in range(int(many.get("nodeCount", 1))))
        elif spec.get("nodeId"):
            yield str(spec["nodeId"])


def _provisioning(resource: Mapping[str, Any]) -> Provisioning:
    model = _MODELS.get(str(resource.get("provisioningModel")))
    if model is not None:
        return model
    if "spot" in resource:
        return Provisioning.SPOT
    is_reserved = resource.get("guaranteed", {}).get("reserved") or "reservationName" in resource
    return Provisioning.RESERVED if is_reserved else Provisioning.ON_DEMAND


def parent(request: SliceRequest) -> str:
    return f"projects/{request.project}/locations/{request.zone}"


def moment(text: str | None) -> float | None:
    """Return one of Google's timestamps in seconds since the epoch."""
    return None if text is None else datetime.fromisoformat(text).timestamp()


def _tier(request: SliceRequest) -> dict[str, Any]:
    """Return the fields that select the provisioning model. On-demand sets none of them.

    In practice, v2alpha1 refuses `spot: {}` beside `provisioningModel: SPOT`.
    """
    match request.provisioning:
        case Provisioning.FLEX_START:
            return {"provisioningModel": "FLEX_START"}
        case Provisioning.SPOT:
            return {"provisioningModel": "SPOT"}
        case Provisioning.RESERVED:
            reservation = {"reservationName": request.reservation} if request.reservation else {}
            return {"guaranteed": {"reserved": True}, **reservation}
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
