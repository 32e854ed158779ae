"""Queued resources: create, get, list, delete, reset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpudeploy.emulator import (
    create_request,
    discovery,
    lifecycle,
    listings,
    operations,
    quota,
    refusals,
    texts,
    wire,
)
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.records import HUSKS, LongRunningOperation, QueuedResource
from tpudeploy.emulator.wire import ApiCall, page

_DATA = {
    "CREATING": "creatingData",
    "ACCEPTED": "acceptedData",
    "PROVISIONING": "provisioningData",
    "ACTIVE": "activeData",
    "SUSPENDING": "suspendingData",
    "SUSPENDED": "suspendedData",
    "DELETING": "deletingData",
}
_STUBBORN = ("CREATING", "PROVISIONING", "SUSPENDING")


def create(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    now = cloud.clock.now()
    request = create_request.read(cloud, call)
    slice_ = _new_slice(cloud, call, request)
    replay = _find_replayed_operation(cloud, slice_)
    if replay is not None:
        return operations.render(cloud.operations[replay], call.version)
    _check_unique(cloud, slice_)
    quota.check_rate(cloud, call.project, now)
    quota.check(cloud, slice_)
    layer, refusal = refusals.later_refusal(slice_, call.troubles, cloud.scenario.project.flex_start_zones)
    operation = cloud.begin(slice_.name, "create", now)
    slice_.create_operation = operation.name
    cloud.track_creation(slice_, operation)
    slice_.error = refusal if layer == "L3" else None
    cloud.slices[slice_.name] = slice_
    cloud.node_names.update(dict.fromkeys(_node_names(slice_), slice_))
    lifecycle.start(cloud, slice_, operation, refusal if layer == "L2" else None)
    return operations.render(operation, call.version)


def get(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    return render(cloud.visible_slice(call.name), call.version)


def list_(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    now = cloud.clock.now()
    silent = listings.silent_zones(cloud, call)
    covered = [slice_ for name, slice_ in sorted(cloud.slices.items()) if call.covers(name)]
    listed = [slice_ for slice_ in covered if slice_.zone not in silent and slice_.is_listed(now)]
    body = page(
        call, "queuedResources", listed, lambda slice_: render(slice_, call.version), most=cloud.scenario.page_most
    )
    return body | listings.unreachable(call, silent)


def delete(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Delete a slice. In other states than those, Google accepts the request and its operation fails later (L5)."""
    slice_, now = cloud.visible_slice(call.name), cloud.clock.now()
    facts = {"name": slice_.name, "state": slice_.state}
    if slice_.state == "ACTIVE" and not call.flag("force") and any(True for _ in cloud.nodes_of(slice_)):
        raise wire.ApiError(texts.status("delete-needs-force", facts))
    operation = cloud.begin(slice_.name, "delete", now)
    if slice_.state == "PROVISIONING" and (row := call.troubles.get("deletion-ignored")) is not None:
        _ignore_deletion(cloud, slice_, operation, row.settings)
    elif "deletion-hangs" in call.troubles:
        slice_.enter("DELETING", initiator="USER")
    elif slice_.state in _STUBBORN or "delete-refused" in call.troubles:
        refusal = texts.status("delete-refused", facts)
        cloud.agenda.add(now + slice_.timings.delete_refused, lambda at: operation.fail(at, refusal))
    elif slice_.state == "DELETING":
        cloud.agenda.add(now + slice_.timings.deleting, lambda at: operation.succeed(at, "Empty", {}))
    else:
        lifecycle.delete(cloud, slice_, operation, now)
    return operations.render(operation, call.version)


def _ignore_deletion(
    cloud: Cloud, slice_: QueuedResource, operation: LongRunningOperation, settings: Mapping[str, Any]
) -> None:
    """Accept a deletion without effect; the scenario chooses the outcome of its operation."""
    slice_.deletes_when_active |= settings["takes_effect"]
    at = cloud.clock.now() + slice_.timings.delete_refused
    refusal = texts.status("delete-refused", {"name": slice_.name, "state": slice_.state})
    if settings["outcome"] == "done":
        cloud.agenda.add(at, lambda now: operation.succeed(now, "Empty", {}))
    elif settings["outcome"] == "failed":
        cloud.agenda.add(at, lambda now: operation.fail(now, refusal))


def reset(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Reboot every machine of an ACTIVE slice; disks stay, and the startup script runs again."""
    discovery.accept(call.body or {}, "ResetQueuedResourceRequest", call.version, at="reset_queued_resource_request")
    slice_, now = cloud.visible_slice(call.name), cloud.clock.now()
    nodes = tuple(cloud.nodes_of(slice_))
    if slice_.state != "ACTIVE" or any(node.state != "READY" for node in nodes):
        raise wire.ApiError(texts.status("state-refused", {"verb": "reset", "state": slice_.state}))
    operation = cloud.begin(slice_.name, "reset", now)
    for node in nodes:
        node.state = "RESTARTING"

    def end(at: float) -> None:
        for node in nodes:
            if node.state == "RESTARTING":
                node.state = "READY"
                for host in node.hosts:
                    host.reboot()
        operation.succeed(at, "QueuedResource", render(slice_, "v2alpha1"))

    cloud.agenda.add(now + slice_.timings.reset, end)
    return operations.render(operation, call.version)


def render(slice_: QueuedResource, version: str) -> dict[str, Any]:
    state: dict[str, Any] = {"state": slice_.state, "stateInitiator": slice_.initiator}
    if slice_.state == "FAILED" and slice_.error is not None:
        state["failedData"] = {"error": slice_.error.rpc()}
    elif slice_.state in _DATA:
        state[_DATA[slice_.state]] = {}
    body = discovery.project(slice_.body, "QueuedResource", version)
    return {"name": slice_.name, "createTime": wire.timestamp(slice_.created_at), **body, "state": state}


def _new_slice(cloud: Cloud, call: ApiCall, request: create_request.CreateRequest) -> QueuedResource:
    return QueuedResource(
        name=f"{call.parent}/queuedResources/{request.id}",
        project=call.project,
        zone=call.zone,
        body=request.body,
        accelerator=request.accelerator,
        model=request.model,
        node_ids=request.node_ids,
        request_id=call.query.get("requestId", ""),
        create_operation="",
        **cloud.life_of(call),
    )


def _find_replayed_operation(cloud: Cloud, slice_: QueuedResource) -> str | None:
    """Return the operation of an earlier call with the same request id (Google's answer to it is UNVERIFIED)."""
    earlier = cloud.slices.get(slice_.name)
    if earlier is None or not slice_.request_id or earlier.request_id != slice_.request_id:
        return None
    return earlier.create_operation if earlier.create_operation in cloud.operations else None


def _check_unique(cloud: Cloud, slice_: QueuedResource) -> None:
    """Raise ApiError where a queued resource of this name exists, or a node of the same name in the zone."""
    if slice_.name in cloud.slices:
        raise wire.ApiError(texts.status("already-exists", {"name": slice_.name}))
    for name in _node_names(slice_):
        other = cloud.node_names.get(name)
        if other is not None and cloud.is_holding(other) and other.state not in HUSKS:
            raise wire.ApiError(texts.status("already-exists", {"name": name}))


def _node_names(slice_: QueuedResource) -> list[str]:
    return [f"{slice_.parent}/nodes/{id_}" for id_ in sorted(slice_.node_ids)]
