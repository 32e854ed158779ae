"""The machines of a slice, through the typed client: state, addresses, metadata, guest attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.states import NODE
from tpudeploy.adapters.google.translate import Absent, Precondition, looking, translated
from tpudeploy.domain import errors
from tpudeploy.domain.slices import BootPhase, BootReport, NodeUpdate, Phase, Slice, SliceRef

if TYPE_CHECKING:
    from google.cloud import tpu_v2

NAMESPACE = "tpudeploy"


def joined(connection: Connection, ref: SliceRef, found: Slice) -> Slice:
    """An ACTIVE queued resource with what its node shows, and where it can be reached."""
    node = _look(connection, ref)
    ends = [] if node is None else node.network_endpoints
    internal, external, port = next(((e.ip_address, e.access_config.external_ip, e.port) for e in ends), ("", "", 0))
    return replace(
        shown(found, node),
        internal_ip=internal or None,
        external_ip=external or None,
        # Google's port is the TPU runtime's, not ours; only the emulator, which may lack addresses, means it.
        port=port or None if connection.emulator_host else None,
    )


def shown(found: Slice, node: tpu_v2.Node | None) -> Slice:
    """An ACTIVE queued resource and its node. No node: lost, whatever the queued resource says."""
    if node is None:
        return replace(found, phase=Phase.LOST, raw_state=f"{found.raw_state}, no node")
    state = node.state.name
    return replace(
        found,
        phase=NODE.get(state, Phase.UP),
        raw_state=found.raw_state if state == "READY" else f"{found.raw_state}, node {state}",
        created_at=created_at(node),
        accelerator_type=node.accelerator_type,
        labels=dict(node.labels),
        metadata=dict(node.metadata),
        tags=tuple(node.tags),
    )


def bare(connection: Connection, ref: SliceRef) -> Slice | None:
    """A node whose queued resource is gone; None where it is gone too."""
    node = _look(connection, ref)
    return None if node is None else alone(ref, node)


def alone(ref: SliceRef, node: tpu_v2.Node) -> Slice:
    """What a bare node shows. Nothing but its own state says where it is in its life."""
    state = node.state.name
    return Slice(
        name=ref.name,
        zone=ref.zone,
        phase=Phase.LEAVING if state == "DELETING" else NODE.get(state, Phase.UP),
        raw_state=f"node {state}",
        created_at=created_at(node),
        accelerator_type=node.accelerator_type,
        labels=dict(node.labels),
        metadata=dict(node.metadata),
        tags=tuple(node.tags),
    )


def created_at(node: tpu_v2.Node) -> float | None:
    """In seconds since the epoch."""
    created: datetime | None = node.create_time  # type: ignore[assignment]  # proto-plus gives a datetime
    return created.timestamp() if created else None


def remove(connection: Connection, ref: SliceRef) -> None:
    """nodes.delete: for a bare node. Gone is what was wanted; refused in its state shows at the next look."""
    try:
        with looking(f"delete the node {ref.name}"):
            connection.nodes().delete_node(name=_path(ref), retry=None, timeout=connection.timeout)
    except (Absent, Precondition):
        return


def update(connection: Connection, ref: SliceRef, new: NodeUpdate) -> None:
    """nodes.patch: each field is sent whole. A node that is in no state to be changed shows at the next look."""
    from google.cloud import tpu_v2
    from google.protobuf.field_mask_pb2 import FieldMask

    node = tpu_v2.Node(name=_path(ref), metadata=new.metadata, labels=new.labels, tags=new.tags)
    mask = FieldMask(paths=["metadata", "labels", "tags"])
    try:
        with looking(f"update the node of {ref.name}"):
            connection.nodes().update_node(node=node, update_mask=mask, retry=None, timeout=connection.timeout)
    except (Absent, Precondition) as cause:
        raise errors.Fault(f"Could not update the node of {ref.name}: {cause}") from cause


def report(connection: Connection, ref: SliceRef) -> BootReport | None:
    """The machine's own word. That TPU VMs let it be written is unverified: no word is an answer."""
    try:
        with translated(f"read the report of {ref.name}"):
            answer = connection.nodes().get_guest_attributes(
                {"name": _path(ref), "query_path": f"{NAMESPACE}/"}, retry=None, timeout=connection.timeout
            )
    except (Absent, Precondition, errors.Refused, errors.Denied):
        return None
    return _report(_items(answer))


def _look(connection: Connection, ref: SliceRef) -> tpu_v2.Node | None:
    try:
        with looking(f"look at the node of {ref.name}"):
            return connection.nodes().get_node(name=_path(ref), retry=None, timeout=connection.timeout)
    except Absent:
        return None


def _items(answer: tpu_v2.GetGuestAttributesResponse) -> Mapping[str, str]:
    return {
        item.key: item.value
        for worker in answer.guest_attributes
        for item in worker.query_value.items
        if item.namespace == NAMESPACE
    }


def _report(items: Mapping[str, str]) -> BootReport | None:
    if items.get("phase") not in {p.value for p in BootPhase}:
        return None
    return BootReport(
        phase=BootPhase(items["phase"]),
        detail=items.get("detail", ""),
        spec=items.get("spec", ""),
        answer=items.get("answer", ""),
    )


def _path(ref: SliceRef) -> str:
    return f"projects/{ref.project}/locations/{ref.zone}/nodes/{ref.name}"
