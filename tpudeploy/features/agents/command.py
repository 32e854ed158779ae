"""Serve agents over stdin and stdout by the Model Context Protocol; reads only, unless -allow-writes is given."""

from __future__ import annotations

import argparse
import os

from tpudeploy.adapters.extras import install_command
from tpudeploy.adapters.system_clock import SystemClock
from tpudeploy.cli import options
from tpudeploy.cli.context import Context
from tpudeploy.cli.interrupts import INTERRUPTED, stopping_gracefully
from tpudeploy.domain import exits
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.agents.project import Project
from tpudeploy.operations import argument_types


def arguments(parser: argparse.ArgumentParser) -> None:
    options.flag(
        parser,
        "allow-writes",
        "Offer apply and destroy too; a person has to approve what ends a server or deletes a slice.",
    )
    options.option(
        parser,
        "max-cost",
        "Let an agent request slices for at most this many USD in all, each until its end, without a person's yes.",
        metavar="USD",
        type=argument_types.amount,
    )
    options.allow_env(parser)
    parser.set_defaults(untrusted=True)  # an agent writes profiles and chooses arguments
    options.parallelism(parser)
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    try:
        from mcp import server as _sdk  # noqa: F401 - distinguishes a missing SDK from other import errors
    except ModuleNotFoundError as cause:
        if cause.name != "mcp":
            raise

        hint = f"Run: {install_command('mcp')}"
        raise UsageError("The SDK of the Model Context Protocol is not installed.", hint=hint) from cause
    from tpudeploy.features.agents.server import server
    from tpudeploy.features.agents.session import AgentSession

    context.workspace()  # reports invalid settings here instead of at the first call
    session = AgentSession(Project(context=context, clock=SystemClock), max_cost=args.max_cost)

    def end() -> None:
        """Exit without waiting for the thread that reads stdin, which cannot be interrupted."""
        session.close()
        context.terminal.talk(INTERRUPTED)
        os._exit(exits.INTERRUPTED)

    with stopping_gracefully(end, lambda _message: None):
        try:
            server(session, allow_writes=args.allow_writes).run("stdio")
        finally:
            session.close()
    return exits.SUCCESS
