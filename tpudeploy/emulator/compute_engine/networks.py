"""Compute Engine: regions and their quota of addresses, networks, subnetworks, routers, firewall rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpudeploy.emulator import listings, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.compute_engine import quota
from tpudeploy.emulator.compute_engine.lists import listed
from tpudeploy.emulator.wire import ApiCall

_HOST = "https://www.googleapis.com/compute/v1/projects"
_PRIORITY = 65534  # of the default network's rules


def get_region(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    region = _region(cloud, call)
    quotas = [
        {"metric": row.metric, "limit": float(row.limit), "usage": float(row.usage)}
        for row in quota.regional(cloud, call.project, region)
    ]
    zones = [f"{_HOST}/{call.project}/zones/{z}" for z in listings.zones(cloud) if z.rpartition("-")[0] == region]
    return {"kind": "compute#region", "name": region, "status": "UP", "quotas": quotas, "zones": zones}


def get_network(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    name = call.query["network"]
    networks = cloud.scenario.project.networks
    if networks is not None and name not in networks:
        raise _absent(f"projects/{call.project}/global/networks/{name}")
    regions = _regions(cloud) if networks is None else sorted(networks[name])
    subnetworks = [f"{_HOST}/{call.project}/regions/{region}/subnetworks/{name}" for region in regions]
    link = f"{_HOST}/{call.project}/global/networks/{name}"
    body = {"kind": "compute#network", "name": name, "selfLink": link, "autoCreateSubnetworks": True}
    return {**body, "subnetworks": subnetworks}


def get_subnetwork(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return a subnetwork. Every network here is in auto mode, where a subnetwork has the network's name."""
    name, region = call.query["subnetwork"], _region(cloud, call)
    subnetwork = find_subnetwork(cloud, name, region)
    if subnetwork is None:
        raise _absent(f"projects/{call.project}/regions/{region}/subnetworks/{name}")
    return {
        "kind": "compute#subnetwork",
        "name": name,
        "network": f"{_HOST}/{call.project}/global/networks/{name}",
        "region": f"{_HOST}/{call.project}/regions/{region}",
        "ipCidrRange": "10.128.0.0/20",
        "privateIpGoogleAccess": subnetwork.get("private_access", True),
    }


def list_routers(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    region = _region(cloud, call)
    networks = cloud.scenario.project.networks
    names = ("default",) if networks is None else tuple(networks)
    with_nat = [name for name in names if (find_subnetwork(cloud, name, region) or {}).get("nat", False)]
    return listed(call, "compute#routerList", [_router(call.project, region, name) for name in with_nat])


def list_firewalls(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    link = f"{_HOST}/{call.project}/global/networks/default"
    usual = {"kind": "compute#firewall", "network": link, "direction": "INGRESS", "priority": _PRIORITY}
    rules = [{**usual, "disabled": False, **rule} for rule in cloud.scenario.project.firewalls]
    return listed(call, "compute#firewallList", rules)


def _router(project: str, region: str, network: str) -> dict[str, Any]:
    nat = {
        "name": "nat",
        "natIpAllocateOption": "AUTO_ONLY",
        "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
    }
    link = f"{_HOST}/{project}/global/networks/{network}"
    return {"kind": "compute#router", "name": f"nat-{region}", "network": link, "nats": [nat]}


def find_subnetwork(cloud: Cloud, network: str, region: str) -> Mapping[str, bool] | None:
    """Return the scenario's settings of a network's subnetwork in a region; None if there is no subnetwork."""
    networks = cloud.scenario.project.networks
    return {} if networks is None else networks.get(network, {}).get(region)


def _regions(cloud: Cloud) -> list[str]:
    return sorted({zone.rpartition("-")[0] for zone in listings.zones(cloud)})


def _region(cloud: Cloud, call: ApiCall) -> str:
    region = call.query["region"]
    if region not in _regions(cloud):
        raise _absent(f"projects/{call.project}/regions/{region}")
    return region


def _absent(name: str) -> wire.ApiError:
    return wire.refuse(5, f"The resource '{name}' was not found")
