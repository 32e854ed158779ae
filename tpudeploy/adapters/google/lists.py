"""Lists of one parent, read to their last page: the items, and the zones that did not answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.safe_read import pages
from tpudeploy.adapters.google.translate import translate_errors
from tpudeploy.domain.names import Zone

Listed = tuple[list[dict[str, Any]], set[Zone]]
# The server returns fewer items per page where this is too many for it (its maximum is UNVERIFIED).
_PAGE = 500
_KINDS = {"queuedResources": "queued resources", "nodes": "nodes"}


def list_all(connection: Connection, kind: str, parent: str, *, only: str = "") -> Listed:
    """Return the items of a list and the zones that did not answer.

    `kind` is `queuedResources` or `nodes`. `only` names the fields of each item to read; if it is empty, all are
    read. Raise what `translate_errors` raises.
    """
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations", kind)
    parameters: dict[str, Any] = {"parent": parent, "pageSize": _PAGE}
    if only:
        # A partial response, as every API of Google's offers: startup scripts are most of a fleet's full list.
        parameters["fields"] = f"{kind}({only}),nextPageToken,unreachable"
    items: list[dict[str, Any]] = []
    silent_zones: set[Zone] = set()
    with translate_errors(f"list the {_KINDS[kind]} of {parent}"):
        for page in pages(calls, calls.list(**parameters)):
            items += page.get(kind, ())
            silent_zones.update(map(_zone, page.get("unreachable", ())))
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


def _zone(location: str) -> Zone:
    """Return the zone of an unreachable location, given as a full name or as an id (which of the two is unverified)."""
    return Zone(location.rpartition("/")[2])
