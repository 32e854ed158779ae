"""The contents of a create request, checked as Google checks it before anything is created (L1).

The limits of a node's settings, which hold at a patch too, are Compute Engine's; their texts are UNVERIFIED.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tpudeploy import catalog
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.names import LABEL_KEY, LABEL_VALUE
from tpudeploy.emulator import discovery, listings, texts, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.wire import ApiCall

_ID = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_MOST_NODES = 256
_LONGEST_RUN = 7 * 86400.0
_TIERS = ("spot", "guaranteed", "bestEffort")
_TIMINGS = ("validUntilDuration", "validUntilTime", "validAfterDuration", "validAfterTime", "validInterval")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRequest:
    """A request that is well formed, for something that is offered here."""

    id: str
    body: dict[str, Any]
    accelerator: AcceleratorType
    model: str
    node_ids: tuple[str, ...]


def read(cloud: Cloud, call: ApiCall) -> CreateRequest:
    """Return the request of a call. Raise ApiError for what Google refuses at once."""
    body = discovery.accept(call.body, "QueuedResource", call.version, at="queued_resource")
    id_ = call.query.get("queuedResourceId", "")
    _check_id(id_, "queued_resource_id")
    _check_one_of(body, _TIERS, "queued_resource", "tier")
    _check_one_of(
        body.get("queueingPolicy", {}), _TIMINGS, "queued_resource.queueing_policy", "start_timing_constraints"
    )
    spec = _only_spec(body, call)
    check_node(spec.get("node", {}))
    node_ids = _node_ids(spec, id_)
    accelerator = _accelerator(cloud, spec.get("node", {}), call.zone)
    _check_runtime(spec["node"])
    model = _model(body, call.version)
    _check_run(body)
    return CreateRequest(id=id_, body=body, accelerator=accelerator, model=model, node_ids=node_ids)


def pattern(body: Any) -> dict[str, str]:
    """Return the type and model of an unchecked body, which trouble is matched by; "" for what is not there."""
    usual = "STANDARD" if _at(body, "spot") is None else "SPOT"
    model = _at(body, "provisioningModel") or _at(body, "scheduling", "provisioningModel") or usual
    machine = str(_at(body, "machineType") or "").rpartition("/")[2]
    stated = _at(body, "tpu", "nodeSpec", 0, "node", "acceleratorType") or machine
    types = catalog.accelerator_types() if machine else ()
    type_ = next((t.name for t in types if machine == t.machine_type and t.hosts == 1), stated)
    return {"type": str(type_), "model": str(model)}


def only_zone(body: Any) -> str:
    """Return the one zone of an unchecked request for a group of instances; "" for another request."""
    return str(_at(body, "distributionPolicy", "zones", 0, "zone") or "").rpartition("/")[2]


def _at(tree: Any, *path: str | int) -> Any:
    for step in path:
        try:
            tree = tree[step]
        except (KeyError, IndexError, TypeError):
            return None
    return tree


def _only_spec(body: Mapping[str, Any], call: ApiCall) -> Mapping[str, Any]:
    specs = body.get("tpu", {}).get("nodeSpec", [])
    if len(specs) != 1:
        raise _bad("Exactly one node spec is supported.")  # UNVERIFIED
    spec: Mapping[str, Any] = specs[0]
    parent = spec.get("parent", "")
    if parent.split("/")[2:] != call.parent.split("/")[2:]:
        raise _bad(f"The node's parent `{parent}` does not match `{call.parent}`.")  # UNVERIFIED
    return spec


def _node_ids(spec: Mapping[str, Any], id_: str) -> tuple[str, ...]:
    several = spec.get("multiNodeParams", spec.get("multisliceParams"))
    if (several is None) == ("nodeId" not in spec):
        raise _bad("Exactly one of node_id and multi_node_params must be set.")  # UNVERIFIED
    if several is not None:
        prefix, count = several.get("nodeIdPrefix", id_), several.get("nodeCount", 1)
        if not 1 <= count <= _MOST_NODES:
            raise _bad(f"node_count must be between 1 and {_MOST_NODES}.")  # UNVERIFIED
        return tuple(f"{prefix}-{index}" for index in range(count))
    _check_id(spec["nodeId"], "node_id")
    return (spec["nodeId"],)


def _accelerator(cloud: Cloud, node: Mapping[str, Any], zone: str) -> AcceleratorType:
    requested = node.get("acceleratorConfig")
    if (requested is None) == ("acceleratorType" not in node):
        raise _bad("Exactly one of accelerator_type and accelerator_config must be set.")  # UNVERIFIED
    facts = {"zone": zone, "type": node.get("acceleratorType", requested)}
    types = listings.types_of_tpu_api(cloud, zone)
    if not types:
        raise wire.ApiError(texts.status("zone-unsupported", facts))
    for type_ in types:
        if type_.name == facts["type"] or listings.config(type_) == requested:
            return type_
    raise wire.ApiError(texts.status("type-unsupported", facts))


def _check_runtime(node: Mapping[str, Any]) -> None:
    runtime = node.get("runtimeVersion", "")
    if runtime not in listings.RUNTIMES:
        raise wire.ApiError(texts.status("runtime-unknown", {"runtime": runtime}))


def _model(body: Mapping[str, Any], version: str) -> str:
    """Return the provisioning model. On v2alpha1 `spot` alone means STANDARD and is refused; v2 has nothing else."""
    stated = body.get("provisioningModel", "PROVISIONING_MODEL_UNSPECIFIED")
    model = "STANDARD" if stated == "PROVISIONING_MODEL_UNSPECIFIED" else str(stated)
    if "spot" in body and version == "v2":
        return "SPOT"
    if "spot" in body and model != "SPOT":
        raise wire.ApiError(texts.status("spot-mismatch", {"model": model}))
    if model == "STANDARD" and ("reservationName" in body or body.get("guaranteed", {}).get("reserved")):
        return "RESERVATION_BOUND"
    return model


def _check_run(body: Mapping[str, Any]) -> None:
    run = body.get("runDuration", {}).get("maxRunDuration")
    if run is not None and not 0 < wire.seconds(run) <= _LONGEST_RUN:
        raise _bad(f"maxRunDuration must be above 0s and at most {_LONGEST_RUN:.0f}s.")  # UNVERIFIED


def _check_id(id_: str, field: str) -> None:
    if not _ID.fullmatch(id_):
        raise _bad(f"Invalid {field}: `{id_}`.")  # UNVERIFIED


def _check_one_of(body: Mapping[str, Any], names: Iterable[str], at: str, oneof: str) -> None:
    present = [name for name in names if name in body]
    if len(present) > 1:
        raise _bad(f"Invalid value at '{at}' (oneof), oneof field '{oneof}' is already set. Cannot set '{present[1]}'")


def _bad(message: str) -> wire.ApiError:
    return wire.refuse(3, message)


_KEY = re.compile(r"[a-zA-Z0-9_-]{1,127}")
_VALUE_BYTES = 262_144
_ALL_BYTES = 512 * 1024
_DESCRIPTION = 512


def check_node(node: Mapping[str, Any]) -> None:
    """Raise ApiError for the first rule that a node's settings break."""
    for key, value in node.get("labels", {}).items():
        if not LABEL_KEY.fullmatch(key) or not LABEL_VALUE.fullmatch(value):
            raise _bad(f"Invalid label `{key}: {value}`.")
    if len(node.get("description", "")) > _DESCRIPTION:
        raise _bad(f"The description is longer than {_DESCRIPTION} characters.")
    if "networkConfig" in node and "networkConfigs" in node:
        raise _bad("network_config and network_configs cannot both be set.")
    check_metadata(node.get("metadata", {}))


def check_metadata(metadata: Mapping[str, str]) -> None:
    for key, value in metadata.items():
        if not _KEY.fullmatch(key):
            raise _bad(f"Invalid metadata key `{key}`.")
        if len(value.encode()) > _VALUE_BYTES:
            raise _bad(f"Value for metadata key `{key}` is too large: at most {_VALUE_BYTES} bytes.")
    if sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items()) >= _ALL_BYTES:
        raise _bad(f"Metadata is too large: keys and values must stay below {_ALL_BYTES} bytes.")
