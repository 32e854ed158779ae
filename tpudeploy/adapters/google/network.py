"""The network of a deployment, read from Compute Engine: subnetworks, routers, firewall rules, addresses.

A function named after a resource raises Google's errors. A 404 means that the resource does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.safe_read import SafeReader, pages, results
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.project_facts import Firewall, NetworkFacts, Ports, ProjectNetwork, QuotaUse, Subnetwork

_ADDRESSES = "IN_USE_ADDRESSES"
_EVERY_PORT = (0, 65535)
_PRIORITY = 1000  # Google's default
_DEFAULT = "default"
_NETWORK_VIEWER = "roles/compute.networkViewer"


def read(connection: CloudConnection, deployment: Deployment, reader: SafeReader) -> NetworkFacts:
    """Return all network facts of a deployment, read in parallel. Never raises."""
    project = deployment.project or ""
    regions = tuple(dict.fromkeys(c.zone.region for c in deployment.candidates))
    # Machines reach the internet by an address of their own, or else through NAT.
    with_addresses, with_nat = (regions, ()) if deployment.network.external_ip else ((), regions)
    address_quotas = {
        region: reader.read(
            f"see the addresses of {region}", partial(addresses, connection, project, region), role=_NETWORK_VIEWER
        )
        for region in with_addresses
    }
    vpc = reader.read_optional(
        "look up the network", partial(network, connection, project, deployment.network.network), role=_NETWORK_VIEWER
    ).result()
    if not isinstance(vpc, ProjectNetwork):
        return NetworkFacts(network=vpc, subnetworks={}, has_nat={}, firewalls=(), addresses=results(address_quotas))
    subnetworks = {region: _subnetwork(connection, deployment, vpc, region, reader) for region in regions}
    nat_by_region = {
        region: reader.read(
            f"see the routers of {region}", partial(has_nat, connection, vpc, region), role=_NETWORK_VIEWER
        )
        for region in with_nat
    }
    rules = reader.read("see the firewall rules", partial(firewalls, connection, vpc), role=_NETWORK_VIEWER)
    return NetworkFacts(
        network=vpc,
        subnetworks=results(subnetworks),
        has_nat=results(nat_by_region),
        firewalls=rules.result(),
        addresses=results(address_quotas),
    )


def _subnetwork(
    connection: CloudConnection, deployment: Deployment, vpc: ProjectNetwork, region: str, reader: SafeReader
) -> Future[Subnetwork | Unknown | None]:
    """Read the subnetwork that the profile names, else the network's own subnetwork in the region."""
    configured = deployment.network.subnetwork
    if configured is not None:
        owner, name = project_and_name(deployment.project or "", configured)
    else:
        owner, name = vpc.project, vpc.subnetworks.get(region) or vpc.name
    read_subnetwork = partial(subnetwork, connection, owner, region, name)
    return reader.read_optional(f"look up the subnetwork of {region}", read_subnetwork, role=_NETWORK_VIEWER)


def project_and_name(project: str, reference: str | None) -> tuple[str, str]:
    """Return the project and the name in a reference such as `default` or `projects/P/…/N`.

    A shared network belongs to another project.
    """
    words = (reference or _DEFAULT).split("/")
    is_path = "projects" in words[:-1]
    return (words[words.index("projects") + 1] if is_path else project), words[-1]


def network(connection: CloudConnection, project: str, reference: str | None) -> ProjectNetwork:
    owner, name = project_and_name(project, reference)
    calls = connection.collection("compute", "v1", "networks")
    response = calls.get(project=owner, network=name).execute(num_retries=0)
    # …/regions/R/subnetworks/N
    urls = [str(url).split("/") for url in response.get("subnetworks", ())]
    return ProjectNetwork(project=owner, name=name, subnetworks={words[-3]: words[-1] for words in urls})


def subnetwork(connection: CloudConnection, project: str, region: str, name: str) -> Subnetwork:
    calls = connection.collection("compute", "v1", "subnetworks")
    response = calls.get(project=project, region=region, subnetwork=name).execute(num_retries=0)
    return Subnetwork(
        name=name,
        has_private_access=bool(response.get("privateIpGoogleAccess")),
        addresses=str(response.get("ipCidrRange", "")),
    )


def has_nat(connection: CloudConnection, vpc: ProjectNetwork, region: str) -> bool:
    """Return whether a router of this network translates addresses in the region, for any subnetwork."""
    calls = connection.collection("compute", "v1", "routers")
    request = calls.list(project=vpc.project, region=region)
    routers = [router for page in pages(calls, request) for router in page.get("items", ())]
    return any(router.get("nats") and _belongs_to(router, vpc) for router in routers)


def firewalls(connection: CloudConnection, vpc: ProjectNetwork) -> tuple[Firewall, ...]:
    """Return the ingress rules. Firewall policies of the network, a folder or an organisation are not read."""
    calls = connection.collection("compute", "v1", "firewalls")
    rules = [rule for page in pages(calls, calls.list(project=vpc.project)) for rule in page.get("items", ())]
    return tuple(
        _firewall(rule)
        for rule in rules
        if _belongs_to(rule, vpc) and rule.get("direction") == "INGRESS" and not rule.get("disabled")
    )


def addresses(connection: CloudConnection, project: str, region: str) -> QuotaUse:
    """Return the quota and the use of external addresses in a region."""
    calls = connection.collection("compute", "v1", "regions")
    quotas = calls.get(project=project, region=region).execute(num_retries=0).get("quotas", ())
    quota: Mapping[str, Any] = next((q for q in quotas if q.get("metric") == _ADDRESSES), {})
    return QuotaUse(limit=float(quota.get("limit", 0)), used=float(quota.get("usage", 0)))


def _belongs_to(thing: Mapping[str, Any], network: ProjectNetwork) -> bool:
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


def _ports(entry: Mapping[str, Any]) -> Ports:
    return Ports(protocol=str(entry.get("IPProtocol", "")).lower(), ports=tuple(_ranges(entry.get("ports", ()))))


def _ranges(texts: Any) -> Iterator[tuple[int, int]]:
    """Yield the first and last port of texts such as `8000` and `8000-8100`. No text means every port."""
    for text in map(str, texts):
        first, _, last = text.partition("-")
        yield int(first), int(last or first)
    if not texts:
        yield _EVERY_PORT
