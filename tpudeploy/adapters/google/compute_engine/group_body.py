"""The JSON bodies of a slice of several hosts: a workload policy, an instance template, a group in bulk mode.

The three have the name of the slice. Google deletes no policy and no template that a group uses, so where both are
absent, the group is. None of the three has labels: the description carries our mark, the zone and the type.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from tpudeploy import catalog
from tpudeploy.adapters.google.compute_engine.body import instance
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.names import Zone
from tpudeploy.domain.orphans import is_label_of_ours
from tpudeploy.domain.slices import SliceRequest

# The metadata key with the names of all instances of the slice, the head first: templates/boot/cluster.sh reads it.
WORKERS_KEY = "tpudeploy-workers"
_ZONE, _TYPE = "tpudeploy-zone", "tpudeploy-type"
# Of the name before `-w-` and the digits; the discovery document allows 52 characters before `-##`.
_LONGEST = 50
_DIGEST = 8


def slice_type(name: str) -> AcceleratorType | None:
    """Return the type of a slice that is a group at Compute Engine, or None for another one."""
    kind = catalog.accelerator_type(name)
    return kind if kind is not None and kind.hosts > 1 else None


def worker_names(name: str, hosts: int) -> tuple[str, ...]:
    """Return the names that Google gives the instances of a group, the head first: numbers from 1 on."""
    digits = len(str(hosts))
    return tuple(f"{_stem(name)}-w-{number:0{digits}d}" for number in range(1, hosts + 1))


def requests(request: SliceRequest, kind: AcceleratorType) -> dict[str, Any]:
    """Return the three bodies, in the order in which they are sent, by the collections of Compute Engine."""
    return {
        "resourcePolicies": policy(request, kind),
        "regionInstanceTemplates": template(request, kind),
        "regionInstanceGroupManagers": group(request, kind),
    }


def policy(request: SliceRequest, kind: AcceleratorType) -> dict[str, Any]:
    topology = {"type": "HIGH_THROUGHPUT", "acceleratorTopology": kind.topology}
    return {
        "name": request.name,
        "description": description(request),
        "workloadPolicy": {**topology, "acceleratorTopologyMode": "AUTO_CONNECT"},
    }


def template(request: SliceRequest, kind: AcceleratorType) -> dict[str, Any]:
    """Return the body. A template names machine and disk type without their zone."""
    properties = instance(request)
    del properties["name"]
    properties.pop("params", None)  # a group waits for as long as it exists
    properties["machineType"] = kind.machine_type
    for disk in properties["disks"]:
        parameters = disk["initializeParams"]
        parameters["diskType"] = parameters["diskType"].rpartition("/")[2]
    workers = ",".join(worker_names(request.name, kind.hosts))
    properties["metadata"]["items"].append({"key": WORKERS_KEY, "value": workers})
    return {"name": request.name, "description": description(request), "properties": properties}


def group(request: SliceRequest, kind: AcceleratorType) -> dict[str, Any]:
    """Return the body of a group that creates all of its instances, or none, and repairs none by itself."""
    place = f"projects/{request.project}/regions/{request.zone.region}"
    return {
        "name": request.name,
        "description": description(request),
        "baseInstanceName": f"{_stem(request.name)}-w-{'#' * len(str(kind.hosts))}",
        "instanceTemplate": f"{place}/instanceTemplates/{request.name}",
        "targetSize": kind.hosts,
        "targetSizePolicy": {"mode": "BULK"},
        "distributionPolicy": {
            "targetShape": "ANY_SINGLE_ZONE",
            "zones": [{"zone": f"projects/{request.project}/zones/{request.zone}"}],
        },
        "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"},
        "resourcePolicies": {"workloadPolicy": f"{place}/resourcePolicies/{request.name}"},
        "updatePolicy": {"type": "OPPORTUNISTIC", "instanceRedistributionType": "NONE"},
    }


def description(request: SliceRequest) -> str:
    """Return our mark, the zone and the type, as words."""
    words = {key: value for key, value in request.labels.items() if is_label_of_ours(key)}
    words |= {_ZONE: request.zone, _TYPE: request.accelerator_type}
    return " ".join(f"{key}={value}" for key, value in sorted(words.items()))


def parse_description(resource: Mapping[str, Any]) -> tuple[dict[str, str], Zone, str] | None:
    """Return the labels, the zone and the type in a description, or None for one that is not ours."""
    pairs = (word.partition("=") for word in str(resource.get("description", "")).split())
    words = {key: value for key, _, value in pairs}
    if not {_ZONE, _TYPE} <= words.keys():
        return None
    labels = {key: value for key, value in words.items() if is_label_of_ours(key)}
    return labels, Zone(words[_ZONE]), catalog.current_name(words[_TYPE])


def _stem(name: str) -> str:
    """Return the name of a slice, or a shorter one that is as good as unique."""
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: _LONGEST - _DIGEST - 1]}-{digest}"
