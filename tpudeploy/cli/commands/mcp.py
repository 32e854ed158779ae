"""Serve agents over stdin and stdout by the Model Context Protocol; reads only, unless -allow-writes is given."""

from __future__ import annotations

import argparse
import os

from tpudeploy.cli import exits, options
from tpudeploy.cli.context import Context
from tpudeploy.cli.interrupts import ending_well
from tpudeploy.domain.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    options.flag(
        parser,
        "allow-writes",
        "Offer apply and destroy too; a person has to approve what ends a server or deletes a slice.",
    )
    options.allow_env(parser)
    parser.set_defaults(untrusted=True)  # an agent writes profiles, and names values in its calls
    options.parallelism(parser)
    options.backend(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    try:
        from mcp import server as _sdk  # noqa: F401 - to tell that it is missing from whatever else may be
    except ModuleNotFoundError as cause:
        if cause.name != "mcp":
            raise
        hint = "Install it: pip install 'tpudeploy[mcp]'."
        raise UsageError("The SDK of the Model Context Protocol is not installed.", hint=hint) from cause
    from tpudeploy.adapters.system_clock import SystemClock
    from tpudeploy.cli.mcp.project import Project
    from tpudeploy.cli.mcp.server import server
    from tpudeploy.cli.mcp.session import Session

    context.workspace()  # what is wrong with the settings is said here, and not with the first call
    session = Session(Project(context=context, clock=SystemClock))

    def end() -> None:
        """Whoever reads stdin cannot be woken."""
        session.close()
        os._exit(exits.INTERRUPTED)

    with ending_well(end, context.terminal.talk):
        try:
            server(session, allow_writes=given.allow_writes).run("stdio")
        finally:
            session.close()
    return exits.SUCCESS
