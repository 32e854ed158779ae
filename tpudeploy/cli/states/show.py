"""`state show`: all that is remembered of one address."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits
from tpudeploy.cli.context import Context
from tpudeploy.cli.states.words import address, state_of
from tpudeploy.core.memory import records
from tpudeploy.views import state as view
from tpudeploy.workspace import Workspace


def run(given: argparse.Namespace, context: Context, workspace: Workspace) -> int:
    wanted = address(given.words[0])
    state = state_of(workspace.states, wanted.deployment)
    found = records(state, wanted)
    if given.json:
        context.reply.set(view.state_document(state, found))
    else:
        context.terminal.data(view.state_text(state, found))
    return exits.SUCCESS
