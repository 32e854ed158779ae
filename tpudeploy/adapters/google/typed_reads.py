"""Reads of the general Cloud TPU API (v2) by Google's typed client: slice types, runtime versions, nodes.

`zones`, `doctor`, `gc` and `import` alone read them: importing the client costs half as much as a plan. What only
v2alpha1 can express (provisioning models, the length of a run, the boot disk) stays on discovery. So do the
locations: the client's `list_locations` has no pager, and refuses a whole reply for one field that it does not know.
Why: decision 6 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.lists import PAGE_WITH_SCRIPTS, Item, Listed, parent_of, zone_of
from tpudeploy.adapters.google.nodes import Node
from tpudeploy.adapters.google.safe_read import safe_read
from tpudeploy.adapters.google.translate import Absent, translate_errors, translate_read_errors
from tpudeploy.domain import errors
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.names import Zone

if TYPE_CHECKING:
    from google.cloud import tpu_v2

_VIEWER = "roles/tpu.viewer"


def slice_types(connection: CloudConnection, project: str, zone: Zone) -> frozenset[str] | Unknown:
    """Return the slice types that a zone lists; none where the project cannot use the zone.

    Every type is read and filtered later, because the grammar of the service's own filter is unverified.
    """

    def read() -> frozenset[str]:
        with connection.typed_tpu() as client:
            types = client.list_accelerator_types(parent=parent_of(project, zone), timeout=connection.timeout)
            return frozenset(type_.type_ or _id(type_.name) for type_ in types)

    return _read_zone(f"list the types of {zone}", read)


def runtime_versions(connection: CloudConnection, project: str, zone: Zone) -> frozenset[str] | Unknown:
    """Return the runtime versions that a zone lists; none where the project cannot use the zone."""

    def read() -> frozenset[str]:
        with connection.typed_tpu() as client:
            versions = client.list_runtime_versions(parent=parent_of(project, zone), timeout=connection.timeout)
            return frozenset(version.version or _id(version.name) for version in versions)

    return _read_zone(f"list the runtime versions of {zone}", read)


def list_nodes(connection: CloudConnection, parent: str) -> Listed:
    """Return the nodes of a zone or of all (`locations/-`), and the zones that did not answer.

    Raise what `translate_errors` raises.
    """
    nodes: list[Item] = []
    silent_zones: set[Zone] = set()
    with translate_errors(f"list the nodes of {parent}"), connection.typed_tpu() as client:
        request = {"parent": parent, "page_size": PAGE_WITH_SCRIPTS}
        for page in client.list_nodes(request, timeout=connection.timeout).pages:
            nodes += map(_in_json, page.nodes)
            silent_zones.update(map(zone_of, page.unreachable))
    return nodes, silent_zones


def get_node(connection: CloudConnection, project: str, zone: Zone, name: str) -> Node | None:
    """Return one node, or None where it is absent. Raise `errors.CloudError`."""
    path = f"{parent_of(project, zone)}/nodes/{name}"
    try:
        with translate_read_errors(f"look at the node of {name}"), connection.typed_tpu() as client:
            return _in_json(client.get_node(name=path, timeout=connection.timeout))
    except Absent:
        return None


def _read_zone(action: str, read: Callable[[], frozenset[str]]) -> frozenset[str] | Unknown:
    def read_or_none() -> frozenset[str]:
        try:
            with translate_errors(action):
                return read()
        except (Absent, errors.Refused):
            return frozenset()  # the project cannot use this zone

    return safe_read(action, read_or_none, role=_VIEWER)


def _in_json(node: tpu_v2.Node) -> dict[str, Any]:
    """Return a node in the JSON of discovery, so that adapters/google/nodes.py reads both.

    A state that is newer than the client is a number there, which counts as unknown, as its name does.
    """
    from google.protobuf.json_format import MessageToDict

    return MessageToDict(type(node).pb(node))


def _id(name: str) -> str:
    return name.rpartition("/")[2]
