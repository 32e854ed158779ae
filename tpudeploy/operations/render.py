"""Show exactly what would be sent and run, or the same deployment for another tool."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tpudeploy.domain.frozen import replace
from tpudeploy.operations.declaration import Access, Argument, Operation, profile
from tpudeploy.results import Result, result

if TYPE_CHECKING:
    from tpudeploy.domain.deployment import Deployment
    from tpudeploy.domain.slices import SliceRequest
    from tpudeploy.loading import OneProfile
    from tpudeploy.text.paint import Paint
    from tpudeploy.workspace import Workspace


@result
class Rendered(Result):
    """A text that is sent or run. `content` holds the values of a JSON text, else None."""

    FORMAT = "render"
    IS_VERBATIM = True
    name: str
    what: str
    text: str
    content: Any

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return self.text


def render(workspace: Workspace, profile: OneProfile, what: str) -> Rendered:
    """Return exactly what would be sent or run: the startup script, a command, the request, the router, or the profile.

    Raise ValueError for a `what` that cannot be rendered.
    """
    from tpudeploy import loading

    if what not in _RENDERERS:
        raise ValueError(f"`{what}` is not one of {', '.join(_RENDERERS)}")
    profile = loading.profile(profile)
    deployment = workspace.deployment(profile, offline=True)
    text = _RENDERERS[what](_Subject(workspace, deployment)).removesuffix("\n")
    return Rendered(
        name=deployment.name, what=what, text=text, content=json.loads(text) if what in _JSON_TEXTS else None
    )


class _Subject(NamedTuple):
    """The deployment that is rendered, in its workspace."""

    workspace: Workspace
    deployment: Deployment


def _startup_script(subject: _Subject) -> str:
    return str(subject.deployment.startup_script)


def _docker(subject: _Subject) -> str:
    from tpudeploy.node.shell import docker_shell

    return docker_shell(subject.deployment)


def _serve(subject: _Subject) -> str:
    from tpudeploy.node.shell import serve_shell

    return serve_shell(subject.deployment)


def _argv(subject: _Subject) -> str:
    return json.dumps(subject.deployment.container.serve, indent=2, ensure_ascii=False)


def _request(subject: _Subject) -> str:
    return json.dumps(_body(_first_request(subject.deployment)), indent=2, ensure_ascii=False)


def _gcloud(subject: _Subject) -> str:
    from tpudeploy.exports.gcloud import export_gcloud

    request = _first_request(subject.deployment)
    _require_one_host(subject.deployment, request, "gcloud")
    return export_gcloud(subject.deployment, request, _body(request)).as_text("#!/bin/bash\n")


def _terraform(subject: _Subject) -> str:
    from tpudeploy.domain.accelerator import Backend
    from tpudeploy.domain.errors import ConfigError
    from tpudeploy.exports.terraform import export_terraform

    deployment = subject.deployment
    places = [place for place in deployment.candidates if place.backend is Backend.GCE_INSTANCE]
    request = _first_request(replace(deployment, candidates=(*places, *deployment.candidates)))
    if request.backend is Backend.QUEUED_RESOURCE:
        type_ = deployment.accelerator
        is_at_both = Backend.GCE_INSTANCE in type_.backends
        raise ConfigError(
            "Terraform cannot express a queued resource with this profile: `google_tpu_v2_queued_resource` has no "
            "provisioning model, metadata or labels.",
            hint="Set placement.backend: gce-instance."
            if is_at_both
            else f"Compute Engine, which Terraform can express, creates no {type_.name}.",
        )
    _require_one_host(deployment, request, "Terraform")
    return export_terraform(deployment, request, _body(request))


def _gke(subject: _Subject) -> str:
    from tpudeploy.exports.gke import export_gke

    return export_gke(subject.deployment).as_text()


def _first_request(deployment: Deployment) -> SliceRequest:
    """Return the first request that an apply would send. Only an apply creates the lineage in its name."""
    from tpudeploy.domain.errors import ConfigError
    from tpudeploy.domain.names import SliceName
    from tpudeploy.node.request import slice_request

    if not deployment.candidates:
        raise ConfigError("The profile allows no zone and provisioning model to try.", hint="Widen placement.zones.")
    name = SliceName(deployment=deployment.name, lineage="0" * 8, replica=0, attempt=0)
    resolved = replace(deployment, project=deployment.project or "PROJECT")
    return slice_request(resolved, name, deployment.candidates[0])


def _body(request: SliceRequest) -> dict[str, Any]:
    from tpudeploy.adapters.google.body import queued_resource
    from tpudeploy.adapters.google.compute_engine import group_body
    from tpudeploy.adapters.google.compute_engine.body import instance
    from tpudeploy.domain.accelerator import Backend

    if request.backend is Backend.QUEUED_RESOURCE:
        return queued_resource(request)
    kind = group_body.slice_type(request.accelerator_type)
    return instance(request) if kind is None else group_body.requests(request, kind)


def _require_one_host(deployment: Deployment, request: SliceRequest, tool: str) -> None:
    """Raise `errors.ConfigError` for a group of instances, which no export has."""
    from tpudeploy.domain.accelerator import Backend
    from tpudeploy.domain.errors import ConfigError

    hosts = deployment.accelerator.hosts
    if request.backend is Backend.GCE_INSTANCE and hosts > 1:
        raise ConfigError(
            f"tpudeploy does not export a slice of {hosts} hosts at Compute Engine for {tool}: it is a workload "
            "policy, a template and a group.",
            hint="`tpudeploy render PROFILE request` prints the three requests.",
        )


def _profile(subject: _Subject) -> str:
    from tpudeploy.views.profile import profile as view

    return view(subject.deployment.name, subject.deployment)


def _router(subject: _Subject) -> str:
    """Return the files of the router with the replicas that take requests now, the command, and a systemd unit.

    A router on a VM has its startup script instead.
    """
    import sys

    from tpudeploy.domain.errors import ConfigError
    from tpudeploy.domain.router import published_replicas
    from tpudeploy.exports.router import rendered

    adapters, name, router = subject.workspace.adapters, subject.deployment.name, subject.deployment.router
    if router is None:
        raise ConfigError(f"The profile of {name} has no router.", hint="Add one: router: {kind: smg}")
    if subject.deployment.router_machine is not None:
        return str(subject.deployment.router_machine.startup_script)
    # Rendering needs no network: with states in a bucket, only the process of the router reads the list of replicas.
    document = subject.workspace.endpoint(name) if adapters.is_local else None
    replicas = () if document is None else published_replicas(document)
    program = f"{sys.executable} -m tpudeploy"
    return rendered(
        router, replicas, name, program=program, folder=str(adapters.folder.resolve()), backend=adapters.backend
    )


_RENDERERS: Mapping[str, Callable[[_Subject], str]] = {
    "startup-script": _startup_script,
    "docker": _docker,
    "serve": _serve,
    "argv": _argv,
    "request": _request,
    "profile": _profile,
    "gcloud": _gcloud,
    "gke": _gke,
    "terraform": _terraform,
    "router": _router,
}
_JSON_TEXTS = {"argv", "request", "terraform"}

OPERATION = Operation(
    run=render,
    arguments=(
        profile(),
        Argument(
            name="what",
            help=", ".join(_RENDERERS),
            positional=True,
            is_required=True,
            choices=tuple(_RENDERERS),
            metavar="WHAT",
        ),
    ),
    results=(Rendered,),
    access=Access.OFFLINE,
    options=(),
)
