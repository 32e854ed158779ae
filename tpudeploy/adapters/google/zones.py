"""The lists of zones in which many slices are looked at: two calls a page, instead of two a slice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.lists import listed as read
from tpudeploy.adapters.google.lists import maker, parent_of, place
from tpudeploy.adapters.google.states import QUEUED_RESOURCE
from tpudeploy.adapters.google.translate import Absent, Precondition
from tpudeploy.domain import errors
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Phase, SliceRef
from tpudeploy.domain.together import together

# What a zone's lists cost is not known before they are read: others' slices stand in them too.
_MANY = 8
# Of a queued resource; its node says the rest.
_ASKED = "name,state,provisioningModel,runDuration"
# All that a look takes from a node: without its disks, networks and accounts.
_SHOWN = "name,state,createTime,acceleratorType,queuedResource,networkEndpoints,labels,metadata"
_Place: TypeAlias = tuple[str, Zone]
_Items: TypeAlias = Mapping[tuple[str, Zone, str], Mapping[str, Any]]


@frozen
class Zones:
    """Queued resources and nodes by project, zone and the name of the queued resource. What is not here may exist."""

    resources: _Items
    nodes: _Items

    def resource(self, ref: SliceRef) -> Mapping[str, Any] | None:
        return self.resources.get((ref.project, ref.zone, ref.name))

    def node(self, ref: SliceRef) -> Mapping[str, Any] | None:
        return self.nodes.get((ref.project, ref.zone, ref.name))


def listed(connection: Connection, refs: Iterable[SliceRef], *, threads: int) -> Zones:
    """Of the zones where it saves calls, side by side. Raise `errors.Fault`.

    A zone that may not be listed is left out, as is one that did not answer: its slices can still be asked for.
    """
    asked: dict[_Place, set[str]] = {}
    for ref in refs:
        if not ref.is_bare:
            asked.setdefault((ref.project, ref.zone), set()).add(ref.name)
    places = [place for place, names in asked.items() if len(names) >= _MANY]
    found = together(threads, lambda place: _zone(connection, place, asked[place]), places)
    return Zones(
        resources={key: item for resources, _ in found for key, item in resources.items()},
        nodes={key: item for _, nodes in found for key, item in nodes.items()},
    )


def _zone(connection: Connection, where: _Place, names: set[str]) -> tuple[_Items, _Items]:
    project, zone = where
    parent = parent_of(project, zone)
    try:
        items, silent = read(connection, "queuedResources", parent, only=_ASKED)
        resources = {(project, *place(i["name"])): i for i in items if place(i["name"])[1] in names}
        # Then the nodes: what was made in between has one, and what went has none.
        is_up = any(QUEUED_RESOURCE.get(str(i.get("state", {}).get("state"))) is Phase.UP for i in resources.values())
        made, silent_too = read(connection, "nodes", parent, only=_SHOWN) if is_up else ([], set())
    except (Absent, Precondition, errors.Refused, errors.Denied):
        return {}, {}
    if zone in silent | silent_too:
        return {}, {}
    return resources, {(project, *maker(node)): node for node in made if maker(node)[1] in names}
