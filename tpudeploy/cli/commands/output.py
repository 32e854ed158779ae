"""Print the outputs of deployments: where each one answers, and since when."""

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


def run(given: argparse.Namespace, context: Context) -> int:
    if given.deployment is None:
        return _show_all(given, context)
    name, workspace = _deployment(given, context)
    found = outputs_of(workspace, name)
    if given.key is not None:
        found = {given.key: _value(found, given.key)}
    if given.json:
        context.reply.set(documents.output(name, found))
    elif given.key is not None:
        context.terminal.data(str(found[given.key]))
    else:
        context.terminal.data(_lines(found))
    return exits.SUCCESS


def outputs_of(workspace: Workspace, name: str) -> Outputs:
    """Return the outputs of the deployment of that name. Raise `errors.QueryFailed` where it has no endpoint."""
    published = workspace.endpoint(name)
    if published is None:
        near = closest(name, (each for each in workspace.states.names() if workspace.endpoint(each) is not None))
        hint = f"Did you mean `{near}`?" if near else "Run `tpudeploy apply` first."
        raise QueryFailed(f"{name} has no endpoint.", hint=hint)
    return {"endpoint": published["url"], **published}


def _show_all(given: argparse.Namespace, context: Context) -> int:
    workspace = context.workspace()
    names = [name for name in workspace.states.names() if workspace.endpoint(name) is not None]
    found = {name: outputs_of(workspace, name) for name in names}
    if given.json:
        context.reply.set(documents.outputs(found))
    elif found:
        context.terminal.data("\n\n".join(f"# {name}\n{_lines(each)}" for name, each in found.items()))
    else:
        context.terminal.talk("No deployment of this project has an endpoint. `tpudeploy apply` publishes one.")
    return exits.SUCCESS


def _deployment(given: argparse.Namespace, context: Context) -> tuple[str, Workspace]:
    """The name of the deployment, and the project that it belongs to."""
    if not context.is_profile(given.deployment):
        return given.deployment, context.workspace()
    (profile,) = context.load([given.deployment], given)
    return profile.spec.name, context.workspace([given.deployment])


def _value(found: Outputs, key: str) -> object:
    if key not in found:
        near = closest(key, found)
        hint = f"Did you mean `{near}`?" if near else f"There are: {', '.join(found)}."
        raise UsageError(f"There is no output `{key}`.", hint=hint)
    return found[key]


def _lines(found: Outputs) -> str:
    shown = {key: _text(key, value) for key, value in found.items() if key != "url"}  # `endpoint`, by its older name
    width = max(map(len, shown))
    return "\n".join(f"{key.ljust(width)} = {text}" for key, text in shown.items())


def _text(key: str, value: object) -> str:
    if key == "since" and isinstance(value, int | float):
        return f'"{datetime.fromtimestamp(value, UTC):%Y-%m-%dT%H:%M:%SZ}"'
    return f'"{value}"' if isinstance(value, str) else str(value)
