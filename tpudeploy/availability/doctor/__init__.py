"""EXAMINATIONS: every precondition of a deployment. One function each, one row here; none touches the world."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tpudeploy.availability.doctor import access, memory, network, places, profile
from tpudeploy.availability.doctor.case import Case
from tpudeploy.domain.diagnosis import Diagnosis, Finding

# In the order in which they are told: who, what, where.
EXAMINATIONS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    access.credentials,
    access.apis,
    access.roles,
    access.service_account,
    access.secrets,
    network.network,
    network.subnetworks,
    network.private_access,
    network.nat,
    network.firewall,
    network.addresses,
    profile.image,
    profile.disk,
    profile.checks,
    places.hardware,
    places.model,
    places.quota,
    places.price,
    places.pairs,
    memory.lock,
    memory.requests,
)


def diagnose(case: Case) -> Diagnosis:
    deployment = case.deployment
    findings = tuple(finding for examine in EXAMINATIONS for finding in examine(case))
    return Diagnosis(
        name=deployment.name, project=deployment.project, type=deployment.accelerator.name, findings=findings
    )
