"""The node of a slice: its state, addresses and metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from tpudeploy.adapters.google.body import moment
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.states import NODE
from tpudeploy.adapters.google.translate import Absent, PreconditionFailed, translate_read_errors
from tpudeploy.domain import errors
from tpudeploy.domain.slices import NodeUpdate, Phase, Slice, SliceRef
from tpudeploy.node.fingerprint import text_print
from tpudeploy.node.node_facts import SCRIPT_KEY

Node: TypeAlias = Mapping[str, Any]
"""A node in Google's JSON, which leaves out fields that are empty, false or 0."""
_SCRIPT_PRINT = "scriptPrint"  # a field of ours, in nodes that a list has read


def merge_with_addresses(connection: CloudConnection, base: Slice, node: Node | None) -> Slice:
    """Return an ACTIVE queued resource with the facts of its node, and the addresses that reach it."""
    first: Mapping[str, Any] = next(iter((node or {}).get("networkEndpoints", ())), {})
    return replace(
        merge(base, node),
        internal_ip=first.get("ipAddress") or None,
        external_ip=first.get("accessConfig", {}).get("externalIp") or None,
        # `port` is that of the TPU runtime (8470), never that of the server. Our own emulator, which may lack
        # addresses, gives the server's port in a field that no other cloud or emulator has.
        port=first.get("emulatedServerPort") or None if connection.emulator_host else None,
    )


def merge(base: Slice, node: Node | None) -> Slice:
    """Return an ACTIVE queued resource with the facts of its node. Without a node, it is lost despite its state."""
    if node is None:
        return replace(base, phase=Phase.LOST, raw_state=f"{base.raw_state}, no node")
    state = _state(node)
    return replace(
        base,
        phase=NODE.get(state, Phase.UP),
        raw_state=base.raw_state if state == "READY" else f"{base.raw_state}, node {state}",
        created_at=moment(node.get("createTime")),
        accelerator_type=str(node.get("acceleratorType", "")),
        labels=dict(node.get("labels", {})),
        **_metadata(node),
        tags=tuple(node.get("tags", ())),
    )


def look_up_bare(connection: CloudConnection, ref: SliceRef) -> Slice | None:
    """Return the slice of a node whose queued resource is absent; None where the node is absent too."""
    node = get(connection, ref)
    return None if node is None else bare_slice(ref, node)


def bare_slice(ref: SliceRef, node: Node) -> Slice:
    """Return the slice of a bare node. Its phase comes from the node's state alone."""
    state = _state(node)
    return Slice(
        name=ref.name,
        zone=ref.zone,
        phase=Phase.LEAVING if state == "DELETING" else NODE.get(state, Phase.UP),
        raw_state=f"node {state}",
        created_at=moment(node.get("createTime")),
        accelerator_type=str(node.get("acceleratorType", "")),
        labels=dict(node.get("labels", {})),
        **_metadata(node),
        tags=tuple(node.get("tags", ())),
    )


def remove(connection: CloudConnection, ref: SliceRef) -> None:
    """Delete a bare node (nodes.delete).

    An absent node is the desired result. A refusal because of its state shows at the next observation.
    """
    try:
        with translate_read_errors(f"delete the node {ref.name}"):
            _nodes(connection).delete(name=_path(ref)).execute(num_retries=0)
    except (Absent, PreconditionFailed):
        return


def update(connection: CloudConnection, ref: SliceRef, change: NodeUpdate) -> None:
    """Replace the node's metadata, labels and tags (nodes.patch). Raise `errors.Fault` where its state forbids it.

    A patch replaces all metadata, so a script that stays is read first.
    """
    metadata = dict(change.metadata)
    if SCRIPT_KEY not in metadata:
        node = get(connection, ref)
        metadata |= {key: text for key, text in (node or {}).get("metadata", {}).items() if key == SCRIPT_KEY}
    body = {"metadata": metadata, "labels": dict(change.labels), "tags": list(change.tags)}
    try:
        with translate_read_errors(f"update the node of {ref.name}"):
            _nodes(connection).patch(name=_path(ref), updateMask=",".join(body), body=body).execute(num_retries=0)
    except (Absent, PreconditionFailed) as cause:
        raise errors.Fault(f"Could not update the node of {ref.name}: {cause}") from cause


def get(connection: CloudConnection, ref: SliceRef) -> Node | None:
    try:
        with translate_read_errors(f"look at the node of {ref.name}"):
            node: Node = _nodes(connection).get(name=_path(ref)).execute(num_retries=0)
            return node
    except Absent:
        return None


def with_script_print(node: Node) -> Node:
    """Return the node with the fingerprint of its startup script in place of the script."""
    metadata = dict(node.get("metadata", {}))
    script = metadata.pop(SCRIPT_KEY, None)
    return {**node, "metadata": metadata, _SCRIPT_PRINT: "" if script is None else text_print(script)}


def _metadata(node: Node) -> dict[str, Any]:
    """Return the metadata of a slice: all but the startup script, and its fingerprint."""
    compact = node if _SCRIPT_PRINT in node else with_script_print(node)
    return {"metadata": compact["metadata"], "script": compact[_SCRIPT_PRINT]}


def _state(node: Node) -> str:
    return str(node.get("state", "STATE_UNSPECIFIED"))


def _path(ref: SliceRef) -> str:
    return f"projects/{ref.project}/locations/{ref.zone}/nodes/{ref.name}"


def _nodes(connection: CloudConnection) -> Any:
    return connection.collection("tpu", "v2alpha1", "projects", "locations", "nodes")
