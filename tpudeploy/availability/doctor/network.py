"""The way there and the way out: network, subnetworks, Private Google Access, Cloud NAT, firewall, addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from tpudeploy.availability.doctor import doors
from tpudeploy.availability.doctor.case import Case, fail, listed, ok, some_or_all, unknown, warn
from tpudeploy.domain.diagnosis import Finding
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.surroundings import Account, Network, Subnetwork
from tpudeploy.sizing.checks.placement import unreachable

T = TypeVar("T")


def network(case: Case) -> Iterator[Finding]:
    found, named = case.around.wiring.network, case.deployment.network.network or "default"
    if isinstance(found, Unknown):
        yield unknown(case, "network", found)
    elif found is None:
        hint = f"Run: gcloud compute networks create {named}\nor name another in placement.network.network."
        yield fail("network", f"There is no network {named} in {case.deployment.project}.", hint)
    else:
        yield ok("network", f"The network {found.name} is there.")


def subnetworks(case: Case) -> Iterator[Finding]:
    told = case.around.wiring.subnetworks
    silent, known = _parted(told)
    absent = sorted(region for region, found in known.items() if found is None)
    if absent:
        named = case.deployment.network.subnetwork or "subnetwork"
        message = f"No {named} in {listed(absent)}: requests there are refused."
        hint = "Create one, or leave the zones of these regions out of placement.zones."
        yield some_or_all("subnetwork", absent, len(told), message, hint)
    elif silent:
        yield unknown(case, "subnetwork", silent)
    elif known:
        yield ok("subnetwork", f"Every region that may be asked has one: {listed(sorted(known))}.")


def private_access(case: Case) -> Iterator[Finding]:
    """A machine without an address reaches Google's services by this alone."""
    if case.deployment.network.external_ip:
        return
    known = {r: s for r, s in case.around.wiring.subnetworks.items() if isinstance(s, Subnetwork)}
    closed = sorted(region for region, found in known.items() if not found.has_private_access)
    if closed:
        update = "gcloud compute networks subnets update {} --region={} --enable-private-ip-google-access"
        hint = "\n".join(f"Run: {update.format(known[r].name, r)}" for r in closed)
        message = f"No Private Google Access in {listed(closed)}: the machine could not even read its secrets."
        yield some_or_all("private-access", closed, len(known), message, hint)
    elif known:
        yield ok("private-access", f"Private Google Access is on in {listed(sorted(known))}.")


def nat(case: Case) -> Iterator[Finding]:
    """Where the image or the weights are not Google's, and the machine has no address."""
    of, wiring = case.deployment, case.around.wiring
    needs = [d.message for d in unreachable.find(of)]
    if not needs or not wiring.has_nat:
        return
    silent, known = _parted(wiring.has_nat)
    without = sorted(region for region, found in known.items() if not found)
    if without:
        name = wiring.network.name if isinstance(wiring.network, Network) else "default"
        router = f"gcloud compute routers create nat --network={name} --region={without[0]}"
        gateway = f"gcloud compute routers nats create nat --router=nat --region={without[0]}"
        ranges = "--auto-allocate-nat-external-ips --nat-all-subnet-ip-ranges"
        message = f"No Cloud NAT in {listed(without)}. {' '.join(needs)}"
        yield some_or_all("nat", without, len(wiring.has_nat), message, f"Run: {router}\nRun: {gateway} {ranges}")
    elif silent:
        yield unknown(case, "nat", silent)
    else:
        yield ok("nat", f"Cloud NAT leads out of {listed(sorted(known))}.")


def firewall(case: Case) -> Iterator[Finding]:
    """Policies of the network, a folder or an organisation may open more than its rules do, or less."""
    of, rules = case.deployment, case.around.wiring.firewalls
    door = doors.wanted(of)
    if door is None or not isinstance(case.around.wiring.network, Network):
        return
    if isinstance(rules, Unknown):
        yield unknown(case, "firewall", rules)
        return
    port, source = door
    account = case.around.access.account
    opening = doors.openers(rules, of, account.email if isinstance(account, Account) else "")
    if opening:
        who = listed(dict.fromkeys(s for rule in opening for s in rule.sources))
        yield ok("firewall", f"tcp:{port} is open to {source or who} ({listed(r.name for r in opening)}).")
        return
    name = case.around.wiring.network.name
    create = f"gcloud compute firewall-rules create {of.name}-{'vllm' if not source else 'iap'} --network={name}"
    tags = f" --target-tags={','.join(of.network.tags)}" if of.network.tags else ""
    hint = f"Run: {create} --allow=tcp:{port} --source-ranges={source or 'YOUR_RANGE'}{tags}"
    yield warn("firewall", f"No rule opens tcp:{port}: it will serve, and not be reached from here.", hint)


def addresses(case: Case) -> Iterator[Finding]:
    of = case.deployment
    silent, known = _parted(case.around.wiring.addresses)
    needed = of.replicas * of.accelerator.hosts
    short = sorted(region for region, room in known.items() if room.limit - room.used < needed)
    if short:
        message = f"Too few external addresses are left in {listed(short)}: {needed} needed."
        hint = "Raise the quota IN_USE_ADDRESSES, or set placement.network.external_ip: false."
        yield warn("addresses", message, hint)
    elif silent:
        yield unknown(case, "addresses", silent)
    elif known:
        yield ok("addresses", f"External addresses are left in {listed(sorted(known))}.")


def _parted(of: Mapping[str, T | Unknown]) -> tuple[Unknown | None, dict[str, T]]:
    """The first reason why a region is not known, and the regions that are."""
    silent = next((found for found in of.values() if isinstance(found, Unknown)), None)
    return silent, {region: found for region, found in of.items() if not isinstance(found, Unknown)}
