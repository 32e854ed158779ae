"""Show every deployment live in a browser: a page on this machine only, which reads and changes nothing.

Without a profile, it shows everything that has a state here. With profiles, also whether each endpoint answers, the
plan and the drift. The address that is printed has a token; who has it can read what `status --json` says.
"""

from __future__ import annotations

import argparse

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError

_PORT = 8787
_MOST_PORT = 65535
_ENDS = "The dashboard ends. Nothing that it showed is changed."


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser, nargs="*")
    options.option(
        parser,
        "port",
        f"The TCP port of the page; 0 takes a free one (default: {_PORT}).",
        metavar="N",
        default=str(_PORT),
    )
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from tpudeploy.cli.dashboard import Documents, Server
    from tpudeploy.cli.interrupts import stopping_gracefully

    workspace = context.workspace(args.profiles)
    latest = Documents(workspace, tuple(context.load(args.profiles, args)))
    port = int(args.port) if args.port.isdecimal() else -1
    if not 0 <= port <= _MOST_PORT:
        raise UsageError(f"`{args.port}` is not a TCP port.", hint="Write a number from 0 to 65535, e.g. -port 8787.")
    try:
        server = Server(latest, port)
    except OSError as cause:
        hint = "Choose another one: tpudeploy dashboard -port 0"
        raise UsageError(f"Port {port} cannot be used: {cause.strerror or cause}.", hint=hint) from cause

    def end() -> None:
        workspace.stop()
        server.stop()

    with stopping_gracefully(end, context.terminal.talk, message=_ENDS):
        latest.start()
        if args.json:  # at once, because the reader waits for it
            context.terminal.document(documents.text(documents.dashboard(server.address)))
        context.terminal.data(f"The dashboard is at {server.address}\nCtrl-C ends it.")
        try:
            server.serve()
        finally:
            server.close()
            latest.stop()
    return exits.SUCCESS
