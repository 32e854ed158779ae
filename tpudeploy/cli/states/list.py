"""`state list`: the addresses that are remembered, one a line."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits
from tpudeploy.cli.context import Context
from tpudeploy.cli.states.words import address
from tpudeploy.core.memory import named
from tpudeploy.views import state as view
from tpudeploy.workspace import Workspace


def run(given: argparse.Namespace, context: Context, workspace: Workspace) -> int:
    wanted = [address(word) for word in given.words]
    read = {name: workspace.states.read(name).state for name in workspace.states.names()}
    states = {name: state for name, state in read.items() if state is not None}
    found = tuple(named(states, wanted))
    if given.json:
        context.reply.set(view.state_list(states, found))
    elif found:
        context.terminal.data("\n".join(map(str, found)))
    return exits.SUCCESS
