"""How a rehearsal looks at a slice that it was granted: what Google says of its node, and how often it answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tpudeploy.adapters.google import lists, nodes, typed_reads
from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.rehearsal_reads import look_safely
from tpudeploy.adapters.google.reports import NAMESPACE
from tpudeploy.adapters.google.safe_read import safe_read
from tpudeploy.adapters.google.translate import Absent, Precondition, translate_errors
from tpudeploy.domain import errors
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.slices import SliceRef
from tpudeploy.rehearsal.findings import Finding, compare, not_seen

_READS_A_MINUTE = 10
_GOOGLES = "goog-"  # as in node/node_facts.py


def look(connection: Connection, ref: SliceRef) -> Iterator[Finding]:
    """Yield what is seen of the facts about the node of a slice that is up."""
    yield look_safely("node-in-v2", lambda: _node_in_v2(connection, ref))
    yield look_safely("node-labels", lambda: _node_labels(connection, ref))


def look_at_run(connection: Connection, ref: SliceRef) -> Finding:
    """Return whether Google shows for how long the slice runs at most."""
    return look_safely("slice-run", lambda: _run(connection, ref))


def look_at_rate(connection: Connection, ref: SliceRef) -> Finding:
    """Return whether as many reads of guest attributes as a run makes in a minute are answered."""
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations", "nodes")
    path = f"{lists.parent_of(ref.project, ref.zone)}/nodes/{ref.name}"
    for count in range(_READS_A_MINUTE):
        try:
            with translate_errors("read the guest attributes"):
                calls.getGuestAttributes(name=path, body={"queryPath": f"{NAMESPACE}/"}).execute(num_retries=0)
        except (Absent, Precondition) as cause:
            return not_seen("guest-attribute-rate", f"There are none: {cause}")
        except (errors.Refused, errors.Fault) as error:
            observation = f"Read {count + 1} failed: {error.message}"
            return compare("guest-attribute-rate", is_as_believed=False, observation=observation)
        except errors.Denied as error:
            return not_seen("guest-attribute-rate", error.message)
    return compare("guest-attribute-rate", is_as_believed=True, observation=f"All {_READS_A_MINUTE} are answered.")


def look_at_deletion(connection: Connection, ref: SliceRef, *, seconds: float, most: float) -> Finding:
    """Return whether the node is gone, this time after its deletion was requested."""
    node = safe_read("look for the node", lambda: typed_reads.get_node(connection, ref.project, ref.zone, ref.name))
    if isinstance(node, Unknown):
        return not_seen("slice-deletion", node.because)
    observation = f"Gone after {seconds / 60:.0f} min." if node is None else f"Its node is {node.get('state')}."
    is_as_believed = node is None and seconds <= most
    return compare("slice-deletion", is_as_believed=is_as_believed, observation=observation)


def _node_in_v2(connection: Connection, ref: SliceRef) -> Finding:
    items, _ = typed_reads.list_nodes(connection, lists.parent_of(ref.project, ref.zone))
    is_listed = any(lists.zone_and_id(item["name"])[1] == ref.name for item in items)
    return compare("node-in-v2", is_as_believed=is_listed, observation="Listed." if is_listed else "Not listed.")


def _run(connection: Connection, ref: SliceRef) -> Finding:
    length = _queued_resource(connection, ref).get("runDuration", {}).get("maxRunDuration")
    observation = f"It shows {length}." if length else "No length of its run is shown."
    return compare("slice-run", is_as_believed=bool(length), observation=observation)


def _queued_resource(connection: Connection, ref: SliceRef) -> dict[str, Any]:
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations", "queuedResources")
    call = calls.get(name=f"{lists.parent_of(ref.project, ref.zone)}/queuedResources/{ref.name}")
    resource: dict[str, Any] = call.execute(num_retries=0)
    return resource


def _node_labels(connection: Connection, ref: SliceRef) -> Finding:
    resource = _queued_resource(connection, ref)
    requested = {key for spec in resource["tpu"]["nodeSpec"] for key in spec.get("node", {}).get("labels", {})}
    node = nodes.get(connection, ref)
    if node is None:
        return not_seen("node-labels", "The node is absent.")
    more = sorted(set(node.get("labels", {})) - requested)
    is_as_believed = all(key.startswith(_GOOGLES) for key in more)
    observation = f"It also has {', '.join(more)}." if more else "It has those that were sent."
    return compare("node-labels", is_as_believed=is_as_believed, observation=observation)
