"""Looking through a whole project for what carries our mark. What did not answer is named, never taken for empty.

Every zone at once (`locations/-`), or, where Google refuses that, one by one; that the wildcard is taken is
unverified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tpudeploy.adapters.google import nodes
from tpudeploy.adapters.google.body import moment, read_back
from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.states import QUEUED_RESOURCE
from tpudeploy.adapters.google.translate import Absent, Precondition, translated
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.core.node import SPEC_KEY
from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.found import Asked, Found, Listing, mark_in, mark_of
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Phase, Slice, SliceRef

if TYPE_CHECKING:
    from google.cloud import tpu_v2

T = TypeVar("T")
# A list of one parent: what is in it, and the zones that did not answer.
Listed = tuple[list[T], set[Zone]]
_EVERYWHERE = "-"
_NO_TPUS = "zone-unsupported"
_MALFORMED = "invalid"


@frozen
class _Sweep(Generic[T]):
    items: list[T]
    unreachable: set[Zone]
    looked_in: tuple[Zone, ...] = ()


def marked(connection: Connection, project: str, zones: Iterable[Zone], *, machines: bool) -> Listing:
    """See `ports.TpuCloud.marked`."""
    places = tuple(dict.fromkeys((*zones, *(Zone(z) for g in GENERATIONS for z in g.zones))))
    # Nodes first: what is made in between stands in the second list, and no node of it is taken for a bare one.
    stood = _sweep(project, places, lambda parent: _nodes(connection, parent)) if machines else None
    asked = _sweep(project, places, lambda parent: _resources(connection, parent))
    found = [_resource(project, resource, stood) for resource in asked.items]
    if stood is not None:
        known = {_place(resource["name"]) for resource in asked.items}
        alone = (n for n in stood.items if _maker(n) not in known and _maker(n)[0] not in asked.unreachable)
        found += [_bare(project, node) for node in alone]
    return Listing(
        project=project,
        found=tuple(f for f in found if f is not None),
        unreachable=tuple(sorted(asked.unreachable | (stood.unreachable if stood is not None else set()))),
        looked_in=asked.looked_in,
    )


def _sweep(project: str, zones: tuple[Zone, ...], listed: Callable[[str], Listed[T]]) -> _Sweep[T]:
    try:
        items, silent = listed(_parent(project, _EVERYWHERE))
    except (Absent, Precondition, errors.Refused):
        return _one_by_one(project, zones, listed)
    except errors.Denied as denied:
        if denied.refusal is None or denied.refusal.kind != _MALFORMED:
            raise
        return _one_by_one(project, zones, listed)
    return _Sweep(items=items, unreachable=silent)


def _one_by_one(project: str, zones: tuple[Zone, ...], listed: Callable[[str], Listed[T]]) -> _Sweep[T]:
    items: list[T] = []
    unreachable: set[Zone] = set()
    for zone in zones:
        try:
            found, silent = listed(_parent(project, zone))
        except (Absent, Precondition, errors.Fault):
            unreachable.add(zone)
        except errors.Refused as refused:
            if refused.refusal is None or refused.refusal.kind != _NO_TPUS:
                unreachable.add(zone)
        else:
            items += found
            unreachable |= silent
    return _Sweep(items=items, unreachable=unreachable, looked_in=zones)


def _resources(connection: Connection, parent: str) -> Listed[dict[str, Any]]:
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations", "queuedResources")
    items: list[dict[str, Any]] = []
    silent: set[Zone] = set()
    token = None
    while True:
        with translated(f"list the queued resources of {parent}"):
            page = calls.list(parent=parent, pageToken=token).execute(num_retries=0)
        items += page.get("queuedResources", ())
        silent.update(map(_zone, page.get("unreachable", ())))
        token = page.get("nextPageToken")
        if not token:
            return items, silent


def _nodes(connection: Connection, parent: str) -> Listed[tpu_v2.Node]:
    items: list[tpu_v2.Node] = []
    silent: set[Zone] = set()
    with translated(f"list the nodes of {parent}"):
        for page in connection.nodes().list_nodes(parent=parent, retry=None, timeout=connection.timeout).pages:
            items += page.nodes
            silent.update(map(_zone, page.unreachable))
    return items, silent


def _resource(project: str, resource: Mapping[str, Any], stood: _Sweep[tpu_v2.Node] | None) -> Found | None:
    zone, name = _place(resource["name"])
    asked = read_back(resource)
    mark = mark_of(name, asked.labels)
    if mark is None:
        return None
    raw = str(resource.get("state", {}).get("state", "STATE_UNSPECIFIED"))
    shown = Slice(
        name=name,
        zone=zone,
        phase=QUEUED_RESOURCE.get(raw, Phase.QUEUED),
        raw_state=raw,
        provisioning=asked.provisioning,
        accelerator_type=asked.accelerator_type,
    )
    if stood is not None and shown.phase is Phase.UP and zone not in stood.unreachable:
        shown = nodes.shown(shown, next((n for n in stood.items if _maker(n) == (zone, name)), None))
    return Found(
        ref=SliceRef(name=name, project=project, zone=zone),
        mark=mark,
        is_signed=mark_in(asked.labels) is not None or SPEC_KEY in asked.metadata,
        slice=shown,
        asked=asked,
        asked_at=moment(resource.get("createTime")),
    )


def _bare(project: str, node: tpu_v2.Node) -> Found | None:
    zone, name = _place(node.name)
    labels, metadata = dict(node.labels), dict(node.metadata)
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
            accelerator_type=node.accelerator_type,
            provisioning=_provisioning(node.scheduling_config),
            labels=labels,
            metadata=metadata,
        ),
        asked_at=nodes.created_at(node),
    )


def _provisioning(of: tpu_v2.SchedulingConfig) -> Provisioning:
    """A node of v2 does not tell flex-start from on-demand."""
    if of.spot or of.preemptible:
        return Provisioning.SPOT
    return Provisioning.RESERVED if of.reserved else Provisioning.ON_DEMAND


def _maker(node: tpu_v2.Node) -> tuple[Zone, str]:
    """The queued resource that made this node; one of its own name where it says none."""
    zone, name = _place(node.name)
    return (zone, node.queued_resource.rpartition("/")[2] or name)


def _place(name: str) -> tuple[Zone, str]:
    """Zone and id of projects/P/locations/ZONE/…/ID."""
    words = name.split("/")
    return Zone(words[3]), words[-1]


def _zone(location: str) -> Zone:
    """Of an unreachable location: by its full name, or bare (which of the two is unverified)."""
    return Zone(location.rpartition("/")[2])


def _parent(project: str, zone: str) -> str:
    return f"projects/{project}/locations/{zone}"
