"""The VM of a router: its way out to the packages that it installs, to the replicas, and the way of clients to it."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.availability.diagnosis import Finding
from tpudeploy.availability.doctor.case import DoctorInput, ok, some_or_all, unknown, warn
from tpudeploy.availability.doctor.network import is_open
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.project_facts import ProjectNetwork
from tpudeploy.text import words


def router(case: DoctorInput) -> Iterator[Finding]:
    """Check what the VM of a router needs beside what the replicas need."""
    if case.deployment.router_machine is None:
        return
    findings = [*_way_out(case), *_firewall(case)]
    machine = case.deployment.router_machine.accelerator.machine_type
    yield from findings or [ok("router", f"The router's VM ({machine}) reaches the replicas, and clients reach it.")]


def _way_out(case: DoctorInput) -> Iterator[Finding]:
    """Check Cloud NAT: without an address, the VM reaches neither Debian nor PyPI."""
    has_nat = case.facts.wiring.has_nat
    without = sorted(region for region, fact in has_nat.items() if fact is False)
    reason = next((fact for fact in has_nat.values() if isinstance(fact, Unknown)), None)
    if without:
        message = f"No Cloud NAT in {words.some(without)}: the router's VM could not install its router."
        hint = "Add Cloud NAT there, or set placement.network.external_ip: true."
        yield some_or_all("router", without, len(has_nat), message, hint)
    elif reason is not None:
        yield unknown(case, "router", reason)


def _firewall(case: DoctorInput) -> Iterator[Finding]:
    """Check the rules for the router's own port, and for the port of the replicas inside the network."""
    deployment, network = case.deployment, case.facts.wiring.network
    if deployment.router is None or not isinstance(network, ProjectNetwork):
        # Another check says that there is no network.
        return
    create = f"gcloud compute firewall-rules create {deployment.name}-router --network={network.name}"
    replica_port, own_port = deployment.container.port, deployment.router.port
    reaches_replicas = is_open(case, replica_port, inside=True)
    if isinstance(reaches_replicas, Unknown):
        yield unknown(case, "router", reaches_replicas)
        return
    if not reaches_replicas:
        message = f"No rule opens tcp:{replica_port} inside the network: the router's VM cannot reach the replicas."
        yield warn("router", message, f"Run: {create}-vm --allow=tcp:{replica_port} --source-ranges=YOUR_SUBNETWORK")
    if deployment.network.external_ip and not is_open(case, own_port, inside=False):
        message = f"No rule opens tcp:{own_port}: clients outside the network cannot reach the router's VM."
        yield warn("router", message, f"Run: {create} --allow=tcp:{own_port} --source-ranges=YOUR_RANGE")
