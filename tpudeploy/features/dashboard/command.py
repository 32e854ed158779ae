"""Show every deployment live in a browser: a page on this machine only. It changes no deployment.

It shows everything with a state here. Profiles add health, plan, drift and a chat box; without PROFILE, those in the
folder whose deployments have a state. The printed address has a token: with it, anyone can read the page and ask the
model.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import suppress

from tpudeploy.cli import documents, options
from tpudeploy.cli.context import Context
from tpudeploy.cli.error_report import bug, report_error
from tpudeploy.cli.interrupts import stopping_gracefully
from tpudeploy.domain import exits
from tpudeploy.domain.errors import Bug, ConfigError, UsageError
from tpudeploy.features.dashboard.latest import Documents
from tpudeploy.features.dashboard.server import DashboardServer
from tpudeploy.loading import Profile
from tpudeploy.operations import argument_types
from tpudeploy.workspace import Workspace

_PORT = 8787
_ENDS = "Dashboard stopped."


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser, nargs="*")
    options.option(
        parser,
        "port",
        f"The TCP port of the page; 0 takes a free one (default: {_PORT}).",
        metavar="N",
        type=argument_types.port,
        default=_PORT,
    )
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    workspace = context.workspace(args.profiles)
    profiles = context.load(args.profiles, args) if args.profiles else _profiles_with_a_state(workspace, args, context)

    def report_bug() -> Bug:
        error = bug()
        report_error(context.terminal, error)
        return error

    latest = Documents(workspace, tuple(profiles), report_bug)
    try:
        server = DashboardServer(latest, args.port)
    except OSError as cause:
        hint = "Choose another one: tpudeploy dashboard -port 0"
        raise UsageError(f"Port {args.port} cannot be used: {cause.strerror or cause}.", hint=hint) from cause

    def end() -> None:
        workspace.adapters.stop()
        server.stop()

    with stopping_gracefully(end, context.terminal.talk, message=_ENDS):
        latest.start()
        if args.json:  # at once, because the reader waits for it
            context.terminal.document(documents.text({"format": "tpudeploy.dashboard/1", "url": server.address}))
        context.terminal.data(f"The dashboard is at {server.address}\nCtrl-C ends it.")
        try:
            server.serve()
        finally:
            server.close()
            latest.stop()
    return exits.SUCCESS


def _profiles_with_a_state(workspace: Workspace, args: argparse.Namespace, context: Context) -> Iterator[Profile]:
    """Yield the profiles in the folder whose deployments have a state, but for those that are not valid."""
    names = set(workspace.adapters.states.names())
    paths = sorted(context.folder.glob("*.y*ml")) if names else ()
    for path in paths:
        with suppress(ConfigError):
            profile = context.read(path.name, args)
            if profile.name in names:
                yield profile
