"""Run `state history`: list who wrote which state and when, for as long as the backend keeps them."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits
from tpudeploy.cli.context import Context
from tpudeploy.cli.states.words import deployment
from tpudeploy.domain.errors import StateError
from tpudeploy.views import state as view
from tpudeploy.workspace import Workspace


def run(args: argparse.Namespace, context: Context, workspace: Workspace) -> int:
    name = deployment(workspace.adapters.states, args.words)
    now, before = workspace.adapters.states.read(name).state, workspace.adapters.states.earlier(name)
    if now is None and not before:
        raise StateError(f"{name} has no state here, and no earlier state is kept.")
    if args.json:
        context.reply.set(view.history_as_json(name, now, before))
        return exits.SUCCESS
    context.terminal.data(view.history(now, before))
    if now is not None and now.serial > 1 and not before:
        context.terminal.talk("Earlier states are not kept here: turn on the bucket's object versioning to keep them.")
    return exits.SUCCESS
