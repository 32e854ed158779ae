"""Show what would be sent and run, exactly."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context

if TYPE_CHECKING:
    from tpudeploy.config.profile import Profile
    from tpudeploy.domain.deployment import Deployment


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profile(parser)
    parser.add_argument("what", metavar="WHAT", choices=tuple(_RENDERERS), help=", ".join(_RENDERERS))


def run(given: argparse.Namespace, context: Context) -> int:
    (profile,) = context.load([given.profile], given)
    deployment = context.workspace([given.profile]).deployment(profile, offline=True)
    text = _RENDERERS[given.what](profile, deployment).removesuffix("\n")
    if given.json:
        content = json.loads(text) if given.what in _JSON else None
        context.reply.set(documents.render(deployment.name, given.what, text, content))
    else:
        context.terminal.data(text)
    return exits.SUCCESS


def _startup_script(_: Profile, deployment: Deployment) -> str:
    return str(deployment.startup_script)


def _docker(_: Profile, deployment: Deployment) -> str:
    from tpudeploy.core import serving

    return serving.docker_shell(deployment.container)


def _serve(_: Profile, deployment: Deployment) -> str:
    from tpudeploy.core import serving

    return serving.serve_shell(deployment.container)


def _argv(_: Profile, deployment: Deployment) -> str:
    return json.dumps(deployment.container.serve, indent=2, ensure_ascii=False)


def _request(_: Profile, deployment: Deployment) -> str:
    """The first request an apply would send; the lineage in its name is minted only then."""
    from tpudeploy.adapters.google.body import queued_resource
    from tpudeploy.core.request import slice_request
    from tpudeploy.domain.errors import ConfigError
    from tpudeploy.domain.names import SliceName

    if not deployment.candidates:
        raise ConfigError("The profile allows no zone and provisioning model to try.", hint="Widen placement.zones.")
    name = SliceName(deployment=deployment.name, lineage="0" * 8, replica=0, attempt=0)
    known = replace(deployment, project=deployment.project or "PROJECT")
    body = queued_resource(slice_request(known, name, deployment.candidates[0]))
    return json.dumps(body, indent=2, ensure_ascii=False)


def _profile(profile: Profile, deployment: Deployment) -> str:
    from tpudeploy.views.profile import profile as view

    return view(profile.spec.name, deployment)


_RENDERERS: Mapping[str, Callable[[Profile, Deployment], str]] = {
    "startup-script": _startup_script,
    "docker": _docker,
    "serve": _serve,
    "argv": _argv,
    "request": _request,
    "profile": _profile,
}
_JSON = {"argv", "request"}  # of these the document has the values too, and not only the text
