"""The machines of a slice, through the typed client: state, addresses, metadata, guest attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
    """An ACTIVE queued resource with what its node shows. No node: lost, whatever the queued resource says."""
    try:
        with looking(f"look at the node of {ref.name}"):
            node = connection.nodes().get_node(name=_path(ref), retry=None, timeout=connection.timeout)
    except Absent:
        return replace(found, phase=Phase.LOST, raw_state=f"{found.raw_state}, no node")
    state = node.state.name
    ends = [(e.ip_address, e.access_config.external_ip, e.port) for e in node.network_endpoints]
    internal, external, port = ends[0] if ends else ("", "", 0)
    return replace(
        found,
        phase=NODE.get(state, Phase.UP),
        raw_state=found.raw_state if state == "READY" else f"{found.raw_state}, node {state}",
        created_at=node.create_time.timestamp() if node.create_time else None,  # type: ignore[attr-defined]  # proto-plus gives a datetime
        accelerator_type=node.accelerator_type,
        internal_ip=internal or None,
        external_ip=external or None,
        # Google's port is the TPU runtime's, not ours; only the emulator, which may lack addresses, means it.
        port=port or None if connection.emulator_host else None,
        labels=dict(node.labels),
        metadata=dict(node.metadata),
    )


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
