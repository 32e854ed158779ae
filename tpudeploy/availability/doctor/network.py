"""The way to the endpoint and out of the machine: networks, Private Google Access, Cloud NAT, firewall, addresses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_network
from math import inf
from typing import TypeVar

from tpudeploy.availability.diagnosis import Finding
from tpudeploy.availability.doctor.case import DoctorInput, fail, ok, some_or_all, unknown, warn
from tpudeploy.catalog.access import IAP_RANGE
from tpudeploy.domain.deployment import Deployment, Via
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.project_facts import Account, Firewall, ProjectNetwork, Subnetwork
from tpudeploy.sizing.checks.placement import unreachable
from tpudeploy.text import words

T = TypeVar("T")
_SSH = 22
_EVERYWHERE = {"0.0.0.0/0", "::/0"}
_INSIDE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")  # RFC 1918 and 4193
_TCP = {"tcp", "6", "all"}
# Ray takes ports of its own choice beside the one that hosts join at.
_ALL_PORTS = (1024, 65535)


def network(case: DoctorInput) -> Iterator[Finding]:
    fact, name = case.facts.wiring.network, case.deployment.network.network or "default"
    if isinstance(fact, Unknown):
        yield unknown(case, "network", fact)
    elif fact is None:
        hint = f"Run: gcloud compute networks create {name}\nor name another in placement.network.network."
        yield fail("network", f"There is no network {name} in {case.deployment.project}.", hint)
    else:
        yield ok("network", f"The network {fact.name} exists.")


def subnetworks(case: DoctorInput) -> Iterator[Finding]:
    facts = case.facts.wiring.subnetworks
    reason, subnetworks = _split(facts)
    absent = sorted(region for region, subnetwork in subnetworks.items() if subnetwork is None)
    if absent:
        name = case.deployment.network.subnetwork or "subnetwork"
        message = f"No {name} in {words.some(absent)}: requests there are refused."
        hint = "Create one, or leave the zones of these regions out of placement.zones."
        yield some_or_all("subnetwork", absent, len(facts), message, hint)
    elif reason:
        yield unknown(case, "subnetwork", reason)
    elif subnetworks:
        yield ok(
            "subnetwork",
            f"Every region that the profile allows has a subnetwork: {words.some(sorted(subnetworks))}.",
        )


def private_access(case: DoctorInput) -> Iterator[Finding]:
    """Check Private Google Access, the only way of a machine without an address to Google's services."""
    if case.deployment.network.external_ip:
        return
    subnetworks = {r: s for r, s in case.facts.wiring.subnetworks.items() if isinstance(s, Subnetwork)}
    closed = sorted(region for region, subnetwork in subnetworks.items() if not subnetwork.has_private_access)
    if closed:
        update = "gcloud compute networks subnets update {} --region={} --enable-private-ip-google-access"
        hint = "\n".join(f"Run: {update.format(subnetworks[r].name, r)}" for r in closed)
        message = f"No Private Google Access in {words.some(closed)}: the machine could not even read its secrets."
        yield some_or_all("private-access", closed, len(subnetworks), message, hint)
    elif subnetworks:
        yield ok("private-access", f"Private Google Access is on in {words.some(sorted(subnetworks))}.")


def nat(case: DoctorInput) -> Iterator[Finding]:
    """Check Cloud NAT, which a machine without an address needs for an image or weights that are not Google's."""
    wiring = case.facts.wiring
    needs = [d.message for d in unreachable.find(case.deployment)]
    if not needs or not wiring.has_nat:
        return
    reason, regions = _split(wiring.has_nat)
    without = sorted(region for region, has_nat in regions.items() if not has_nat)
    if without:
        name = wiring.network.name if isinstance(wiring.network, ProjectNetwork) else "default"
        router = f"gcloud compute routers create nat --network={name} --region={without[0]}"
        gateway = f"gcloud compute routers nats create nat --router=nat --region={without[0]}"
        ranges = "--auto-allocate-nat-external-ips --nat-all-subnet-ip-ranges"
        message = f"No Cloud NAT in {words.some(without)}. {' '.join(needs)}"
        yield some_or_all("nat", without, len(wiring.has_nat), message, f"Run: {router}\nRun: {gateway} {ranges}")
    elif reason:
        yield unknown(case, "nat", reason)
    else:
        yield ok("nat", f"Cloud NAT leads out of {words.some(sorted(regions))}.")


def firewall(case: DoctorInput) -> Iterator[Finding]:
    """Check the firewall rules. Policies of the network, a folder or an organisation may open more, or less."""
    deployment, rules, fact = case.deployment, case.facts.wiring.firewalls, case.facts.wiring.network
    opening = _needed_opening(deployment)
    if opening is None or not isinstance(fact, ProjectNetwork):
        return
    if isinstance(rules, Unknown):
        yield unknown(case, "firewall", rules)
        return
    port, source = opening
    account = case.facts.access.account
    openers = _openers(rules, deployment, opening, account.email if isinstance(account, Account) else "")
    if openers:
        sources = words.some(dict.fromkeys(s for rule in openers for s in rule.sources))
        names = words.some(rule.name for rule in openers)
        yield ok("firewall", f"tcp:{port} is open to {source or sources} ({names}).")
        return
    kind = "vllm" if not source else "iap"
    create = f"gcloud compute firewall-rules create {deployment.name}-{kind} --network={fact.name}"
    tags = f" --target-tags={','.join(deployment.network.tags)}" if deployment.network.tags else ""
    hint = f"Run: {create} --allow=tcp:{port} --source-ranges={source or 'YOUR_RANGE'}{tags}"
    yield warn("firewall", f"No rule opens tcp:{port}: the server cannot be reached from here.", hint)


def between_workers(case: DoctorInput) -> Iterator[Finding]:
    """Check that the workers of a slice may reach one another, where a slice has several hosts."""
    deployment, rules = case.deployment, case.facts.wiring.firewalls
    if deployment.accelerator.hosts == 1 or isinstance(rules, Unknown):
        return
    subnetworks = (case.facts.wiring.subnetworks[region] for region in sorted(case.facts.wiring.subnetworks))
    ranges = dict.fromkeys(s.addresses for s in subnetworks if isinstance(s, Subnetwork) and s.addresses)
    account = case.facts.access.account
    email = account.email if isinstance(account, Account) else ""
    blocks = [r for r in ranges if not all(_openers(rules, deployment, (port, r), email) for port in _ALL_PORTS)]
    if blocks:
        fact = case.facts.wiring.network
        name = fact.name if isinstance(fact, ProjectNetwork) else "default"
        create = f"gcloud compute firewall-rules create {name}-workers --network={name}"
        message = (
            f"No rule by addresses lets the workers of a slice reach one another within {words.some(blocks)}: "
            "Ray cannot join them."
        )
        yield warn("workers", message, f"Run: {create} --allow=tcp,udp,icmp --source-ranges={','.join(blocks)}")
    elif ranges:
        yield ok("workers", "The workers of a slice may reach one another.")


def has_tunnel(deployment: Deployment) -> bool:
    """Return whether a tunnel through IAP is how a person reaches it."""
    via = deployment.health.via
    return via is Via.IAP or (via is Via.AUTO and not deployment.network.external_ip)


def _needed_opening(deployment: Deployment) -> tuple[int, str] | None:
    """Return the port that must be open and the range of sources, "" for any; None where no route needs one."""
    if deployment.network.external_ip and deployment.health.via in {Via.AUTO, Via.EXTERNAL}:
        return deployment.container.port, ""
    return (_SSH, IAP_RANGE) if has_tunnel(deployment) else None


def _openers(rules: Iterable[Firewall], deployment: Deployment, opening: tuple[int, str], email: str) -> list[Firewall]:
    """Return the rules about this machine that open the port, and that no rule denying everything overrules."""
    port, source = opening
    lets_through = (lambda range_: _covers(range_, source)) if source else _is_public
    effective = _effective_rules(rules, deployment, port, email)
    return [rule for rule in effective if any(map(lets_through, rule.sources))]


def _effective_rules(rules: Iterable[Firewall], deployment: Deployment, port: int, email: str) -> list[Firewall]:
    """Return the rules about this machine that open the port, and that no rule denying everything overrules."""
    about = [rule for rule in rules if _is_about(rule, deployment, email) and _has_port(rule, port)]
    denials = [rule.priority for rule in about if not rule.allows and set(rule.sources) & _EVERYWHERE]
    first_denial = min(denials, default=inf)
    return [rule for rule in about if rule.allows and rule.priority < first_denial]


def is_open(case: DoctorInput, port: int, *, inside: bool) -> bool | Unknown:
    """Return whether rules open a port of its machines to addresses inside the network, or to those outside.

    Rules by the tags or accounts of the sources are not among them.
    """
    rules, account = case.facts.wiring.firewalls, case.facts.access.account
    if isinstance(rules, Unknown):
        return rules
    email = account.email if isinstance(account, Account) else ""
    sources = [s for rule in _effective_rules(rules, case.deployment, port, email) for s in rule.sources]
    return any(not _is_public(source) or source in _EVERYWHERE if inside else _is_public(source) for source in sources)


def _is_about(rule: Firewall, deployment: Deployment, email: str) -> bool:
    if not rule.tags and not rule.accounts:
        return True
    return bool(set(rule.tags) & set(deployment.network.tags)) or email in rule.accounts


def _has_port(rule: Firewall, port: int) -> bool:
    return any(p.protocol in _TCP and any(first <= port <= last for first, last in p.ports) for p in rule.ports)


def _is_public(source: str) -> bool:
    """Return whether it has outside addresses: the default network lets its own machines reach each other."""
    return not any(_covers(own, str(ip_network(source, strict=False))) for own in _INSIDE)


def _covers(wide: str, narrow: str) -> bool:
    outer, inner = ip_network(wide, strict=False), ip_network(narrow)
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]  # both are of one version


def addresses(case: DoctorInput) -> Iterator[Finding]:
    reason, quotas = _split(case.facts.wiring.addresses)
    needed = case.deployment.replicas * case.deployment.accelerator.hosts
    needed += case.deployment.router_machine is not None
    short = sorted(region for region, quota in quotas.items() if quota.limit - quota.used < needed)
    if short:
        message = f"Too few external addresses are available in {words.some(short)}: {needed} needed."
        hint = "Raise the quota IN_USE_ADDRESSES, or set placement.network.external_ip: false."
        yield warn("addresses", message, hint)
    elif reason:
        yield unknown(case, "addresses", reason)
    elif quotas:
        yield ok("addresses", f"External addresses are available in {words.some(sorted(quotas))}.")


def _split(facts: Mapping[str, T | Unknown]) -> tuple[Unknown | None, dict[str, T]]:
    """Return the first reason why a region is not known, and the facts of the regions that are."""
    reason = next((fact for fact in facts.values() if isinstance(fact, Unknown)), None)
    return reason, {region: fact for region, fact in facts.items() if not isinstance(fact, Unknown)}
