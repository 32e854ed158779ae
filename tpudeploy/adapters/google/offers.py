"""Which slice types each zone lists: `locations.list`, then `acceleratorTypes.list` in each, sixteen at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.told import pages, told
from tpudeploy.adapters.google.translate import Absent, translated
from tpudeploy.domain import errors
from tpudeploy.domain.facts import Offers, Unknown
from tpudeploy.domain.names import ZONE, Zone

_WIDE = 16


def offers(connection: Connection, project: str, *, now: float) -> Offers:
    """Raise `errors.CloudError` where not even the zones can be listed. The grammar of the service's own filter is
    unverified: every type is read, and chosen from here.
    """
    with translated("list the zones"):
        zones = tuple(_zones(connection, project))
    with ThreadPoolExecutor(_WIDE) as pool:
        answers = dict(zip(zones, pool.map(lambda zone: _types(connection, project, zone), zones), strict=True))
    return Offers(
        types={zone: types for zone, types in answers.items() if types and not isinstance(types, Unknown)},
        read_at=now,
        silent={zone: types.because for zone, types in answers.items() if isinstance(types, Unknown)},
    )


def _zones(connection: Connection, project: str) -> Iterator[Zone]:
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations")
    for page in pages(calls, calls.list(name=f"projects/{project}")):
        names = (
            str(place.get("locationId") or place["name"].rpartition("/")[2]) for place in page.get("locations", ())
        )
        yield from (Zone(name) for name in names if ZONE.fullmatch(name))


def _types(connection: Connection, project: str, zone: Zone) -> tuple[str, ...] | Unknown:
    def read() -> tuple[str, ...]:
        calls = connection.collection("tpu", "v2alpha1", "projects", "locations", "acceleratorTypes")
        request = calls.list(parent=f"projects/{project}/locations/{zone}")
        try:
            with translated(f"list the types of {zone}"):
                found = [_name(t) for page in pages(calls, request) for t in page.get("acceleratorTypes", ())]
        except (Absent, errors.Refused):
            return ()  # not a zone for this project
        return tuple(sorted(set(found)))

    return told(f"list the types of {zone}", read, role="roles/tpu.viewer")


def _name(of: dict[str, Any]) -> str:
    return str(of.get("type") or of["name"].rpartition("/")[2])
