"""Queued resources: create, get, list, delete, reset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tpudeploy.emulator import aging, asked, discovery, listings, operations, quota, refusals, texts, wire
from tpudeploy.emulator.call import Call, page
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.faults import FAULTS
from tpudeploy.emulator.records import HUSKS, Operation, QueuedResource
from tpudeploy.emulator.trouble import Trouble

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


def create(cloud: Cloud, call: Call, troubles: Mapping[str, Trouble]) -> dict[str, Any]:
    now = cloud.clock.now()
    wanted = asked.read(cloud, call)
    slice_ = _slice(cloud, call, wanted, troubles, now)
    if (replayed := _replayed(cloud, slice_)) is not None:
        return operations.render(cloud.operations[replayed], call.version)
    _check_unique(cloud, slice_)
    quota.check_rate(cloud, call.project, now)
    quota.check(cloud, slice_)
    layer, refusal = refusals.beyond_the_reply(slice_, troubles)
    operation = cloud.begin(slice_.name, "create", now)
    slice_.create_operation = operation.name
    slice_.error = refusal if layer == "L3" else None
    cloud.slices[slice_.name] = slice_
    aging.be_born(cloud, slice_, operation, refusal if layer == "L2" else None)
    return operations.render(operation, call.version)


def get(cloud: Cloud, call: Call) -> dict[str, Any]:
    return render(cloud.visible_slice(call.name), call.version)


def list_(cloud: Cloud, call: Call, troubles: Mapping[str, Trouble]) -> dict[str, Any]:
    now = cloud.clock.now()
    silent = listings.silent(cloud, call, troubles)
    shown = ((name, s) for name, s in sorted(cloud.slices.items()) if call.covers(name) and s.zone not in silent)
    seen = [s for _, s in shown if s.is_listed(now)]
    found = page(
        call, "queuedResources", seen, lambda slice_: render(slice_, call.version), most=cloud.scenario.page_most
    )
    return found | listings.unreachable(call, silent)


def delete(cloud: Cloud, call: Call, troubles: Mapping[str, Trouble]) -> dict[str, Any]:
    """In states that cannot be left Google takes the request, and fails the operation a little later (L5)."""
    slice_, now = cloud.visible_slice(call.name), cloud.clock.now()
    facts = {"name": slice_.name, "state": slice_.state}
    if slice_.state == "ACTIVE" and not call.flag("force") and any(True for _ in cloud.nodes_of(slice_)):
        raise wire.Refusal(texts.status("delete-needs-force", facts))
    operation = cloud.begin(slice_.name, "delete", now)
    if slice_.state == "PROVISIONING" and (row := troubles.get("deletion-ignored")) is not None:
        _ignore_deletion(cloud, slice_, operation, row.told())
    elif slice_.state in _STUBBORN or "delete-refused" in troubles:
        refusal = texts.status("delete-refused", facts)
        cloud.agenda.add(now + slice_.timings.delete_refused, lambda at: operation.fail(at, refusal))
    elif slice_.state == "DELETING":
        cloud.agenda.add(now + slice_.timings.deleting, lambda at: operation.succeed(at, "Empty", {}))
    else:
        aging.delete(cloud, slice_, operation, now)
    return operations.render(operation, call.version)


def _ignore_deletion(cloud: Cloud, slice_: QueuedResource, operation: Operation, told: Mapping[str, Any]) -> None:
    """Take a deletion, and let the slice go on: what its operation then says is the scenario's choice."""
    slice_.deletes_when_active |= told["takes_effect"]
    at = cloud.clock.now() + slice_.timings.delete_refused
    refusal = texts.status("delete-refused", {"name": slice_.name, "state": slice_.state})
    if told["outcome"] == "done":
        cloud.agenda.add(at, lambda now: operation.succeed(now, "Empty", {}))
    elif told["outcome"] == "failed":
        cloud.agenda.add(at, lambda now: operation.fail(now, refusal))


def reset(cloud: Cloud, call: Call) -> dict[str, Any]:
    """Reboots every machine; disks stay, the startup script runs again. Only where there are machines."""
    discovery.accept(call.body or {}, "ResetQueuedResourceRequest", call.version, at="reset_queued_resource_request")
    slice_, now = cloud.visible_slice(call.name), cloud.clock.now()
    nodes = tuple(cloud.nodes_of(slice_))
    if slice_.state != "ACTIVE" or any(node.state != "READY" for node in nodes):
        raise wire.Refusal(texts.status("state-refused", {"verb": "reset", "state": slice_.state}))
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
    said = discovery.project(slice_.body, "QueuedResource", version)
    return {"name": slice_.name, "createTime": wire.timestamp(slice_.created_at), **said, "state": state}


def _slice(
    cloud: Cloud, call: Call, wanted: asked.Asked, troubles: Mapping[str, Trouble], now: float
) -> QueuedResource:
    lives = {name: row for name, row in troubles.items() if FAULTS[name].kind == "life" or name == "internal-error"}
    told = {name: row.told() for name, row in lives.items()}
    timings = replace(cloud.scenario.timings, **told.get("timings", {}))
    behaviour = replace(cloud.scenario.boot, **told.get("boot", {}))
    if "boot" in told.get("timings", {}):
        behaviour = replace(behaviour, boot_seconds=timings.boot)
    jitter = cloud.scenario.jitter_of("create", cloud.calls[call.method])
    return QueuedResource(
        name=f"{call.parent}/queuedResources/{wanted.id}",
        project=call.project,
        zone=call.zone,
        body=wanted.body,
        accelerator=wanted.accelerator,
        model=wanted.model,
        node_ids=wanted.node_ids,
        created_at=now,
        request_id=call.query.get("requestId", ""),
        create_operation="",
        timings=timings.varied(jitter),
        jitter=jitter,
        behaviour=behaviour,
        troubles=lives,
        hidden_until=now + told.get("hidden", {"seconds": 0.0})["seconds"],
        unlisted_until=now + told.get("unlisted", {"seconds": 0.0})["seconds"],
    )


def _replayed(cloud: Cloud, wanted: QueuedResource) -> str | None:
    """The operation of the same request, made before (what Google answers to a replay is UNVERIFIED)."""
    earlier = cloud.slices.get(wanted.name)
    if earlier is None or not wanted.request_id or earlier.request_id != wanted.request_id:
        return None
    return earlier.create_operation if earlier.create_operation in cloud.operations else None


def _check_unique(cloud: Cloud, wanted: QueuedResource) -> None:
    """A queued resource's name, and its nodes' in the zone, whoever asked for them."""
    if wanted.name in cloud.slices:
        raise wire.Refusal(texts.status("already-exists", {"name": wanted.name}))
    for other in cloud.holding:
        taken = set(other.node_ids) & set(wanted.node_ids)
        if other.parent == wanted.parent and other.state not in HUSKS and taken:
            raise wire.Refusal(texts.status("already-exists", {"name": f"{wanted.parent}/nodes/{min(taken)}"}))
