"""The slice types that each zone lists: `locations.list`, then `acceleratorTypes.list` in 16 zones at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.safe_read import pages, safe_read
from tpudeploy.adapters.google.translate import Absent, translate_errors
from tpudeploy.domain import errors
from tpudeploy.domain.facts import Offers, Unknown
from tpudeploy.domain.names import ZONE, Zone

_WIDE = 16


def offers(connection: Connection, project: str, *, now: float) -> Offers:
    """Return the types of every zone. Raise `errors.CloudError` if the zones cannot be listed.

    Every type is read and filtered later, because the grammar of the service's own filter is unverified.
    """
    with translate_errors("list the zones"):
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
            with translate_errors(f"list the types of {zone}"):
                types = [_name(t) for page in pages(calls, request) for t in page.get("acceleratorTypes", ())]
        except (Absent, errors.Refused):
            return ()  # the project cannot use this zone
        return tuple(sorted(set(types)))

    return safe_read(f"list the types of {zone}", read, role="roles/tpu.viewer")


def _name(accelerator_type: dict[str, Any]) -> str:
    return str(accelerator_type.get("type") or accelerator_type["name"].rpartition("/")[2])
