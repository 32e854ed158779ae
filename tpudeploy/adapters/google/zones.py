"""Lists of the zones in which many slices are observed: two calls per page instead of two calls per slice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.lists import creator_of, list_all, parent_of, zone_and_id
from tpudeploy.adapters.google.states import QUEUED_RESOURCE
from tpudeploy.adapters.google.translate import Absent, Precondition
from tpudeploy.domain import errors
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Phase, SliceRef
from tpudeploy.domain.together import together

# A zone is listed from this number of slices on. The cost of a list is unknown, because it holds others' slices too.
_MIN_SLICES = 8
# The fields of a queued resource that an observation needs; its node has the rest.
_RESOURCE_FIELDS = "name,state,provisioningModel,runDuration"
# The fields of a node that an observation needs; its disks, networks and accounts are left out.
_NODE_FIELDS = "name,state,createTime,acceleratorType,queuedResource,networkEndpoints,labels,metadata"
_Place: TypeAlias = tuple[str, Zone]
_Items: TypeAlias = Mapping[tuple[str, Zone, str], Mapping[str, Any]]


@frozen
class Zones:
    """Holds queued resources and nodes by project, zone and name of the queued resource. It is incomplete."""

    resources: _Items
    nodes: _Items

    def resource(self, ref: SliceRef) -> Mapping[str, Any] | None:
        return self.resources.get((ref.project, ref.zone, ref.name))

    def node(self, ref: SliceRef) -> Mapping[str, Any] | None:
        return self.nodes.get((ref.project, ref.zone, ref.name))


def list_zones(connection: Connection, refs: Iterable[SliceRef], *, threads: int) -> Zones:
    """List in parallel the zones where a list saves calls. Raise `errors.Fault`.

    A zone that cannot be listed or did not answer is left out: its slices can still be looked up one by one.
    """
    names_by_place: dict[_Place, set[str]] = {}
    for ref in refs:
        if not ref.is_bare:
            names_by_place.setdefault((ref.project, ref.zone), set()).add(ref.name)
    places = [place for place, names in names_by_place.items() if len(names) >= _MIN_SLICES]
    answers = together(threads, lambda place: _zone(connection, place, names_by_place[place]), places)
    return Zones(
        resources={key: item for resources, _ in answers for key, item in resources.items()},
        nodes={key: item for _, nodes in answers for key, item in nodes.items()},
    )


def _zone(connection: Connection, where: _Place, names: set[str]) -> tuple[_Items, _Items]:
    project, zone = where
    parent = parent_of(project, zone)
    try:
        items, silent_zones = list_all(connection, "queuedResources", parent, only=_RESOURCE_FIELDS)
        resources = {(project, *zone_and_id(i["name"])): i for i in items if zone_and_id(i["name"])[1] in names}
        # The nodes are listed second: a slice that was created in between then has one, and a deleted one has none.
        states = {str(item.get("state", {}).get("state")) for item in resources.values()}
        nodes: list[dict[str, Any]] = []
        if any(QUEUED_RESOURCE.get(state) is Phase.UP for state in states):
            nodes, silent_for_nodes = list_all(connection, "nodes", parent, only=_NODE_FIELDS)
            silent_zones |= silent_for_nodes
    except (Absent, Precondition, errors.Refused, errors.Denied):
        return {}, {}
    if zone in silent_zones:
        return {}, {}
    return resources, {(project, *creator_of(node)): node for node in nodes if creator_of(node)[1] in names}
