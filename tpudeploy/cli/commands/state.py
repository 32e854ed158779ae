"""Inspect and edit the state: list, show, mv, rm, pull, push, history. No slice is touched."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tpudeploy.adapters.files import read_file
from tpudeploy.adapters.state.disk import MAX_BYTES
from tpudeploy.cli import options
from tpudeploy.cli.approval import approve
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import add_approval, add_argument, show
from tpudeploy.cli.progress import event_printer
from tpudeploy.domain import exits
from tpudeploy.domain.errors import StateUnreadable
from tpudeploy.domain.state import State
from tpudeploy.operations import operation
from tpudeploy.operations.declaration import Operation
from tpudeploy.operations.state_change import remove_listed
from tpudeploy.serialization import statefile
from tpudeploy.workspace import Workspace

# Each verb is the operation `state_VERB`, from which it has its arguments.
VERBS: Mapping[str, str] = {
    "list": "List the addresses in the states.",
    "show": "Show everything that the state records about one address.",
    "mv": "Rename a deployment, or move a slice to another index.",
    "rm": "Remove slices from the state without deleting them.",
    "pull": "Print the current or an earlier state.",
    "push": "Write a state from a file, or - for stdin.",
    "migrate": "Move a state to another backend, and leave a marker here.",
    "history": "List earlier states, if the backend keeps them.",
}
NEEDS_VERB = True


def arguments(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)


def verb_arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    for argument in _row(verb).arguments:
        add_argument(parser, argument)
    add_approval(parser, _row(verb))
    _add_common(parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    options.lock_timeout(parser)
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    row = _row(args.verb)
    workspace = context.workspace(lock_timeout=args.lock_timeout)
    values: dict[str, Any] = {argument.name: getattr(args, argument.name) for argument in row.arguments}
    if args.verb == "push":
        values["state"] = _read(values["state"], context.folder)
    if row.takes_events:
        values["on_event"] = event_printer(context.terminal)
    if args.verb == "rm":
        _remove(args, context, workspace, values)
    else:
        show(row.run(workspace, **values), context)
    return exits.SUCCESS


def _row(verb: str) -> Operation:
    return operation(f"state_{verb}")


def _remove(args: argparse.Namespace, context: Context, workspace: Workspace, values: Mapping[str, Any]) -> None:
    """List the slices with their prices, ask for approval, and remove exactly those from the state."""
    terminal = context.terminal
    result = workspace.state_rm(values["addresses"], dry_run=True, force=args.force)
    terminal.data(str(result))
    if args.auto_approve:
        terminal.data("")
    elif not args.dry_run:
        approve(args, context, _row(args.verb))
    if not args.dry_run:
        result = remove_listed(workspace, result, force=args.force, on_event=values["on_event"])
        terminal.data(str(result))
    if args.json:
        context.reply.set(result.to_dict())


def _read(source: str, folder: Path) -> State:
    """Return the state in a file. Raise `errors.StateError` if it is not a state."""
    try:
        content = sys.stdin.buffer.read(MAX_BYTES) if source == "-" else read_file(folder / source, MAX_BYTES)
        text = content.decode()
    except OSError as cause:
        raise StateUnreadable(f"{source} cannot be read: {cause.strerror or cause}.") from cause
    except UnicodeDecodeError as cause:
        raise StateUnreadable(f"{source} is not a state: {cause}.") from cause
    return statefile.loads(text, source="stdin" if source == "-" else source)
