"""Show exactly what would be sent and run, or the same deployment for another tool."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Annotated, Any, NamedTuple

from tpudeploy import feature_table, loading
from tpudeploy.adapters.google.request_body import request_body
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.names import SliceName
from tpudeploy.domain.router import published_replicas
from tpudeploy.domain.slices import SliceRequest
from tpudeploy.node.request import slice_request
from tpudeploy.node.shell import docker_shell, serve_shell
from tpudeploy.operations.arguments import AProfile, Arg
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.results import Result, result
from tpudeploy.text.paint import Paint
from tpudeploy.views.profile import profile as view
from tpudeploy.views.router import rendered
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


def render(
    workspace: Workspace,
    profile: AProfile,
    what: Annotated[str, Arg(", ".join(_FORMS), choices=_FORMS, positional=True)],
) -> Rendered:
    """Return exactly what would be sent or run: the startup script, a command, the request, the router, or the profile.

    Raise ValueError for a `what` that cannot be rendered.
    """
    if what not in _FORMS:
        raise ValueError(f"`{what}` is not one of {', '.join(_FORMS)}")
    profile = loading.profile(profile)
    deployment = workspace.deployment(profile, offline=True)
    renderers, json_texts = _RENDERERS, _JSON_TEXTS
    if what not in _RENDERERS:
        of_feature = import_module(feature_table.RENDERS[what])
        renderers, json_texts = of_feature.RENDERERS, of_feature.JSON_TEXTS
    text = renderers[what](RenderedDeployment(workspace, deployment)).removesuffix("\n")
    return Rendered(
        name=deployment.name, what=what, text=text, content=json.loads(text) if what in json_texts else None
    )


class RenderedDeployment(NamedTuple):
    """The deployment that is rendered, in its workspace."""

    workspace: Workspace
    deployment: Deployment


def _startup_script(subject: RenderedDeployment) -> str:
    return str(subject.deployment.startup_script)


def _docker(subject: RenderedDeployment) -> str:
    return docker_shell(subject.deployment)


def _serve(subject: RenderedDeployment) -> str:
    return serve_shell(subject.deployment)


def _argv(subject: RenderedDeployment) -> str:
    return json.dumps(subject.deployment.container.serve, indent=2, ensure_ascii=False)


def _request(subject: RenderedDeployment) -> str:
    return json.dumps(request_body(first_request(subject.deployment)), indent=2, ensure_ascii=False)


def first_request(deployment: Deployment) -> SliceRequest:
    """Return the first request that an apply would send. Only an apply creates the lineage in its name."""
    if not deployment.candidates:
        raise ConfigError("The profile allows no zone and provisioning model to try.", hint="Widen placement.zones.")
    name = SliceName(deployment=deployment.name, lineage="0" * 8, replica=0, attempt=0)
    resolved = replace(deployment, project=deployment.project or "PROJECT")
    return slice_request(resolved, name, deployment.candidates[0])


def _profile(subject: RenderedDeployment) -> str:
    return view(subject.deployment.name, subject.deployment)


def _router(subject: RenderedDeployment) -> str:
    """Return the files of the router with the replicas that take requests now, the command, and a systemd unit.

    A router on a VM has its startup script instead.
    """
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


_RENDERERS: Mapping[str, Callable[[RenderedDeployment], str]] = {
    "startup-script": _startup_script,
    "docker": _docker,
    "serve": _serve,
    "argv": _argv,
    "request": _request,
    "profile": _profile,
    "router": _router,
}
_JSON_TEXTS = frozenset({"argv", "request"})
_FORMS = (*_RENDERERS, *feature_table.RENDERS)

OPERATION = Operation(
    run=render,
    results=(Rendered,),
    access=Access.OFFLINE,
    title="Render",
    tool="render",
    options=("backend",),
)
