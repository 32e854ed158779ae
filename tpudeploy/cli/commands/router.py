"""Run the router of a deployment on this machine until interrupted, with the replicas that take requests.

It follows the endpoint that `tpudeploy apply` publishes, and starts the router again if it ends.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Mapping

from tpudeploy.adapters.router_process import RouterProcess
from tpudeploy.cli import documents, options
from tpudeploy.cli.context import Context
from tpudeploy.domain import exits
from tpudeploy.domain.errors import Denied, UsageError
from tpudeploy.domain.names import DEPLOYMENT_NAME
from tpudeploy.domain.router import RouterHost
from tpudeploy.engine.confirmation import ConfirmedDocument

# Seconds between two reads of the endpoint document: a file here, or an object in a bucket.
_LOCAL_INTERVAL, _BUCKET_INTERVAL = 0.5, 5.0


_DEPLOYED = "See `tpudeploy state list`, or name the bucket of its state with -backend."


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="The name of a deployment.")
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    name = args.name
    if not DEPLOYMENT_NAME.fullmatch(name):
        raise UsageError(f"`{name}` is not the name of a deployment.", hint="See `tpudeploy state list`.")
    workspace = context.workspace()
    published = (workspace.endpoint(name) or {}).get("router")
    if isinstance(published, Mapping) and published.get("host") == RouterHost.VM:
        raise UsageError(f"The router of {name} runs on a VM, which follows the list of replicas by itself.")
    if published is None and name not in workspace.adapters.states.names():
        raise UsageError(f"`{name}` is not deployed here, so no list of replicas will come.", hint=_DEPLOYED)

    def read() -> Mapping[str, object] | None:
        return workspace.endpoint(name)

    def use_unconfirmed(denied: Denied) -> None:
        context.terminal.talk(f"The replicas of {name} are used as the bucket lists them, not confirmed: {denied}")

    # A bucket's own permissions say who may write a list there, and its reader may have no permission to look at
    # slices. A local list is a file of the repository.
    is_local = workspace.adapters.is_local
    process = RouterProcess(
        name,
        workspace.adapters.routers.folder(name),
        ConfirmedDocument(workspace.adapters.world(), name, read, on_denied=None if is_local else use_unconfirmed),
        context.terminal.talk,
        interval=_LOCAL_INTERVAL if is_local else _BUCKET_INTERVAL,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.stop())
    process.run()
    if args.json:
        context.reply.set(documents.router(name, process.restarts))
    return exits.SUCCESS
