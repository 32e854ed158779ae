"""What Compute Engine offers: machine types of the catalogue in its zones, and the images of its families."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from tpudeploy.catalog import routers
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain.accelerator import IMAGE_PROJECT, AcceleratorType, Backend
from tpudeploy.domain.pins import EMULATED
from tpudeploy.emulator import listings
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.compute_engine import texts
from tpudeploy.emulator.compute_engine.lists import aggregated
from tpudeploy.emulator.compute_engine.operations import HOST
from tpudeploy.emulator.records import IMAGE_DISK_GB
from tpudeploy.emulator.wire import ApiCall

BACKEND = Backend.GCE_INSTANCE
# Of the machine types without accelerators. E2 shares its cores, and each of them counts.
_ORDINARY_CPUS: Mapping[str, int] = {"e2-small": 2, "e2-medium": 2, "e2-standard-2": 2, "e2-standard-4": 4}
_FAMILIES = tuple(each.compute_engine.image_family for each in GENERATIONS if each.compute_engine is not None)
_WEEK = 7 * 86_400
# vCPUs, from Google's pages; of a machine type that is not here they are not researched.
_CPUS: Mapping[str, int] = {
    "ct6e-standard-1t": 44,
    "ct6e-standard-4t": 180,
    "ct6e-standard-8t": 180,
    "ct5lp-hightpu-1t": 24,
    "ct5lp-hightpu-4t": 112,
    "ct5lp-hightpu-8t": 224,
    "ct5p-hightpu-1t-tpu": 52,
    "ct5p-hightpu-4t": 208,  # UNVERIFIED
    "tpu7x-standard-1t": 56,  # UNVERIFIED
    "tpu7x-standard-4t": 224,
}
_LINK = re.compile(r"(?:https://\S+/compute/v1/)?projects/(?P<project>[^/]+)/global/images/(?P<rest>.+)")


def get_machine_type(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    name = call.query["machineType"]
    ordinary = ordinary_machine(name)
    for type_ in (*listings.machines(cloud, call.zone), *([] if ordinary is None else [ordinary])):
        if type_.machine_type == name:
            return _machine_type(call.project, call.zone, type_)
    raise texts.refuse("not-found", name=f"projects/{call.project}/zones/{call.zone}/machineTypes/{name}")


def list_machine_types(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """List them over all zones. A listed type can have no capacity."""
    zones = listings.zones(cloud)
    rows = [
        (zone, _machine_type(call.project, zone, type_)) for zone in zones for type_ in listings.machines(cloud, zone)
    ]
    return aggregated(cloud, call, "compute#machineTypeAggregatedList", "machineTypes", rows)


def get_image(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return the newest image of a family: there is another one each week."""
    family = call.query["family"]
    place = f"projects/{call.project}/global/images"
    if call.project != IMAGE_PROJECT or family not in _FAMILIES:
        raise texts.refuse("not-found", name=f"{place}/family/{family}")
    name = _newest(cloud, family)
    return {
        "kind": "compute#image",
        "name": name,
        "family": family,
        "status": "READY",
        "diskSizeGb": str(IMAGE_DISK_GB),
        "architecture": "X86_64",
        "selfLink": f"{HOST}/{place}/{name}",
    }


def image_exists(cloud: Cloud, link: str) -> bool:
    """Return whether a link names a family, or an image of one that has been built."""
    if link == f"projects/{routers.IMAGE_PROJECT}/global/images/family/{routers.IMAGE_FAMILY}":
        return True
    match = _LINK.fullmatch(link)
    if match is None or match["project"] != IMAGE_PROJECT:
        return False
    family, _, build = match["rest"].rpartition("-v")
    is_built = build <= _newest(cloud, family).rpartition("-v")[2]
    return match["rest"].removeprefix("family/") in _FAMILIES or (family in _FAMILIES and is_built)


def ordinary_machine(name: str) -> AcceleratorType | None:
    """Return a machine type without accelerators, which every zone offers; None for another name."""
    if name not in routers.MACHINES:
        return None
    return AcceleratorType(
        name=name,
        generation="",
        topology="",
        chips=0,
        hosts=1,
        host_ram_gib=routers.MACHINES[name].memory_gib,
        machine_type=name,
        backends=(BACKEND,),
    )


def is_served(type_: AcceleratorType) -> bool:
    """Return whether Compute Engine creates slices of this type."""
    return BACKEND in type_.backends


def ordinary_cpus(accelerator: AcceleratorType) -> int:
    """Return the CPUs that a machine takes of the regional quota: those without accelerators, by their number."""
    return _ORDINARY_CPUS.get(accelerator.machine_type, 0)


def _newest(cloud: Cloud, family: str) -> str:
    """Return the name of the newest image, whose end shows that it is the emulator's."""
    built = cloud.clock.now() // _WEEK * _WEEK
    return f"{family}-v{time.strftime('%Y%m%d', time.gmtime(built))}-{EMULATED}"


def _machine_type(project: str, zone: str, type_: AcceleratorType) -> dict[str, Any]:
    accelerator = {"guestAcceleratorType": type_.machine_type.partition("-")[0], "guestAcceleratorCount": type_.chips}
    accelerators = [accelerator] if type_.chips else []
    return {
        "kind": "compute#machineType",
        "name": type_.machine_type,
        "guestCpus": _CPUS.get(type_.machine_type, 0) or ordinary_cpus(type_),
        "memoryMb": (type_.host_ram_gib or 0) * 1024,
        "accelerators": accelerators,
        "zone": zone,
        "selfLink": f"{HOST}/projects/{project}/zones/{zone}/machineTypes/{type_.machine_type}",
    }
