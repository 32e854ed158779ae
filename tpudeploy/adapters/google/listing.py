"""Search of a whole project for resources with our mark. Zones that did not answer are named, never taken for empty.

All zones are listed at once (`locations/-`), or one by one where Google refuses that. That the service accepts the
wildcard is unverified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tpudeploy.adapters.google import nodes, typed_reads
from tpudeploy.adapters.google.body import moment, read_back
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.lists import Item, Listed, creator_of, list_all, parent_of, zone_and_id
from tpudeploy.adapters.google.states import QUEUED_RESOURCE
from tpudeploy.adapters.google.translate import Absent, PreconditionFailed, translate_errors
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain import errors
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import Zone
from tpudeploy.domain.orphans import UNMARKED, CloudResource, Listing, OwnerMark, ResourceRequest, mark_in, mark_of
from tpudeploy.domain.slices import Phase, Slice, SliceRef
from tpudeploy.node.node_facts import SPEC_KEY

_EVERYWHERE = "-"
_NO_TPUS = "zone-unsupported"
_MALFORMED = "invalid"
# The fields of a node that say whose it is.
_LABELS = "name,queuedResource,labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nodes:
    """Holds the nodes by the queued resource that created them."""

    by_creator: Mapping[tuple[Zone, str], nodes.Node]
    unreachable: set[Zone]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sweep:
    items: list[Item]
    unreachable: set[Zone]
    searched_zones: tuple[Zone, ...] = ()


def list_marked(connection: CloudConnection, project: str, zones: Iterable[Zone], *, machines: bool) -> Listing:
    """See `ports.TpuCloud.list_marked`."""
    places = _places(zones)
    # Nodes are listed first: a slice created in between is in the second list, so its node is not taken for a bare one.
    machine_sweep = _sweep(project, places, partial(typed_reads.list_nodes, connection)) if machines else None
    sweep = _sweep(project, places, lambda parent: list_all(connection, "queuedResources", parent))
    if machine_sweep is None:
        resources, unreachable = _signed_by_nodes(connection, project, places, sweep)
    else:
        by_creator = {creator_of(node): node for node in machine_sweep.items}
        machine_nodes = _Nodes(by_creator=by_creator, unreachable=machine_sweep.unreachable)
        resources = [
            _with_node(connection, _resource(project, item, by_creator.get(zone_and_id(item["name"]))), machine_nodes)
            for item in sweep.items
        ]
        listed_creators = {zone_and_id(resource["name"]) for resource in sweep.items}
        for node in machine_sweep.items:
            creator = creator_of(node)
            if creator not in listed_creators and creator[0] not in sweep.unreachable:
                resources.append(_marked_node(project, node))
        unreachable = sweep.unreachable | machine_sweep.unreachable
    return Listing(
        project=project,
        resources=tuple(resource for resource in resources if resource is not None),
        unreachable=tuple(sorted(unreachable)),
        searched_zones=sweep.searched_zones,
    )


def _signed_by_nodes(
    connection: CloudConnection, project: str, places: tuple[Zone, ...], sweep: _Sweep
) -> tuple[list[CloudResource | None], set[Zone]]:
    """Return the queued resources with the marks of their nodes, which are only listed where that may tell more."""
    resources = [_resource(project, item) for item in sweep.items]
    if all(resource is not None and resource.is_signed for resource in resources):
        return resources, sweep.unreachable
    node_sweep = _sweep(project, places, lambda parent: list_all(connection, "nodes", parent, only=_LABELS))
    by_creator = {creator_of(node): node for node in node_sweep.items}
    resources = [_resource(project, item, by_creator.get(zone_and_id(item["name"]))) for item in sweep.items]
    return resources, sweep.unreachable | node_sweep.unreachable


def list_named(
    connection: CloudConnection, project: str, name: str, zones: Iterable[Zone], *, zone: Zone | None
) -> Listing:
    """See `ports.TpuCloud.list_named`. If `zone` is given, it must answer."""
    if zone is None:
        sweep = _sweep(project, _places(zones), lambda parent: list_all(connection, "queuedResources", parent))
    else:
        items = _get(connection, f"{parent_of(project, zone)}/queuedResources/{name}")
        sweep = _Sweep(items=items, unreachable=set(), searched_zones=(zone,))
    resources = [
        _queued_resource(connection, project, item) for item in sweep.items if zone_and_id(item["name"])[1] == name
    ]
    if not resources:
        resources = _nodes_named(connection, project, name, zones=_places(zones) if zone is None else (zone,))
    return Listing(
        project=project,
        resources=tuple(resources),
        unreachable=tuple(sorted(sweep.unreachable)),
        searched_zones=sweep.searched_zones,
    )


def _queued_resource(connection: CloudConnection, project: str, item: Mapping[str, Any]) -> CloudResource:
    """Return a queued resource of any creator, with its node."""
    zone, name = zone_and_id(item["name"])
    resource = _unobserved(project, item, mark_of(name, read_back(item).labels) or UNMARKED)
    if resource.slice.phase is not Phase.UP:
        return resource
    return _merged(resource, typed_reads.get_node(connection, project, zone, name))


def _nodes_named(
    connection: CloudConnection, project: str, name: str, *, zones: tuple[Zone, ...]
) -> list[CloudResource]:
    """Return the nodes of this name, of any creator, so that one that exists is distinguished from an absent one."""
    if len(zones) == 1:
        node = typed_reads.get_node(connection, project, zones[0], name)
        items = [] if node is None else [node]
    else:
        sweep = _sweep(project, zones, partial(typed_reads.list_nodes, connection))
        items = [node for node in sweep.items if zone_and_id(node["name"])[1] == name]
    return [_bare(project, node, mark_of(name, node.get("labels", {})) or UNMARKED) for node in items]


def _get(connection: CloudConnection, path: str) -> list[Item]:
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations", "queuedResources")
    try:
        with translate_errors(f"look at {path}"):
            return [calls.get(name=path).execute(num_retries=0)]
    except (Absent, PreconditionFailed):
        return []


def _places(zones: Iterable[Zone]) -> tuple[Zone, ...]:
    return tuple(dict.fromkeys((*zones, *(Zone(z) for g in GENERATIONS if g.tpu_api is not None for z in g.zones))))


def _sweep(project: str, zones: tuple[Zone, ...], read: Callable[[str], Listed]) -> _Sweep:
    try:
        items, silent_zones = read(parent_of(project, _EVERYWHERE))
    except (Absent, PreconditionFailed, errors.Refused):
        return _one_by_one(project, zones, read)
    except errors.Denied as denied:
        if denied.refusal is None or denied.refusal.kind != _MALFORMED:
            raise
        return _one_by_one(project, zones, read)
    return _Sweep(items=items, unreachable=silent_zones)


def _one_by_one(project: str, zones: tuple[Zone, ...], read: Callable[[str], Listed]) -> _Sweep:
    items: list[Item] = []
    unreachable: set[Zone] = set()
    for zone in zones:
        try:
            zone_items, silent_zones = read(parent_of(project, zone))
        except (Absent, PreconditionFailed, errors.Fault):
            unreachable.add(zone)
        except errors.Refused as refused:
            if refused.refusal is None or refused.refusal.kind != _NO_TPUS:
                unreachable.add(zone)
        else:
            items += zone_items
            unreachable |= silent_zones
    return _Sweep(items=items, unreachable=unreachable, searched_zones=zones)


def _resource(project: str, resource: Mapping[str, Any], node: nodes.Node | None = None) -> CloudResource | None:
    """Return a queued resource without the facts of its node, or None if neither it nor its node carries our mark.

    One that was imported was requested without our labels. Its node has them since its first change.
    """
    labels = read_back(resource).labels
    node_labels = {} if node is None else dict(node.get("labels", {}))
    name = zone_and_id(resource["name"])[1]
    mark = mark_of(name, node_labels if mark_in(node_labels) is not None else labels)
    if mark is None:
        return None
    unobserved = _unobserved(project, resource, mark)
    return replace(unobserved, is_signed=unobserved.is_signed or mark_in(node_labels) is not None)


def _with_node(connection: CloudConnection, resource: CloudResource | None, listed: _Nodes) -> CloudResource | None:
    """Return a queued resource with the facts of its node.

    A node that the list does not show is looked up before it counts as lost: that v2 lists the nodes of requests
    through v2alpha1 is unverified.
    """
    if resource is None or resource.slice.phase is not Phase.UP or resource.ref.zone in listed.unreachable:
        return resource
    node = listed.by_creator.get((resource.ref.zone, resource.ref.name)) or nodes.get(connection, resource.ref)
    return _merged(resource, node)


def _merged(resource: CloudResource, node: nodes.Node | None) -> CloudResource:
    """Return the resource with the facts of its node, which may have been given other metadata since the request."""
    metadata = dict((node or {}).get("metadata", {})) or resource.request.metadata
    return replace(
        resource, slice=nodes.merge(resource.slice, node), request=replace(resource.request, metadata=metadata)
    )


def _unobserved(project: str, resource: Mapping[str, Any], mark: OwnerMark) -> CloudResource:
    """Return a queued resource as a list shows it, without the facts of its node."""
    zone, name = zone_and_id(resource["name"])
    request = read_back(resource)
    raw = str(resource.get("state", {}).get("state", "STATE_UNSPECIFIED"))
    slice_ = Slice(
        name=name,
        zone=zone,
        phase=QUEUED_RESOURCE.get(raw, Phase.QUEUED),
        raw_state=raw,
        provisioning=request.provisioning,
        accelerator_type=request.accelerator_type,
    )
    return CloudResource(
        ref=SliceRef(name=name, project=project, zone=zone, backend=Backend.QUEUED_RESOURCE),
        mark=mark,
        is_signed=mark_in(request.labels) is not None or SPEC_KEY in request.metadata,
        slice=slice_,
        request=request,
        requested_at=moment(resource.get("createTime")),
    )


def _marked_node(project: str, node: nodes.Node) -> CloudResource | None:
    mark = mark_of(zone_and_id(node["name"])[1], node.get("labels", {}))
    return None if mark is None else _bare(project, node, mark)


def _bare(project: str, node: nodes.Node, mark: OwnerMark) -> CloudResource:
    zone, name = zone_and_id(node["name"])
    labels, metadata = dict(node.get("labels", {})), dict(node.get("metadata", {}))
    ref = SliceRef(name=name, project=project, zone=zone, backend=Backend.QUEUED_RESOURCE, is_bare=True)
    return CloudResource(
        ref=ref,
        mark=mark,
        is_signed=mark_in(labels) is not None or SPEC_KEY in metadata,
        slice=nodes.bare_slice(ref, node),
        request=ResourceRequest(
            accelerator_type=str(node.get("acceleratorType", "")),
            provisioning=_provisioning(node.get("schedulingConfig", {})),
            labels=labels,
            metadata=metadata,
        ),
        requested_at=moment(node.get("createTime")),
    )


def _provisioning(scheduling: Mapping[str, Any]) -> Provisioning:
    """Return the model of a node, which does not distinguish flex-start from on-demand."""
    if scheduling.get("spot") or scheduling.get("preemptible"):
        return Provisioning.SPOT
    return Provisioning.RESERVED if scheduling.get("reserved") else Provisioning.ON_DEMAND
