"""Run `state push`: write a state from a file or stdin. Without -force, a later or different one is not replaced."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tpudeploy.cli import exits
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import event_printer
from tpudeploy.domain.errors import StateUnreadable
from tpudeploy.domain.state import State
from tpudeploy.reconcile.request_table import describe_request
from tpudeploy.serialization import statefile
from tpudeploy.views import state as view
from tpudeploy.workspace import Workspace


def run(args: argparse.Namespace, context: Context, workspace: Workspace) -> int:
    terminal, state = context.terminal, _read(args.words[0], context.folder)
    dropped = workspace.push_state(state, force=args.force, on_event=event_printer(terminal))
    if args.json:
        names = [attempt.name for attempt in dropped or ()]
        facts = {"deployment": state.deployment, "is_changed": dropped is not None, "forgotten": names}
        context.reply.set(view.change_document("push", **facts))
        return exits.SUCCESS
    if dropped is None:
        terminal.data(f"The state of {state.deployment} is already the same.")
        return exits.SUCCESS
    terminal.data(f"The state of {state.deployment} was written.")
    if dropped:
        attempts = "".join(f"\n  {describe_request(attempt, context.clock.now())}" for attempt in dropped)
        terminal.talk(
            f"The previous state tracked more slices, which are now untracked:{attempts}\n`tpudeploy gc` finds them."
        )
    return exits.SUCCESS


def _read(source: str, folder: Path) -> State:
    """Return the state in a file. Raise `errors.StateError` if it is not a state."""
    try:
        content = sys.stdin.buffer.read() if source == "-" else (folder / source).read_bytes()
        text = content.decode()
    except OSError as cause:
        raise StateUnreadable(f"{source} cannot be read: {cause.strerror or cause}.") from cause
    except UnicodeDecodeError as cause:
        raise StateUnreadable(f"{source} is not a state: {cause}.") from cause
    return statefile.loads(text, source="stdin" if source == "-" else source)
