"""Run `state list`: print the addresses in the states, one per line."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits
from tpudeploy.cli.context import Context
from tpudeploy.cli.states.words import address
from tpudeploy.planning.state_edits import select_addresses
from tpudeploy.views import state as view
from tpudeploy.workspace import Workspace


def run(args: argparse.Namespace, context: Context, workspace: Workspace) -> int:
    filters = [address(word) for word in args.words]
    all_states = {name: workspace.adapters.states.read(name).state for name in workspace.adapters.states.names()}
    states = {name: state for name, state in all_states.items() if state is not None}
    addresses = tuple(select_addresses(states, filters))
    if args.json:
        context.reply.set(view.state_list(states, addresses))
    elif addresses:
        context.terminal.data("\n".join(map(str, addresses)))
    return exits.SUCCESS
