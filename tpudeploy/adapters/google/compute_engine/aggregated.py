"""List one kind of resource of Compute Engine over all zones or regions, in one call, to the last page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpudeploy.adapters.google.compute_engine.body import last_word
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.safe_read import pages
from tpudeploy.domain.names import ZONE, Zone

_PAGE = 500


def list_all_zones(
    connection: CloudConnection, kind: str, *, project: str, fields: str = "", filter_: str = ""
) -> tuple[list[tuple[Zone, Mapping[str, Any]]], set[Zone]]:
    """Return the resources with their zones, and the zones that did not answer. `kind` is that of a zone's resources.

    See `list_all_places`, of which this leaves out what is not in a zone.
    """
    resources, silent_places = list_all_places(connection, kind, project=project, fields=fields, filter_=filter_)
    in_zones = [(Zone(place), item) for place, item in resources if ZONE.fullmatch(place)]
    return in_zones, {Zone(place) for place in silent_places if ZONE.fullmatch(place)}


def list_all_places(
    connection: CloudConnection, kind: str, *, project: str, fields: str = "", filter_: str = ""
) -> tuple[list[tuple[str, Mapping[str, Any]]], set[str]]:
    """Return the resources with their zones or regions, and the zones or regions that did not answer.

    `kind` is `instances`, `machineTypes`, `resourcePolicies` or `instanceTemplates`. `fields` names the fields of each
    resource to read; if it is empty, all are read. An error is not translated.
    """
    calls = connection.collection("compute", "v1", kind)
    parameters: dict[str, Any] = {"project": project, "maxResults": _PAGE}
    if filter_:
        parameters["filter"] = filter_
    if fields:
        parameters["fields"] = f"items/*({kind}({fields}),warning/code),unreachables,nextPageToken"
    request = calls.aggregatedList(**parameters)
    # The bundled document describes this parameter and does not declare it, so the client has none.
    request.uri = f"{request.uri}&returnPartialSuccess=true"
    resources: list[tuple[str, Mapping[str, Any]]] = []
    silent_places: set[str] = set()
    for page in pages(calls, request, next_method="aggregatedList_next"):
        silent_places |= {last_word(place) for place in page.get("unreachables", ())}
        for place, scope in page.get("items", {}).items():
            name = last_word(place)
            resources += [(name, item) for item in scope.get(kind, ())]
            if scope.get("warning", {}).get("code") == "UNREACHABLE":
                silent_places.add(name)
    return resources, silent_places
