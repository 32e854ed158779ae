"""The slice types that each zone lists: `locations.list`, then `acceleratorTypes.list` in 16 zones at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.safe_read import pages
from tpudeploy.adapters.google.translate import translate_errors
from tpudeploy.adapters.google.typed_reads import slice_types
from tpudeploy.domain.facts import Offers, Unknown
from tpudeploy.domain.names import ZONE, Zone

_WIDE = 16


def offers(connection: Connection, project: str, *, now: float) -> Offers:
    """Return the types of every zone. Raise `errors.CloudError` if the zones cannot be listed."""
    with translate_errors("list the zones"):
        zones = tuple(_zones(connection, project))
    with ThreadPoolExecutor(_WIDE) as pool:
        answers = dict(zip(zones, pool.map(lambda zone: slice_types(connection, project, zone), zones), strict=True))
    return Offers(
        types={
            zone: tuple(sorted(types)) for zone, types in answers.items() if types and not isinstance(types, Unknown)
        },
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
