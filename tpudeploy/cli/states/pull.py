"""`state pull`: a state as it lies there, or an earlier one, as text that `state push` takes."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits
from tpudeploy.cli.context import Context
from tpudeploy.cli.states.words import deployment, state_of
from tpudeploy.core import statefile
from tpudeploy.domain.errors import StateError
from tpudeploy.domain.state import State
from tpudeploy.ports import StateBackend
from tpudeploy.workspace import Workspace


def run(given: argparse.Namespace, context: Context, workspace: Workspace) -> int:
    name = deployment(workspace.states, given.words)
    state = state_of(workspace.states, name) if given.serial is None else _was(workspace.states, name, given.serial)
    if given.json:
        context.reply.set_text(statefile.dumps(state))
    else:
        context.terminal.data(statefile.dumps(state).removesuffix("\n"))
    return exits.SUCCESS


def _was(states: StateBackend, name: str, serial: int) -> State:
    """The latest of that serial. Raise `errors.StateError` where it is not kept."""
    now = states.read(name).state
    known = (*([now] if now is not None else []), *states.earlier(name))
    found = next((state for state in known if state.serial == serial), None)
    if found is None:
        there = ", ".join(str(state.serial) for state in known)
        hint = f"There are: {there}." if there else "None is kept of it."
        raise StateError(f"No state of {name} with the serial {serial} is kept.", hint=hint)
    return found
