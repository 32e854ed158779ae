"""What `render` prints for other tools: gcloud, Terraform and GKE, the machines' role, and who keeps a deployment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tpudeploy.adapters.google.request_body import request_body
from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.slices import SliceRequest
from tpudeploy.features.exports.gcloud import export_gcloud
from tpudeploy.features.exports.gke import export_gke
from tpudeploy.features.exports.role import export_role
from tpudeploy.features.exports.terraform import TERRAFORM_BACKEND, export_terraform
from tpudeploy.features.exports.watch import cloud_run_job, github_workflow, systemd_unit
from tpudeploy.operations.render import RenderedDeployment, first_request


def _gcloud(subject: RenderedDeployment) -> str:
    request = first_request(subject.deployment)
    _require_one_host(subject.deployment, request, "gcloud")
    return export_gcloud(subject.deployment, request, request_body(request)).as_text("#!/bin/bash\n")


def _terraform(subject: RenderedDeployment) -> str:
    deployment = subject.deployment
    places = [place for place in deployment.candidates if place.backend is TERRAFORM_BACKEND]
    request = first_request(replace(deployment, candidates=(*places, *deployment.candidates)))
    if request.backend is not TERRAFORM_BACKEND:
        type_, api = deployment.accelerator, BACKENDS[TERRAFORM_BACKEND].api
        raise ConfigError(
            "Terraform cannot express a queued resource with this profile: `google_tpu_v2_queued_resource` has no "
            "provisioning model, metadata or labels.",
            hint=f"Set placement.backend: {TERRAFORM_BACKEND}."
            if TERRAFORM_BACKEND in type_.backends
            else f"{api}, which Terraform can express, creates no {type_.name}.",
        )
    _require_one_host(deployment, request, "Terraform")
    return export_terraform(deployment, request, request_body(request))


def _gke(subject: RenderedDeployment) -> str:
    return export_gke(subject.deployment).as_text()


def _require_one_host(deployment: Deployment, request: SliceRequest, tool: str) -> None:
    """Raise `errors.ConfigError` for a group of instances, which no export has."""
    hosts, row = deployment.accelerator.hosts, BACKENDS[request.backend]
    if row.has_groups and hosts > 1:
        raise ConfigError(
            f"tpudeploy does not export a slice of {hosts} hosts at {row.api} for {tool}: it is a workload "
            "policy, a template and a group.",
            hint="`tpudeploy render PROFILE request` prints the three requests.",
        )


RENDERERS: Mapping[str, Callable[[RenderedDeployment], str]] = {
    "gcloud": _gcloud,
    "gke": _gke,
    "terraform": _terraform,
    "role": export_role,
    "watch-systemd": systemd_unit,
    "watch-cloud-run": cloud_run_job,
    "watch-github": github_workflow,
}
JSON_TEXTS = frozenset({"terraform"})
