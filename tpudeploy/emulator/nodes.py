"""Nodes: get, list, delete, patch, guest attributes, start, stop."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tpudeploy.emulator import create_request, discovery, lifecycle, listings, operations, own_end, texts, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.machines import bring_up, take_down
from tpudeploy.emulator.records import Host, LongRunningOperation, Node
from tpudeploy.emulator.wire import ApiCall, page

_PORT = 8000
_RUNTIME_PORT = 8470
_PATCHABLE = ("description", "tags", "labels", "metadata", "networkConfig.enableExternalIps")


def get(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    return render(cloud, cloud.visible_node(call.name), call.version)


def list_(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    now = cloud.clock.now()
    silent = listings.silent_zones(cloud, call)
    covered = ((node, cloud.slice_of(node)) for name, node in sorted(cloud.nodes.items()) if call.covers(name))
    listed = [node for node, slice_ in covered if slice_.zone not in silent and slice_.is_listed(now)]
    body = page(call, "nodes", listed, lambda node: render(cloud, node, call.version), most=cloud.scenario.page_most)
    return body | listings.unreachable(call, silent)


def delete(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Delete a node by hand: its queued resource, where it still exists, goes to SUSPENDED and stays."""
    node = cloud.visible_node(call.name)
    slice_, now = cloud.slice_of(node), cloud.clock.now()
    _require(node, "delete", "READY", "STOPPED", "PREEMPTED", "TERMINATED")
    operation = cloud.begin(node.name, "delete", now)
    lifecycle.suspend(cloud, slice_, now, initiator="USER")
    cloud.agenda.add(now + slice_.timings.suspending, lambda at: operation.succeed(at, "Empty", {}))
    return operations.render(operation, call.version)


def patch(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    node = cloud.visible_node(call.name)
    changes = discovery.accept(call.body, "Node", call.version, at="node")
    paths = [_camel_path(path) for path in call.query.get("updateMask", "").split(",") if path]
    if not paths or not set(paths) <= set(_PATCHABLE):
        raise wire.refuse(3, f"update_mask must name some of {', '.join(_PATCHABLE)}, not {paths}")  # UNVERIFIED
    create_request.check_node(changes)
    _require(node, "update", "READY")

    def change(_at: float) -> None:
        spec = dict(node.spec)
        for path in paths:
            _copy(path, changes, spec)
        node.spec = spec
        own_end.watch(cloud, cloud.slice_of(node), node.hosts[0] if node.hosts else None)

    return _operate(cloud, node, "update", call, change)


def start(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    node = cloud.visible_node(call.name)
    _require(node, "start", "STOPPED")
    node.state = "STARTING"

    def run(_at: float) -> None:
        node.state = "READY"
        bring_up(cloud, cloud.slice_of(node), node)

    return _operate(cloud, node, "start", call, run)


def stop(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Stop a node: single machines only, and never in a flex-start run."""
    node = cloud.visible_node(call.name)
    slice_ = cloud.slice_of(node)
    _require(node, "stop", "READY")
    if slice_.accelerator.hosts > 1 or slice_.model == "FLEX_START":
        raise wire.refuse(9, f"Stopping is not supported for node {node.name}.")  # UNVERIFIED
    node.state = "STOPPING"

    def halt(_at: float) -> None:
        node.state = "STOPPED"
        take_down(node)

    return _operate(cloud, node, "stop", call, halt)


def get_guest_attributes(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return an element for each worker; a path that was not written gives no items."""
    node = cloud.visible_node(call.name)
    query = discovery.accept(call.body or {}, "GetGuestAttributesRequest", call.version, at="request")
    path, workers = query.get("queryPath", ""), query.get("workerIds", [])
    hosts = [h for index, h in enumerate(node.hosts) if not workers or str(index) in workers]
    return {
        "guestAttributes": [{"queryPath": path, "queryValue": {"items": guest_attribute_items(h, path)}} for h in hosts]
    }


def render(cloud: Cloud, node: Node, version: str) -> dict[str, Any]:
    slice_ = cloud.slice_of(node)
    scheduling: dict[str, Any] = dict(node.spec.get("schedulingConfig", {}))
    if slice_.model == "SPOT":
        scheduling |= {"spot": True, "provisioningModel": "SPOT"}
    if node.ends_at is not None:
        scheduling["terminationTimestamp"] = wire.timestamp(node.ends_at)
    body = {
        **node.spec,
        "name": node.name,
        "id": str(node.uid),
        "acceleratorType": slice_.accelerator.name,
        "state": node.state,
        "health": node.health,
        "createTime": wire.timestamp(node.created_at),
        "apiVersion": "V2_ALPHA1",
        "queuedResource": slice_.name,
        "schedulingConfig": scheduling,
        "networkEndpoints": [_endpoint(node, host) for host in node.hosts],
        "multisliceNode": len(slice_.node_ids) > 1,
    }
    rendered = discovery.project(body, "Node", version)
    if not cloud.addresses.has_own:
        # All nodes share one address, and each server has a port of its own. Google has no field for that, so this
        # one is ours alone: no other emulator can be mistaken for this one.
        for endpoint, host in zip(rendered["networkEndpoints"], node.hosts, strict=True):
            endpoint["emulatedServerPort"] = host.port_for(_PORT)
    return rendered


def _endpoint(node: Node, host: Host) -> dict[str, Any]:
    """Return where a node is reached. `port` is that of the TPU runtime, as Google gives it for every node."""
    configs = [node.spec.get("networkConfig", {}), *node.spec.get("networkConfigs", [])]
    endpoint: dict[str, Any] = {"ipAddress": host.address, "port": _RUNTIME_PORT}
    if any(config.get("enableExternalIps") for config in configs):
        endpoint["accessConfig"] = {"externalIp": host.address}
    return endpoint


def _operate(cloud: Cloud, node: Node, verb: str, call: ApiCall, action: Callable[[float], None]) -> dict[str, Any]:
    """Run the action when the operation ends, unless the node is gone or being removed by then."""
    slice_, now = cloud.slice_of(node), cloud.clock.now()
    operation: LongRunningOperation = cloud.begin(node.name, verb, now)

    def end(at: float) -> None:
        if cloud.nodes.get(node.name) is not node or node.state in ("DELETING", "PREEMPTED"):
            operation.fail(at, texts.status("state-refused", {"verb": verb, "state": node.state}))
            return
        action(at)
        operation.succeed(at, "Node", render(cloud, node, "v2alpha1"))

    cloud.agenda.add(now + slice_.timings.patch, end)
    return operations.render(operation, call.version)


def _require(node: Node, verb: str, *states: str) -> None:
    if node.state not in states:
        raise wire.ApiError(texts.status("state-refused", {"verb": verb, "state": node.state}))


def guest_attribute_items(host: Host, path: str) -> list[dict[str, str]]:
    """Return the guest attributes below a path, NAMESPACE or NAMESPACE/KEY; all of them for an empty one."""
    query = path.strip("/")
    rows = []
    for name, value in sorted(host.read_guest_attributes().items()):
        namespace, _, key = name.partition("/")
        if query in ("", namespace, name):
            rows.append({"namespace": namespace, "key": key, "value": value})
    return rows


def _copy(path: str, changes: dict[str, Any], spec: dict[str, Any]) -> None:
    """Copy a field of the mask; one that the request does not have is cleared."""
    head, _, tail = path.partition(".")
    if tail:
        spec[head] = {**spec.get(head, {}), tail: changes.get(head, {}).get(tail, False)}
    elif head in changes:
        spec[head] = changes[head]
    else:
        spec.pop(head, None)


def _camel_path(path: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), path.strip())
