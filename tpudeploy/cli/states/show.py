"""Run `state show`: print everything that the state records about one address."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits
from tpudeploy.cli.context import Context
from tpudeploy.cli.states.words import address, state_of
from tpudeploy.planning.state_edits import records_at
from tpudeploy.views import state as view
from tpudeploy.workspace import Workspace


def run(args: argparse.Namespace, context: Context, workspace: Workspace) -> int:
    address_ = address(args.words[0])
    state = state_of(workspace.adapters.states, address_.deployment)
    records_ = records_at(state, address_)
    if args.json:
        context.reply.set(view.state_document(state, records_))
    else:
        context.terminal.data(view.state_text(state, records_))
    return exits.SUCCESS
