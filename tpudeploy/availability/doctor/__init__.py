"""EXAMINATIONS: every precondition of a deployment. One function each, one row here; none touches the world."""

from __future__ import annotations

from tpudeploy.availability.diagnosis import Diagnosis
from tpudeploy.availability.doctor import access, deployment, network, places, router
from tpudeploy.availability.doctor.case import DoctorInput

# In the order in which they are reported: who, what, where.
EXAMINATIONS = (
    access.credentials,
    access.apis,
    access.roles,
    access.service_account,
    access.own_end,
    access.secrets,
    network.network,
    network.subnetworks,
    network.private_access,
    network.nat,
    network.firewall,
    network.between_workers,
    network.addresses,
    router.router,
    deployment.image,
    deployment.disk,
    deployment.checks,
    places.hardware,
    places.runtime,
    places.model,
    places.quota,
    places.price,
    places.pairs,
    deployment.lock,
    deployment.requests,
    deployment.workers,
)


def diagnose(case: DoctorInput) -> Diagnosis:
    findings = tuple(finding for examine in EXAMINATIONS for finding in examine(case))
    kind = case.deployment.accelerator.name
    return Diagnosis(name=case.deployment.name, project=case.deployment.project, type=kind, findings=findings)
