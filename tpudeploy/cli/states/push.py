"""`state push`: put a state in its place, from a file or from stdin. A later or another one stays, unless forced."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tpudeploy.cli import exits
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import teller
from tpudeploy.core import statefile
from tpudeploy.core.outstanding import outstanding
from tpudeploy.domain.errors import StateUnreadable
from tpudeploy.domain.state import State
from tpudeploy.views import state as view
from tpudeploy.workspace import Workspace


def run(given: argparse.Namespace, context: Context, workspace: Workspace) -> int:
    terminal, state = context.terminal, _read(given.words[0], context.folder)
    dropped = workspace.push_state(state, force=given.force, on_event=teller(terminal))
    if given.json:
        names = [attempt.name for attempt in dropped or ()]
        facts = {"deployment": state.deployment, "is_changed": dropped is not None, "forgotten": names}
        context.reply.set(view.change_document("push", **facts))
        return exits.SUCCESS
    if dropped is None:
        terminal.data(f"The state of {state.deployment} is that already.")
        return exits.SUCCESS
    terminal.data(f"The state of {state.deployment} is in its place.")
    if dropped:
        told = "".join(f"\n  {outstanding(attempt, context.clock.now())}" for attempt in dropped)
        terminal.talk(f"What stood there knew of more, which now runs unobserved:{told}\n`tpudeploy gc` finds it.")
    return exits.SUCCESS


def _read(source: str, folder: Path) -> State:
    """Raise `errors.StateError` for what is no state of ours."""
    try:
        content = sys.stdin.buffer.read() if source == "-" else (folder / source).read_bytes()
        text = content.decode()
    except OSError as cause:
        raise StateUnreadable(f"{source} cannot be read: {cause.strerror or cause}.") from cause
    except UnicodeDecodeError as cause:
        raise StateUnreadable(f"{source} is no state: {cause}.") from cause
    return statefile.loads(text, source="stdin" if source == "-" else source)
