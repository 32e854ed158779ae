"""Long-running operations: get, list, cancel, delete, and their form on the wire."""

from __future__ import annotations

from typing import Any

from tpudeploy.emulator import discovery, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.records import LongRunningOperation
from tpudeploy.emulator.wire import ApiCall, page

_TPU = "type.googleapis.com/google.cloud.tpu"


def get(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    return render(_find(cloud, call), call.version)


def list_(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    covered = [o for o in cloud.operations.values() if call.covers(o.name) and cloud.lists(o)]
    return page(call, "operations", covered, lambda operation: render(operation, call.version))


def cancel(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Record the cancellation. Google's is best effort; here an operation lasts seconds."""
    _find(cloud, call).cancel_requested = True
    return {}


def delete(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Delete the operation, not what it does."""
    del cloud.operations[_find(cloud, call).name]
    return {}


def render(operation: LongRunningOperation, version: str) -> dict[str, Any]:
    """Return an operation in the API version of the call (which one Google uses is UNVERIFIED)."""
    metadata = {
        "@type": f"{_TPU}.{version}.OperationMetadata",
        "createTime": wire.timestamp(operation.created_at),
        "target": operation.target,
        "verb": operation.verb,
        "cancelRequested": operation.cancel_requested,
        "apiVersion": version,
    }
    if operation.ended_at is not None:
        metadata["endTime"] = wire.timestamp(operation.ended_at)
    body: dict[str, Any] = {"name": operation.name, "metadata": metadata, "done": operation.ended_at is not None}
    if operation.error is not None:
        body["error"] = operation.error.rpc()
    elif operation.response is not None:
        body["response"] = _response(operation.response, version)
    return body


def _response(response: tuple[str, dict[str, Any]], version: str) -> dict[str, Any]:
    kind, body = response
    if kind == "Empty":
        return {"@type": "type.googleapis.com/google.protobuf.Empty"}
    return {"@type": f"{_TPU}.{version}.{kind}"} | discovery.project(body, kind, version)


def _find(cloud: Cloud, call: ApiCall) -> LongRunningOperation:
    if call.name not in cloud.operations:
        raise cloud.not_found(call.name)
    return cloud.operations[call.name]
