"""List the resources of one parent, or of the zones in which many slices are observed, to the last page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.nodes import with_script_print
from tpudeploy.adapters.google.safe_read import pages
from tpudeploy.adapters.google.states import QUEUED_RESOURCE
from tpudeploy.adapters.google.translate import Absent, PreconditionFailed, translate_errors
from tpudeploy.domain import errors
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Phase, SliceRef
from tpudeploy.domain.together import together

Item: TypeAlias = Mapping[str, Any]
Listed: TypeAlias = tuple[list[Item], set[Zone]]
# The server returns fewer items per page where this is too many for it (its maximum is UNVERIFIED).
PAGE = 500
# Of items with a startup script, 25 KB each: 500 of them take 40 MB while their page is read.
PAGE_WITH_SCRIPTS = 100
_KINDS = {"queuedResources": "queued resources", "nodes": "nodes"}


def list_all(
    connection: CloudConnection, kind: str, parent: str, *, only: str = "", keep: Callable[[Item], Item] = dict
) -> Listed:
    """Return the items of a list and the zones that did not answer.

    `kind` is `queuedResources` or `nodes`. `only` names the fields of each item to read; if it is empty, all are
    read. `keep` returns what to keep of an item when its page is read. Raise what `translate_errors` raises.
    """
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations", kind)
    has_scripts = not only or "metadata" in only.split(",")
    parameters: dict[str, Any] = {"parent": parent, "pageSize": PAGE_WITH_SCRIPTS if has_scripts else PAGE}
    if only:
        # A partial response, as every API of Google's offers: startup scripts are most of a fleet's full list.
        parameters["fields"] = f"{kind}({only}),nextPageToken,unreachable"
    items: list[Item] = []
    silent_zones: set[Zone] = set()
    with translate_errors(f"list the {_KINDS[kind]} of {parent}"):
        for page in pages(calls, calls.list(**parameters)):
            items += map(keep, page.get(kind, ()))
            silent_zones.update(map(zone_of, page.get("unreachable", ())))
    return items, silent_zones


def zone_and_id(name: str) -> tuple[Zone, str]:
    """Return the zone and the id in projects/P/locations/ZONE/…/ID."""
    words = name.split("/")
    return Zone(words[3]), words[-1]


def creator_of(node: Mapping[str, Any]) -> tuple[Zone, str]:
    """Return zone and id of the queued resource that created this node; its own id where the node names none."""
    zone, name = zone_and_id(node["name"])
    return zone, str(node.get("queuedResource", "")).rpartition("/")[2] or name


def parent_of(project: str, zone: str) -> str:
    return f"projects/{project}/locations/{zone}"


def zone_of(location: str) -> Zone:
    """Return the zone of an unreachable location, given as a full name or as an id (which of the two is unverified)."""
    return Zone(location.rpartition("/")[2])


# A zone is listed from this number of slices on. The cost of a list is unknown, because it holds others' slices too.
_MIN_SLICES = 8
# The fields of a queued resource that an observation needs; its node has the rest.
_RESOURCE_FIELDS = "name,state,provisioningModel,runDuration"
# The fields of a node that an observation needs; its disks, networks and accounts are left out.
_NODE_FIELDS = "name,state,createTime,acceleratorType,queuedResource,networkEndpoints,labels,metadata"
_Place: TypeAlias = tuple[str, Zone]
_Items: TypeAlias = Mapping[tuple[str, Zone, str], Item]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectListings:
    """Holds queued resources and nodes by project, zone and name of the queued resource. It is incomplete."""

    resources: _Items
    nodes: _Items

    def resource(self, ref: SliceRef) -> Mapping[str, Any] | None:
        return self.resources.get((ref.project, ref.zone, ref.name))

    def node(self, ref: SliceRef) -> Mapping[str, Any] | None:
        return self.nodes.get((ref.project, ref.zone, ref.name))


def list_zones(connection: CloudConnection, refs: Iterable[SliceRef], *, threads: int) -> ProjectListings:
    """List in parallel the zones where a list saves calls. Raise `errors.Fault`.

    A zone that cannot be listed or did not answer is left out: its slices can still be looked up one by one.
    """
    names_by_place: dict[_Place, set[str]] = {}
    for ref in refs:
        if not ref.is_bare:
            names_by_place.setdefault((ref.project, ref.zone), set()).add(ref.name)
    places = [place for place, names in names_by_place.items() if len(names) >= _MIN_SLICES]
    answers = together(threads, lambda place: _list_zone(connection, place, names_by_place[place]), places)
    return ProjectListings(
        resources={key: item for resources, _ in answers for key, item in resources.items()},
        nodes={key: item for _, nodes in answers for key, item in nodes.items()},
    )


def _list_zone(connection: CloudConnection, where: _Place, names: set[str]) -> tuple[_Items, _Items]:
    project, zone = where
    parent = parent_of(project, zone)
    try:
        items, silent_zones = list_all(connection, "queuedResources", parent, only=_RESOURCE_FIELDS)
        resources = {(project, *zone_and_id(i["name"])): i for i in items if zone_and_id(i["name"])[1] in names}
        # The nodes are listed second: a slice that was created in between then has one, and a deleted one has none.
        states = {str(item.get("state", {}).get("state")) for item in resources.values()}
        nodes: list[Item] = []
        if any(QUEUED_RESOURCE.get(state) is Phase.UP for state in states):
            nodes, silent_for_nodes = list_all(connection, "nodes", parent, only=_NODE_FIELDS, keep=with_script_print)
            silent_zones |= silent_for_nodes
    except (Absent, PreconditionFailed, errors.Refused, errors.Denied):
        return {}, {}
    if zone in silent_zones:
        return {}, {}
    return resources, {(project, *creator_of(node)): node for node in nodes if creator_of(node)[1] in names}
