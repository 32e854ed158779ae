"""The machines of a slice: state, addresses, metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from tpudeploy.adapters.google.body import moment
from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.states import NODE
from tpudeploy.adapters.google.translate import Absent, Precondition, looking
from tpudeploy.domain import errors
from tpudeploy.domain.slices import NodeUpdate, Phase, Slice, SliceRef

Node: TypeAlias = Mapping[str, Any]
"""As Google's JSON has it: what is empty, false or 0 is left out."""


def joined(connection: Connection, found: Slice, node: Node | None) -> Slice:
    """An ACTIVE queued resource with what its node shows, and where it can be reached."""
    first: Mapping[str, Any] = next(iter((node or {}).get("networkEndpoints", ())), {})
    return replace(
        shown(found, node),
        internal_ip=first.get("ipAddress") or None,
        external_ip=first.get("accessConfig", {}).get("externalIp") or None,
        # `port` is the TPU runtime's (8470), never the server's. Our own emulator, which may lack addresses, says the
        # server's port in a field that no other cloud or emulator has.
        port=first.get("emulatedServerPort") or None if connection.emulator_host else None,
    )


def shown(found: Slice, node: Node | None) -> Slice:
    """An ACTIVE queued resource and its node. No node: lost, whatever the queued resource says."""
    if node is None:
        return replace(found, phase=Phase.LOST, raw_state=f"{found.raw_state}, no node")
    state = _state(node)
    return replace(
        found,
        phase=NODE.get(state, Phase.UP),
        raw_state=found.raw_state if state == "READY" else f"{found.raw_state}, node {state}",
        created_at=moment(node.get("createTime")),
        accelerator_type=str(node.get("acceleratorType", "")),
        labels=dict(node.get("labels", {})),
        metadata=dict(node.get("metadata", {})),
        tags=tuple(node.get("tags", ())),
    )


def bare(connection: Connection, ref: SliceRef) -> Slice | None:
    """A node whose queued resource is gone; None where it is gone too."""
    node = look(connection, ref)
    return None if node is None else alone(ref, node)


def alone(ref: SliceRef, node: Node) -> Slice:
    """What a bare node shows. Nothing but its own state says where it is in its life."""
    state = _state(node)
    return Slice(
        name=ref.name,
        zone=ref.zone,
        phase=Phase.LEAVING if state == "DELETING" else NODE.get(state, Phase.UP),
        raw_state=f"node {state}",
        created_at=moment(node.get("createTime")),
        accelerator_type=str(node.get("acceleratorType", "")),
        labels=dict(node.get("labels", {})),
        metadata=dict(node.get("metadata", {})),
        tags=tuple(node.get("tags", ())),
    )


def remove(connection: Connection, ref: SliceRef) -> None:
    """nodes.delete: for a bare node. Gone is what was wanted; refused in its state shows at the next look."""
    try:
        with looking(f"delete the node {ref.name}"):
            _nodes(connection).delete(name=_path(ref)).execute(num_retries=0)
    except (Absent, Precondition):
        return


def update(connection: Connection, ref: SliceRef, new: NodeUpdate) -> None:
    """nodes.patch: each field is sent whole. A node that is in no state to be changed shows at the next look."""
    body = {"metadata": dict(new.metadata), "labels": dict(new.labels), "tags": list(new.tags)}
    try:
        with looking(f"update the node of {ref.name}"):
            _nodes(connection).patch(name=_path(ref), updateMask=",".join(body), body=body).execute(num_retries=0)
    except (Absent, Precondition) as cause:
        raise errors.Fault(f"Could not update the node of {ref.name}: {cause}") from cause


def look(connection: Connection, ref: SliceRef) -> Node | None:
    try:
        with looking(f"look at the node of {ref.name}"):
            node: Node = _nodes(connection).get(name=_path(ref)).execute(num_retries=0)
            return node
    except Absent:
        return None


def _state(node: Node) -> str:
    return str(node.get("state", "STATE_UNSPECIFIED"))


def _path(ref: SliceRef) -> str:
    return f"projects/{ref.project}/locations/{ref.zone}/nodes/{ref.name}"


def _nodes(connection: Connection) -> Any:
    return connection.collection("tpu", "v2alpha1", "projects", "locations", "nodes")
