"""Operations of zones: get, list, and their form on the wire."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tpudeploy.emulator import wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.compute_engine import texts
from tpudeploy.emulator.compute_engine.lists import listed
from tpudeploy.emulator.records import Group, GroupPart, Instance, ZoneOperation
from tpudeploy.emulator.wire import ApiCall

HOST = "https://www.googleapis.com/compute/v1"
_SYSTEM = "system"
_LONGEST_WAIT = 120.0


def get(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    return render(cloud, _find(cloud, call))


def wait(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return an operation as it is once it is over, which may be later than now: the reply takes that long."""
    operation = _find(cloud, call)
    if operation.ended_at is None and 0 < seconds_left(cloud, call) < _LONGEST_WAIT:
        operation = replace(operation, ended_at=operation.due)
    return render(cloud, operation)


def seconds_left(cloud: Cloud, call: ApiCall) -> float:
    """Return how long a call waits for an operation: until its end, where that is known."""
    operation = _find(cloud, call)
    if operation.ended_at is not None:
        return 0.0
    due = operation.due or cloud.clock.now() + _LONGEST_WAIT
    return min(max(0.0, due - cloud.clock.now()), _LONGEST_WAIT)


def list_(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    place = f"{_place(call)}/"
    rows = [render(cloud, o) for name, o in cloud.zone_operations.items() if name.startswith(place) and cloud.lists(o)]
    return listed(call, "compute#operationList", rows)


def begin(cloud: Cloud, call: ApiCall, instance: Instance | Group | GroupPart, verb: str) -> ZoneOperation:
    """Start the operation of a call."""
    return _add(cloud, instance, verb, cloud.clock.now(), client_id=call.query.get("requestId", ""))


def record_event(cloud: Cloud, instance: Instance, verb: str, at: float, note: str, *, seconds: float = 0.0) -> None:
    """Record what Google itself did to an instance: an operation that is over after a while."""
    operation = _add(cloud, instance, verb, at, user=_SYSTEM, note=note)
    cloud.agenda.add(at + seconds, lambda now: operation.succeed(now, "Empty", {}))


def find_earlier(cloud: Cloud, call: ApiCall, verb: str) -> ZoneOperation | None:
    """Return the operation that the same request id began, as long as Google remembers it (how long is UNVERIFIED)."""
    request_id = call.query.get("requestId")
    if not request_id:
        return None
    since = cloud.clock.now() - cloud.scenario.compute_engine.remembers_request_id
    place = f"{_place(call)}/"
    for name, operation in cloud.zone_operations.items():
        same_request = operation.client_id == request_id and operation.verb == verb
        if name.startswith(place) and same_request and operation.created_at > since:
            return operation
    return None


def render(cloud: Cloud, operation: ZoneOperation) -> dict[str, Any]:
    place, name = operation.name.split("/operations/")
    is_over = operation.ended_at is not None
    is_new = cloud.clock.now() <= operation.created_at
    status = "PENDING" if is_new else "RUNNING"
    body: dict[str, Any] = {
        "kind": "compute#operation",
        "id": str(operation.number),
        "name": name,
        "region" if "/regions/" in place else "zone": f"{HOST}/{place}",
        "operationType": operation.verb,
        "targetLink": f"{HOST}/{operation.target}",
        "targetId": str(operation.target_id),
        "status": "DONE" if is_over else status,
        "user": operation.user,
        "progress": 100 if is_over else 0,
        "insertTime": wire.timestamp(operation.created_at),
        "selfLink": f"{HOST}/{operation.name}",
    }
    if is_over or not is_new:
        body["startTime"] = wire.timestamp(operation.created_at)
    if operation.ended_at is not None:
        body["endTime"] = wire.timestamp(operation.ended_at)
    if operation.client_id:
        body["clientOperationId"] = operation.client_id
    if operation.note:
        body["statusMessage"] = operation.note
    if isinstance(operation.error, texts.ComputeStatus):
        body |= operation.error.operation_error()
    return body


def _find(cloud: Cloud, call: ApiCall) -> ZoneOperation:
    name = f"{_place(call)}/operations/{call.query['operation']}"
    if name not in cloud.zone_operations:
        raise texts.refuse("not-found", name=name)
    return cloud.zone_operations[name]


def _place(call: ApiCall) -> str:
    """Return the zone or region of a call, as a path."""
    region = call.query.get("region")
    return f"projects/{call.project}/" + (f"zones/{call.zone}" if region is None else f"regions/{region}")


def _add(cloud: Cloud, instance: Instance | Group | GroupPart, verb: str, at: float, **fields: Any) -> ZoneOperation:
    prefix = "systemevent" if fields.get("user") == _SYSTEM else "operation"
    operation = ZoneOperation(
        name=cloud.operation_name(instance.name, at, prefix=prefix),
        target=instance.name,
        verb=verb,
        created_at=at,
        number=int(cloud.scenario.draw("operation id", len(cloud.zone_operations)) * 2**62),
        target_id=instance.uid,
        **fields,
    )
    cloud.zone_operations[operation.name] = operation
    return operation
