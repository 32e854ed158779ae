"""Show exactly what would be sent and run."""

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


def run(args: argparse.Namespace, context: Context) -> int:
    (profile,) = context.load([args.profile], args)
    deployment = context.workspace([args.profile]).deployment(profile, offline=True)
    text = _RENDERERS[args.what](profile, deployment).removesuffix("\n")
    if args.json:
        content = json.loads(text) if args.what in _JSON else None
        context.reply.set(documents.render(deployment.name, args.what, text, content))
    else:
        context.terminal.data(text)
    return exits.SUCCESS


def _startup_script(_: Profile, deployment: Deployment) -> str:
    return str(deployment.startup_script)


def _docker(_: Profile, deployment: Deployment) -> str:
    from tpudeploy.node import serving

    return serving.docker_shell(deployment.container)


def _serve(_: Profile, deployment: Deployment) -> str:
    from tpudeploy.node import serving

    return serving.serve_shell(deployment.container)


def _argv(_: Profile, deployment: Deployment) -> str:
    return json.dumps(deployment.container.serve, indent=2, ensure_ascii=False)


def _request(_: Profile, deployment: Deployment) -> str:
    """Return the first request that an apply would send. Only an apply creates the lineage in its name."""
    from tpudeploy.adapters.google.body import queued_resource
    from tpudeploy.domain.errors import ConfigError
    from tpudeploy.domain.names import SliceName
    from tpudeploy.node.request import slice_request

    if not deployment.candidates:
        raise ConfigError("The profile allows no zone and provisioning model to try.", hint="Widen placement.zones.")
    name = SliceName(deployment=deployment.name, lineage="0" * 8, replica=0, attempt=0)
    resolved = replace(deployment, project=deployment.project or "PROJECT")
    body = queued_resource(slice_request(resolved, name, deployment.candidates[0]))
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
_JSON = {"argv", "request"}  # the documents of these hold their values too, not only their text
