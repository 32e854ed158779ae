"""Locations, accelerator types, runtime versions: the catalogue, as Google lists it."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import Any

from tpudeploy import catalog
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain.accelerator import AcceleratorType, Backend
from tpudeploy.emulator import texts, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.wire import ApiCall, page

# The old general runtime is offered too: a wrong but valid choice, as with Google.
_TPU_APIS = tuple(generation.tpu_api for generation in GENERATIONS if generation.tpu_api is not None)
RUNTIMES = tuple(dict.fromkeys((*(tpu_api.runtime_version for tpu_api in _TPU_APIS), "tpu-ubuntu2204-base")))


def zones(cloud: Cloud) -> tuple[str, ...]:
    """Return the zones of Compute Engine. The TPU API knows those that it has a type in."""
    names = {zone for generation in GENERATIONS for zone in generation.zones} | set(cloud.scenario.offers)
    return tuple(sorted(names | {slice_.zone for slice_ in cloud.holding}))


def tpu_zones(cloud: Cloud) -> tuple[str, ...]:
    return tuple(zone for zone in zones(cloud) if zone in cloud.scenario.offers or types_of_tpu_api(cloud, zone))


def offered_types(cloud: Cloud, zone: str) -> tuple[AcceleratorType, ...]:
    """Return the types whose chips are in a zone, whichever API creates them."""
    offers = cloud.scenario.offers.get(zone)
    if offers is not None:
        return tuple(t for t in catalog.accelerator_types() if t.name in offers)
    return tuple(t for g in GENERATIONS if zone in g.zones for t in g.types)


def types_of_tpu_api(cloud: Cloud, zone: str) -> tuple[AcceleratorType, ...]:
    return tuple(t for t in offered_types(cloud, zone) if Backend.QUEUED_RESOURCE in t.backends)


def machines(cloud: Cloud, zone: str) -> tuple[AcceleratorType, ...]:
    """Return the types of one host: their machines are listed, also where GKE alone may create them."""
    names = cloud.scenario.compute_engine.machines.get(zone)
    types = (t for t in offered_types(cloud, zone) if t.hosts == 1)
    return tuple(t for t in types if names is None or t.machine_type in names)


def silent_zones(cloud: Cloud, call: ApiCall) -> frozenset[str]:
    """Return the zones of this list that do not answer."""
    row = call.troubles.get("unreachable")
    if row is None:
        return frozenset()
    covered = zones(cloud) if call.zone in ("", "-") else (call.zone,)
    return frozenset(fnmatch.filter(covered, str(row.settings["zones"])))


def unreachable(call: ApiCall, zones: Iterable[str]) -> dict[str, Any]:
    """Return the field of a list, with HTTP 200, about zones that do not answer. Its form is UNVERIFIED."""
    names = [f"projects/{call.project}/locations/{zone}" for zone in sorted(zones)]
    return {"unreachable": names} if names else {}


def get_location(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    _check_zone(cloud, call)
    return _location(call.project, call.zone)


def list_locations(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    return page(call, "locations", tpu_zones(cloud), lambda zone: _location(call.project, zone))


def get_type(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    _check_zone(cloud, call)
    return _find(cloud, call, [_type(call.zone, type_, call) for type_ in types_of_tpu_api(cloud, call.zone)])


def list_types(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    rows = [(zone, t) for zone in _covered_zones(cloud, call) for t in types_of_tpu_api(cloud, zone)]
    return page(call, "acceleratorTypes", rows, lambda row: _type(*row, call))


def get_runtime(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    _check_zone(cloud, call)
    return _find(cloud, call, [_runtime(call.zone, runtime, call) for runtime in RUNTIMES])


def list_runtimes(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    rows = [(zone, runtime) for zone in _covered_zones(cloud, call) for runtime in RUNTIMES]
    return page(call, "runtimeVersions", rows, lambda row: _runtime(*row, call))


def _covered_zones(cloud: Cloud, call: ApiCall) -> tuple[str, ...]:
    if call.zone == "-":
        return tpu_zones(cloud)
    _check_zone(cloud, call)
    return (call.zone,)


def _check_zone(cloud: Cloud, call: ApiCall) -> None:
    if call.zone not in tpu_zones(cloud):
        raise wire.ApiError(texts.status("location-denied", {"zone": call.zone}))


def _find(cloud: Cloud, call: ApiCall, rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    for row in rows:
        if row["name"] == call.name:
            return row
    raise cloud.not_found(call.name)


def _location(project: str, zone: str) -> dict[str, Any]:
    labels = {"cloud.googleapis.com/region": zone.rpartition("-")[0]}
    return {"name": f"projects/{project}/locations/{zone}", "locationId": zone, "labels": labels}


def _type(zone: str, type_: AcceleratorType, call: ApiCall) -> dict[str, Any]:
    return {
        "name": f"projects/{call.project}/locations/{zone}/acceleratorTypes/{type_.name}",
        "type": type_.name,
        "acceleratorConfigs": [config(type_)],
    }


def config(type_: AcceleratorType) -> dict[str, str]:
    """Return a type of the TPU API as an AcceleratorConfig."""
    tpu_api = catalog.generation(type_.generation).tpu_api
    return {"type": "" if tpu_api is None else tpu_api.config_type, "topology": type_.topology}


def _runtime(zone: str, runtime: str, call: ApiCall) -> dict[str, Any]:
    return {"name": f"projects/{call.project}/locations/{zone}/runtimeVersions/{runtime}", "version": runtime}
