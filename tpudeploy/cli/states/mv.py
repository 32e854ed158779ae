"""Run `state mv`: rename a deployment, or move a slice to another index. Slices keep their names and lineage."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import event_printer
from tpudeploy.cli.states.words import address
from tpudeploy.views import state as view
from tpudeploy.workspace import Workspace


def run(args: argparse.Namespace, context: Context, workspace: Workspace) -> int:
    source, target = map(address, args.words)
    emit = event_printer(context.terminal)
    workspace.move_state(str(source), str(target), force=args.force, on_event=emit)
    if args.json:
        context.reply.set(view.change_document("mv", source=str(source), target=str(target)))
        return exits.SUCCESS
    context.terminal.data(f"Moved {source} to {target}.")
    if source.replica is None:
        context.terminal.talk(
            f"Now write `name: {target}` into the profile. Nothing restarts: its container is called {target} from its"
            " next change on."
        )
    return exits.SUCCESS
