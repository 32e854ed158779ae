"""The network of a deployment, as Compute Engine tells it: subnetworks, routers, firewall rules, addresses.

A function named after a thing raises Google's errors: a 404 says that there is no such thing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.told import Asking, pages, results
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.surroundings import Firewall, Network, Ports, Room, Subnetwork, Wiring

_ADDRESSES = "IN_USE_ADDRESSES"
_EVERY_PORT = (0, 65535)
_PRIORITY = 1000  # Google's default
_DEFAULT = "default"
_SEES_NETWORKS = "roles/compute.networkViewer"


def read(connection: Connection, of: Deployment, ask: Asking) -> Wiring:
    """Everything here, at once; never raises."""
    project = of.project or ""
    regions = tuple(dict.fromkeys(c.zone.region for c in of.candidates))
    has_address = of.network.external_ip
    free = {
        r: ask.told(f"see the addresses of {r}", partial(addresses, connection, project, r), role=_SEES_NETWORKS)
        for r in (regions if has_address else ())
    }
    joined = ask.found(
        "look up the network", partial(network, connection, project, of.network.network), role=_SEES_NETWORKS
    ).result()
    if not isinstance(joined, Network):
        return Wiring(network=joined, subnetworks={}, has_nat={}, firewalls=(), addresses=results(free))
    subnetworks = {r: _subnetwork(connection, of, joined, r, ask) for r in regions}
    nat = {
        r: ask.told(f"see the routers of {r}", partial(has_nat, connection, joined, r), role=_SEES_NETWORKS)
        for r in (() if has_address else regions)
    }
    rules = ask.told("see the firewall rules", partial(firewalls, connection, joined), role=_SEES_NETWORKS)
    return Wiring(
        network=joined,
        subnetworks=results(subnetworks),
        has_nat=results(nat),
        firewalls=rules.result(),
        addresses=results(free),
    )


def _subnetwork(
    connection: Connection, of: Deployment, joined: Network, region: str, ask: Asking
) -> Future[Subnetwork | Unknown | None]:
    """The one that the profile names, else the network's own in the region, where it has one."""
    named = of.network.subnetwork
    own = joined.subnetworks.get(region)
    owner, name = place(of.project or "", named) if named is not None else (joined.project, own or joined.name)
    doing = f"look up the subnetwork of {region}"
    return ask.found(doing, partial(subnetwork, connection, owner, region, name), role=_SEES_NETWORKS)


def place(project: str, named: str | None) -> tuple[str, str]:
    """Project and name of what a profile calls `default`, or `projects/P/…/N`: a shared network is another's."""
    words = (named or _DEFAULT).split("/")
    is_path = "projects" in words[:-1]
    return (words[words.index("projects") + 1] if is_path else project), words[-1]


def network(connection: Connection, project: str, named: str | None) -> Network:
    owner, name = place(project, named)
    calls = connection.collection("compute", "v1", "networks")
    found = calls.get(project=owner, network=name).execute(num_retries=0)
    # …/regions/R/subnetworks/N
    own = [str(url).split("/") for url in found.get("subnetworks", ())]
    return Network(project=owner, name=name, subnetworks={words[-3]: words[-1] for words in own})


def subnetwork(connection: Connection, project: str, region: str, name: str) -> Subnetwork:
    calls = connection.collection("compute", "v1", "subnetworks")
    found = calls.get(project=project, region=region, subnetwork=name).execute(num_retries=0)
    return Subnetwork(name=name, has_private_access=bool(found.get("privateIpGoogleAccess")))


def has_nat(connection: Connection, of: Network, region: str) -> bool:
    """Whether a router of this network translates addresses there, of whichever subnetwork."""
    calls = connection.collection("compute", "v1", "routers")
    request = calls.list(project=of.project, region=region)
    routers = [router for page in pages(calls, request) for router in page.get("items", ())]
    return any(router.get("nats") and _is_of(router, of) for router in routers)


def firewalls(connection: Connection, of: Network) -> tuple[Firewall, ...]:
    """What may come in. Policies of the network, a folder or an organisation stand elsewhere and are not looked at."""
    calls = connection.collection("compute", "v1", "firewalls")
    rules = [rule for page in pages(calls, calls.list(project=of.project)) for rule in page.get("items", ())]
    return tuple(
        _firewall(rule)
        for rule in rules
        if _is_of(rule, of) and rule.get("direction") == "INGRESS" and not rule.get("disabled")
    )


def addresses(connection: Connection, project: str, region: str) -> Room:
    """How many external addresses the project may use in a region."""
    calls = connection.collection("compute", "v1", "regions")
    quotas = calls.get(project=project, region=region).execute(num_retries=0).get("quotas", ())
    found: Mapping[str, Any] = next((q for q in quotas if q.get("metric") == _ADDRESSES), {})
    return Room(limit=float(found.get("limit", 0)), used=float(found.get("usage", 0)))


def _is_of(thing: Mapping[str, Any], network: Network) -> bool:
    return str(thing.get("network", "")).rpartition("/")[2] == network.name


def _firewall(rule: Mapping[str, Any]) -> Firewall:
    return Firewall(
        name=str(rule.get("name", "")),
        priority=int(rule.get("priority", _PRIORITY)),
        allows="allowed" in rule,
        ports=tuple(_ports(one) for one in rule.get("allowed", rule.get("denied", ()))),
        sources=tuple(map(str, rule.get("sourceRanges", ()))),
        tags=tuple(map(str, rule.get("targetTags", ()))),
        accounts=tuple(map(str, rule.get("targetServiceAccounts", ()))),
    )


def _ports(of: Mapping[str, Any]) -> Ports:
    return Ports(protocol=str(of.get("IPProtocol", "")).lower(), ports=tuple(_ranges(of.get("ports", ()))))


def _ranges(written: Any) -> Iterator[tuple[int, int]]:
    """`8000` or `8000-8100`; none written are all."""
    for text in map(str, written):
        first, _, last = text.partition("-")
        yield int(first), int(last or first)
    if not written:
        yield _EVERY_PORT
