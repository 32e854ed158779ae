"""Lists of one parent, read to their last page: what is in them, and the zones that did not answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.told import pages
from tpudeploy.adapters.google.translate import translated
from tpudeploy.domain.names import Zone

Listed = tuple[list[dict[str, Any]], set[Zone]]
# As many as may be asked for: the server gives fewer at once where that is too much for it (its most is UNVERIFIED).
_PAGE = 500
_KINDS = {"queuedResources": "queued resources", "nodes": "nodes"}


def listed(connection: Connection, kind: str, parent: str, *, only: str = "") -> Listed:
    """`kind` is `queuedResources` or `nodes`; `only` the fields of each that are wanted, all where it is empty.

    Raise what `translated` raises.
    """
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations", kind)
    asked = {"parent": parent, "pageSize": _PAGE} | ({"fields": _fields(kind, only)} if only else {})
    items: list[dict[str, Any]] = []
    silent: set[Zone] = set()
    with translated(f"list the {_KINDS[kind]} of {parent}"):
        for page in pages(calls, calls.list(**asked)):
            items += page.get(kind, ())
            silent.update(map(_zone, page.get("unreachable", ())))
    return items, silent


def place(name: str) -> tuple[Zone, str]:
    """Zone and id of projects/P/locations/ZONE/…/ID."""
    words = name.split("/")
    return Zone(words[3]), words[-1]


def maker(node: Mapping[str, Any]) -> tuple[Zone, str]:
    """The queued resource that made this node; one of its own name where it says none."""
    zone, name = place(node["name"])
    return (zone, str(node.get("queuedResource", "")).rpartition("/")[2] or name)


def parent_of(project: str, zone: str) -> str:
    return f"projects/{project}/locations/{zone}"


def _fields(kind: str, only: str) -> str:
    """A partial response, as every API of Google's gives it: a fleet's startup scripts are most of what a list says."""
    return f"{kind}({only}),nextPageToken,unreachable"


def _zone(location: str) -> Zone:
    """Of an unreachable location: by its full name, or bare (which of the two is unverified)."""
    return Zone(location.rpartition("/")[2])
