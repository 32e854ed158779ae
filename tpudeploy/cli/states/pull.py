"""Run `state pull`: print the current or an earlier state as text that `state push` accepts."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits
from tpudeploy.cli.context import Context
from tpudeploy.cli.states.words import deployment, state_of
from tpudeploy.domain.errors import StateError
from tpudeploy.domain.state import State
from tpudeploy.ports import StateBackend
from tpudeploy.serialization import statefile
from tpudeploy.workspace import Workspace


def run(args: argparse.Namespace, context: Context, workspace: Workspace) -> int:
    name = deployment(workspace.adapters.states, args.words)
    state = (
        state_of(workspace.adapters.states, name)
        if args.serial is None
        else _earlier(workspace.adapters.states, name, args.serial)
    )
    if args.json:
        context.reply.set_text(statefile.dumps(state))
    else:
        context.terminal.data(statefile.dumps(state).removesuffix("\n"))
    return exits.SUCCESS


def _earlier(states: StateBackend, name: str, serial: int) -> State:
    """Return the latest state of that serial. Raise `errors.StateError` if it is not kept."""
    now = states.read(name).state
    candidates = (*([now] if now is not None else []), *states.earlier(name))
    match = next((state for state in candidates if state.serial == serial), None)
    if match is None:
        serials = ", ".join(str(state.serial) for state in candidates)
        hint = f"There are: {serials}." if serials else "None is kept of it."
        raise StateError(f"No state of {name} with the serial {serial} is kept.", hint=hint)
    return match
