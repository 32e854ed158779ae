"""Looking through a whole project for what carries our mark. What did not answer is named, never taken for empty.

Every zone at once (`locations/-`), or, where Google refuses that, one by one; that the wildcard is taken is
unverified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from tpudeploy.adapters.google import nodes
from tpudeploy.adapters.google.body import moment, read_back
from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.lists import Listed, listed, maker, parent_of, place
from tpudeploy.adapters.google.states import QUEUED_RESOURCE
from tpudeploy.adapters.google.translate import Absent, Precondition, translated
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.core.node import SPEC_KEY
from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.found import UNMARKED, Asked, Found, Listing, Mark, mark_in, mark_of
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Phase, Slice, SliceRef

_EVERYWHERE = "-"
_NO_TPUS = "zone-unsupported"
_MALFORMED = "invalid"


@frozen
class _Made:
    """The nodes, by the queued resource that made them."""

    by: Mapping[tuple[Zone, str], nodes.Node]
    unreachable: set[Zone]


@frozen
class _Sweep:
    items: list[dict[str, Any]]
    unreachable: set[Zone]
    looked_in: tuple[Zone, ...] = ()


def marked(connection: Connection, project: str, zones: Iterable[Zone], *, machines: bool) -> Listing:
    """See `ports.TpuCloud.marked`."""
    places = _places(zones)
    # Nodes first: what is made in between stands in the second list, and no node of it is taken for a bare one.
    stood = _sweep(project, places, lambda parent: listed(connection, "nodes", parent)) if machines else None
    asked = _sweep(project, places, lambda parent: listed(connection, "queuedResources", parent))
    made = None if stood is None else _Made(by={maker(n): n for n in stood.items}, unreachable=stood.unreachable)
    found = [_resource(project, resource, made) for resource in asked.items]
    if stood is not None:
        known = {place(resource["name"]) for resource in asked.items}
        alone = (n for n in stood.items if maker(n) not in known and maker(n)[0] not in asked.unreachable)
        found += [_bare(project, node) for node in alone]
    return Listing(
        project=project,
        found=tuple(f for f in found if f is not None),
        unreachable=tuple(sorted(asked.unreachable | (stood.unreachable if stood is not None else set()))),
        looked_in=asked.looked_in,
    )


def named(connection: Connection, project: str, name: str, zones: Iterable[Zone], *, zone: Zone | None) -> Listing:
    """See `ports.TpuCloud.named`. A zone that is named must answer."""
    if zone is None:
        swept = _sweep(project, _places(zones), lambda parent: listed(connection, "queuedResources", parent))
        items = [r for r in swept.items if place(r["name"])[1] == name]
        silent, looked_in = swept.unreachable, swept.looked_in
    else:
        items, silent, looked_in = (
            _get(connection, f"{parent_of(project, zone)}/queuedResources/{name}"),
            set(),
            (zone,),
        )
    found = (_shown(project, resource, mark_of(name, read_back(resource).labels) or UNMARKED) for resource in items)
    return Listing(project=project, found=tuple(found), unreachable=tuple(sorted(silent)), looked_in=looked_in)


def _get(connection: Connection, path: str) -> list[dict[str, Any]]:
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations", "queuedResources")
    try:
        with translated(f"look at {path}"):
            return [calls.get(name=path).execute(num_retries=0)]
    except (Absent, Precondition):
        return []


def _places(zones: Iterable[Zone]) -> tuple[Zone, ...]:
    return tuple(dict.fromkeys((*zones, *(Zone(z) for g in GENERATIONS for z in g.zones))))


def _sweep(project: str, zones: tuple[Zone, ...], read: Callable[[str], Listed]) -> _Sweep:
    try:
        items, silent = read(parent_of(project, _EVERYWHERE))
    except (Absent, Precondition, errors.Refused):
        return _one_by_one(project, zones, read)
    except errors.Denied as denied:
        if denied.refusal is None or denied.refusal.kind != _MALFORMED:
            raise
        return _one_by_one(project, zones, read)
    return _Sweep(items=items, unreachable=silent)


def _one_by_one(project: str, zones: tuple[Zone, ...], read: Callable[[str], Listed]) -> _Sweep:
    items: list[dict[str, Any]] = []
    unreachable: set[Zone] = set()
    for zone in zones:
        try:
            found, silent = read(parent_of(project, zone))
        except (Absent, Precondition, errors.Fault):
            unreachable.add(zone)
        except errors.Refused as refused:
            if refused.refusal is None or refused.refusal.kind != _NO_TPUS:
                unreachable.add(zone)
        else:
            items += found
            unreachable |= silent
    return _Sweep(items=items, unreachable=unreachable, looked_in=zones)


def _resource(project: str, resource: Mapping[str, Any], made: _Made | None) -> Found | None:
    zone, name = place(resource["name"])
    mark = mark_of(name, read_back(resource).labels)
    if mark is None:
        return None
    found = _shown(project, resource, mark)
    if made is None or found.slice.phase is not Phase.UP or zone in made.unreachable:
        return found
    return replace(found, slice=nodes.shown(found.slice, made.by.get((zone, name))))


def _shown(project: str, resource: Mapping[str, Any], mark: Mark) -> Found:
    """A queued resource as a list shows it, its machine not looked at."""
    zone, name = place(resource["name"])
    asked = read_back(resource)
    raw = str(resource.get("state", {}).get("state", "STATE_UNSPECIFIED"))
    shown = Slice(
        name=name,
        zone=zone,
        phase=QUEUED_RESOURCE.get(raw, Phase.QUEUED),
        raw_state=raw,
        provisioning=asked.provisioning,
        accelerator_type=asked.accelerator_type,
    )
    return Found(
        ref=SliceRef(name=name, project=project, zone=zone),
        mark=mark,
        is_signed=mark_in(asked.labels) is not None or SPEC_KEY in asked.metadata,
        slice=shown,
        asked=asked,
        asked_at=moment(resource.get("createTime")),
    )


def _bare(project: str, node: nodes.Node) -> Found | None:
    zone, name = place(node["name"])
    labels, metadata = dict(node.get("labels", {})), dict(node.get("metadata", {}))
    mark = mark_of(name, labels)
    if mark is None:
        return None
    ref = SliceRef(name=name, project=project, zone=zone, is_bare=True)
    return Found(
        ref=ref,
        mark=mark,
        is_signed=mark_in(labels) is not None or SPEC_KEY in metadata,
        slice=nodes.alone(ref, node),
        asked=Asked(
            accelerator_type=str(node.get("acceleratorType", "")),
            provisioning=_provisioning(node.get("schedulingConfig", {})),
            labels=labels,
            metadata=metadata,
        ),
        asked_at=moment(node.get("createTime")),
    )


def _provisioning(of: Mapping[str, Any]) -> Provisioning:
    """A node does not tell flex-start from on-demand."""
    if of.get("spot") or of.get("preemptible"):
        return Provisioning.SPOT
    return Provisioning.RESERVED if of.get("reserved") else Provisioning.ON_DEMAND
