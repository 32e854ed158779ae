"""Print the outputs of deployments: the endpoint of each one, and since when it is published."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime

from tpudeploy.catalog import closest
from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import QueryFailed, UsageError
from tpudeploy.workspace import Workspace

Outputs = Mapping[str, object]


def arguments(parser: argparse.ArgumentParser) -> None:
    about = "A profile, or the name of a deployment (default: all deployments that have an endpoint)."
    parser.add_argument("deployment", metavar="PROFILE | NAME", nargs="?", help=about)
    parser.add_argument("key", metavar="KEY", nargs="?", help="Print only this output: endpoint, generation or since.")
    options.overlays(parser)
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.deployment is None:
        return _show_all(args, context)
    name, workspace = _deployment(args, context)
    outputs = outputs_of(workspace, name)
    if args.key is not None:
        outputs = {args.key: _value(outputs, args.key)}
    if args.json:
        context.reply.set(documents.output(name, outputs))
    elif args.key is not None:
        context.terminal.data(str(outputs[args.key]))
    else:
        context.terminal.data(_lines(outputs))
    return exits.SUCCESS


def outputs_of(workspace: Workspace, name: str) -> Outputs:
    """Return the outputs of the deployment of that name. Raise `errors.QueryFailed` if it has no endpoint."""
    endpoint = workspace.endpoint(name)
    if endpoint is None:
        near = closest(name, (other for other in workspace.states.names() if workspace.endpoint(other) is not None))
        hint = f"Did you mean `{near}`?" if near else "Run `tpudeploy apply` first."
        raise QueryFailed(f"{name} has no endpoint.", hint=hint)
    return {"endpoint": endpoint["url"], **endpoint}


def _show_all(args: argparse.Namespace, context: Context) -> int:
    workspace = context.workspace()
    names = [name for name in workspace.states.names() if workspace.endpoint(name) is not None]
    deployments = {name: outputs_of(workspace, name) for name in names}
    if args.json:
        context.reply.set(documents.outputs(deployments))
    elif deployments:
        context.terminal.data("\n\n".join(f"# {name}\n{_lines(outputs)}" for name, outputs in deployments.items()))
    else:
        context.terminal.talk("No deployment of this project has an endpoint. `tpudeploy apply` publishes one.")
    return exits.SUCCESS


def _deployment(args: argparse.Namespace, context: Context) -> tuple[str, Workspace]:
    """Return the name of the deployment and its workspace."""
    if not context.is_profile(args.deployment):
        return args.deployment, context.workspace()
    (profile,) = context.load([args.deployment], args)
    return profile.spec.name, context.workspace([args.deployment])


def _value(outputs: Outputs, key: str) -> object:
    if key not in outputs:
        near = closest(key, outputs)
        hint = f"Did you mean `{near}`?" if near else f"There are: {', '.join(outputs)}."
        raise UsageError(f"There is no output `{key}`.", hint=hint)
    return outputs[key]


def _lines(outputs: Outputs) -> str:
    texts = {key: _text(key, value) for key, value in outputs.items() if key != "url"}  # the older name of `endpoint`
    width = max(map(len, texts))
    return "\n".join(f"{key.ljust(width)} = {text}" for key, text in texts.items())


def _text(key: str, value: object) -> str:
    if key == "since" and isinstance(value, int | float):
        return f'"{datetime.fromtimestamp(value, UTC):%Y-%m-%dT%H:%M:%SZ}"'
    return f'"{value}"' if isinstance(value, str) else str(value)
