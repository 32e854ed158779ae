"""The slice types that each zone lists at each API.

The TPU API lists them by zone: `locations.list`, then `acceleratorTypes.list` in 16 zones at a time. Compute Engine
lists a machine type over all zones: `machineTypes.aggregatedList`, once for each machine of the catalogue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tpudeploy import catalog
from tpudeploy.adapters.google.compute_engine.aggregated import list_all_zones
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.safe_read import pages
from tpudeploy.adapters.google.translate import translate_errors
from tpudeploy.adapters.google.typed_reads import slice_types
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.facts import Offers, Unknown
from tpudeploy.domain.names import ZONE, Zone

_WIDE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferSource:
    """How the types of an API are read: what that is called in an error, and the name of the cached list."""

    read: Callable[[CloudConnection, str, float], Offers]
    action: str
    cache: str


def offers(connection: CloudConnection, project: str, backend: Backend, *, now: float) -> Offers:
    """Return the types of every zone at one API. Raise `errors.CloudError` if they cannot be listed."""
    return OFFERS[backend].read(connection, project, now)


def _accelerator_types(connection: CloudConnection, project: str, now: float) -> Offers:
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


def _machine_types(connection: CloudConnection, project: str, now: float) -> Offers:
    """Return the types of Compute Engine. A slice of several hosts is made of the machines that a zone lists."""
    types_by_machine: dict[str, list[str]] = defaultdict(list)
    for slice_type in catalog.accelerator_types():
        if Backend.GCE_INSTANCE in slice_type.backends:
            types_by_machine[slice_type.machine_type].append(slice_type.name)

    def zones_of(machine: str) -> tuple[set[Zone], set[Zone]]:
        rows, silent_zones = list_all_zones(
            connection, "machineTypes", project=project, filter_=f'name = "{machine}"', fields="name"
        )
        return {zone for zone, _ in rows}, silent_zones

    with translate_errors("list the machine types"), ThreadPoolExecutor(_WIDE) as pool:
        answers = dict(zip(types_by_machine, pool.map(zones_of, types_by_machine), strict=True))
    types: dict[Zone, set[str]] = defaultdict(set)
    for machine, (zones, _) in answers.items():
        for zone in zones:
            types[zone].update(types_by_machine[machine])
    silent = {zone for _, silent_zones in answers.values() for zone in silent_zones}
    return Offers(
        types={zone: tuple(sorted(names)) for zone, names in sorted(types.items())},
        read_at=now,
        silent={zone: f"Could not list the machine types of {zone}: it did not answer." for zone in sorted(silent)},
    )


OFFERS: Mapping[Backend, OfferSource] = {
    Backend.QUEUED_RESOURCE: OfferSource(read=_accelerator_types, action="list the zones", cache="offers"),
    Backend.GCE_INSTANCE: OfferSource(read=_machine_types, action="list the machine types", cache="machines"),
}


def _zones(connection: CloudConnection, project: str) -> Iterator[Zone]:
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations")
    for page in pages(calls, calls.list(name=f"projects/{project}")):
        names = (
            str(place.get("locationId") or place["name"].rpartition("/")[2]) for place in page.get("locations", ())
        )
        yield from (Zone(name) for name in names if ZONE.fullmatch(name))
