"""How a rehearsal looks at what it was granted: the node of a slice and how often it answers, or an instance.

Nothing is changed here. The one change that is sent has a wrong fingerprint and the labels that the instance has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tpudeploy.adapters.google import lists, nodes, typed_reads
from tpudeploy.adapters.google.body import moment
from tpudeploy.adapters.google.compute_engine.instances import ComputeEngine
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.reports import NAMESPACE
from tpudeploy.adapters.google.safe_read import safe_read
from tpudeploy.adapters.google.translate import Absent, PreconditionFailed, translate_errors
from tpudeploy.domain import errors
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.orphans import is_label_of_ours
from tpudeploy.domain.slices import SliceRef
from tpudeploy.features.rehearsal import FactFinding, compare, not_seen
from tpudeploy.features.rehearsal.reads import look_safely
from tpudeploy.ports import Clock

_READS_A_MINUTE = 10
_GOOGLES = "goog-"  # as in node/node_facts.py


def look(connection: CloudConnection, ref: SliceRef) -> Iterator[FactFinding]:
    """Yield what is seen of the facts about the node of a slice that is up."""
    yield look_safely("node-in-v2", lambda: _node_in_v2(connection, ref))
    yield look_safely("node-labels", lambda: _node_labels(connection, ref))


def look_at_run(connection: CloudConnection, ref: SliceRef) -> FactFinding:
    """Return whether Google shows for how long the slice runs at most."""
    return look_safely("slice-run", lambda: _run(connection, ref))


def look_at_rate(connection: CloudConnection, ref: SliceRef) -> FactFinding:
    """Return whether as many reads of guest attributes as a run makes in a minute are answered."""
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations", "nodes")
    path = f"{lists.parent_of(ref.project, ref.zone)}/nodes/{ref.name}"
    for count in range(_READS_A_MINUTE):
        try:
            with translate_errors("read the guest attributes"):
                calls.getGuestAttributes(name=path, body={"queryPath": f"{NAMESPACE}/"}).execute(num_retries=0)
        except (Absent, PreconditionFailed) as cause:
            return not_seen("guest-attribute-rate", f"There are none: {cause}")
        except (errors.Refused, errors.Fault) as error:
            observation = f"Read {count + 1} failed: {error.message}"
            return compare("guest-attribute-rate", is_as_believed=False, observation=observation)
        except errors.Denied as error:
            return not_seen("guest-attribute-rate", error.message)
    return compare("guest-attribute-rate", is_as_believed=True, observation=f"All {_READS_A_MINUTE} are answered.")


def look_at_deletion(connection: CloudConnection, ref: SliceRef, *, seconds: float, most: float) -> FactFinding:
    """Return whether the node is gone, this time after its deletion was requested."""
    node = safe_read("look for the node", lambda: typed_reads.get_node(connection, ref.project, ref.zone, ref.name))
    if isinstance(node, Unknown):
        return not_seen("slice-deletion", node.because)
    observation = f"Gone after {seconds / 60:.0f} min." if node is None else f"Its node is {node.get('state')}."
    is_as_believed = node is None and seconds <= most
    return compare("slice-deletion", is_as_believed=is_as_believed, observation=observation)


def _node_in_v2(connection: CloudConnection, ref: SliceRef) -> FactFinding:
    items, _ = typed_reads.list_nodes(connection, lists.parent_of(ref.project, ref.zone))
    is_listed = any(lists.zone_and_id(item["name"])[1] == ref.name for item in items)
    return compare("node-in-v2", is_as_believed=is_listed, observation="Listed." if is_listed else "Not listed.")


def _run(connection: CloudConnection, ref: SliceRef) -> FactFinding:
    length = _queued_resource(connection, ref).get("runDuration", {}).get("maxRunDuration")
    observation = f"It shows {length}." if length else "No length of its run is shown."
    return compare("slice-run", is_as_believed=bool(length), observation=observation)


def _queued_resource(connection: CloudConnection, ref: SliceRef) -> dict[str, Any]:
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations", "queuedResources")
    call = calls.get(name=f"{lists.parent_of(ref.project, ref.zone)}/queuedResources/{ref.name}")
    resource: dict[str, Any] = call.execute(num_retries=0)
    return resource


def _node_labels(connection: CloudConnection, ref: SliceRef) -> FactFinding:
    resource = _queued_resource(connection, ref)
    requested = {key for spec in resource["tpu"]["nodeSpec"] for key in spec.get("node", {}).get("labels", {})}
    node = nodes.get(connection, ref)
    if node is None:
        return not_seen("node-labels", "The node is absent.")
    more = sorted(set(node.get("labels", {})) - requested)
    is_as_believed = all(key.startswith(_GOOGLES) for key in more)
    observation = f"It also has {', '.join(more)}." if more else "It has those that were sent."
    return compare("node-labels", is_as_believed=is_as_believed, observation=observation)


_UNUSED_NAMESPACE = "tpudeploy-unused/"
_WRONG_FINGERPRINT = "AAAAAAAAAAA="


class RunningInstance:
    """One instance of a rehearsal."""

    def __init__(self, connection: CloudConnection, ref: SliceRef, clock: Clock) -> None:
        self._connection = connection
        self._ref = ref
        self._clock = clock

    def look_at_run(self) -> FactFinding:
        """Return whether Google shows when it ends the run."""
        return look_safely("instance-run", self._run)

    def look(self) -> Iterator[FactFinding]:
        """Yield what is seen of the other facts about an instance that is up."""
        yield look_safely("instance-listed", self._listed)
        yield look_safely("instance-labels", self._labels)
        yield look_safely("instance-attributes-absent", self._absent_attributes)
        yield look_safely("instance-fingerprint", self._fingerprint)

    def look_at_end(self, seconds_late: float) -> FactFinding:
        """Return whether Google has deleted the instance, this time after the end of its run."""
        item = safe_read("look for it", self._get)
        if isinstance(item, Unknown):
            return not_seen("instance-run-end", item.because)
        observation = (
            f"Deleted within {max(0.0, seconds_late):.0f} s of the end of its run."
            if item is None
            else f"It is {item.get('status')} {seconds_late:.0f} s after the end of its run."
        )
        return compare("instance-run-end", is_as_believed=item is None, observation=observation)

    def is_absent(self) -> bool:
        """Return whether the instance is certainly gone."""
        return safe_read("look for it", self._get) is None

    def run_end(self) -> float | None:
        """Return when Google ends the run, in seconds since the epoch. Raise `errors.CloudError`."""
        return moment(self._shown_end())

    def _shown_end(self) -> str | None:
        item = self._get() or {}
        end: str | None = item.get("resourceStatus", {}).get("scheduling", {}).get("terminationTimestamp")
        return end

    def _run(self) -> FactFinding:
        end = self._shown_end()
        observation = f"It ends at {end}." if end else "No end is shown."
        return compare("instance-run", is_as_believed=bool(end), observation=observation)

    def _listed(self) -> FactFinding:
        listing = ComputeEngine(self._connection, self._clock).list_marked(self._ref.project, [self._ref.zone])
        is_listed = any(resource.ref.name == self._ref.name for resource in listing.resources)
        is_whole = not listing.searched_zones  # where one list is not answered, each zone is listed by itself
        observation = "Listed." if is_listed else "Not listed."
        return compare("instance-listed", is_as_believed=is_listed and is_whole, observation=observation)

    def _labels(self) -> FactFinding:
        item = self._get()
        if item is None:
            return not_seen("instance-labels", "The instance is absent.")
        more = sorted(key for key in item.get("labels", {}) if not is_label_of_ours(key))
        is_as_believed = all(key.startswith(_GOOGLES) for key in more)
        observation = f"It also has {', '.join(more)}." if more else "It has those that were sent."
        return compare("instance-labels", is_as_believed=is_as_believed, observation=observation)

    def _absent_attributes(self) -> FactFinding:
        fact = "instance-attributes-absent"
        call = self._instances().getGuestAttributes(**self._path(), queryPath=_UNUSED_NAMESPACE)
        try:
            with translate_errors("read the guest attributes"):
                call.execute(num_retries=0)
        except Absent as cause:
            return compare(fact, is_as_believed=True, observation=f"404: {cause}")
        except PreconditionFailed as cause:
            return compare(fact, is_as_believed=False, observation=str(cause))
        return compare(fact, is_as_believed=False, observation="An answer without values.")

    def _fingerprint(self) -> FactFinding:
        fact, item = "instance-fingerprint", self._get()
        if item is None:
            return not_seen(fact, "The instance is absent.")
        body = {"labels": item.get("labels", {}), "labelFingerprint": _WRONG_FINGERPRINT}
        try:
            with translate_errors("send a wrong fingerprint"):
                self._instances().setLabels(**self._path(), body=body).execute(num_retries=0)
        except PreconditionFailed as cause:
            return compare(fact, is_as_believed=True, observation=f"Refused: {cause}")
        return compare(fact, is_as_believed=False, observation="It was taken.")

    def _get(self) -> Mapping[str, Any] | None:
        try:
            with translate_errors(f"look at {self._ref.name}"):
                item: dict[str, Any] = self._instances().get(**self._path()).execute(num_retries=0)
                return item
        except Absent:
            return None

    def _path(self) -> dict[str, str]:
        return {"project": self._ref.project, "zone": self._ref.zone, "instance": self._ref.name}

    def _instances(self) -> Any:
        return self._connection.collection("compute", "v1", "instances")
