"""Inspect and edit the state: list, show, mv, rm, pull, push, history. No slice is touched."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpudeploy.catalog import closest
from tpudeploy.cli import exits, options
from tpudeploy.cli.approval import approve
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import show
from tpudeploy.cli.progress import event_printer
from tpudeploy.domain.errors import StateUnreadable, UsageError
from tpudeploy.operations import operation
from tpudeploy.operations.declaration import Argument, Kind, Operation

if TYPE_CHECKING:
    from tpudeploy.domain.state import State
    from tpudeploy.workspace import Workspace

# Each verb is the operation `state_VERB`, from which it has its arguments.
VERBS: Mapping[str, str] = {
    "list": "list the addresses in the states",
    "show": "show everything that the state records about one address",
    "mv": "rename a deployment, or move a slice to another index",
    "rm": "remove slices from the state without deleting them",
    "pull": "print the current or an earlier state",
    "push": "write a state from a file, or - for stdin",
    "history": "list earlier states, if the backend keeps them",
}
_OF_SOME_VERBS = ("auto_approve", "dry_run", "force", "serial")


def arguments(parser: argparse.ArgumentParser) -> None:
    help_ = "; ".join(f"{verb} {_usage(_row(verb))}".rstrip() + f": {does}" for verb, does in VERBS.items())
    parser.add_argument("verb", metavar="VERB", help=help_)
    parser.add_argument("words", metavar="WORD", nargs="*", help="The arguments of the verb.")
    options.flag(parser, "auto-approve", "rm: skip the approval prompt.")
    options.flag(parser, "dry-run", "rm: show what would be removed from the state, and change nothing.")
    options.flag(
        parser, "force", "mv, rm: even while a run is in progress; push: over another lineage or a later state."
    )
    options.option(parser, "serial", "pull: the state with this serial, as `history` lists it.", metavar="N", type=int)
    options.lock_timeout(parser)
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.verb not in VERBS:
        near = closest(args.verb, VERBS)
        hint = f"Did you mean `{near}`?" if near else f"There are: {', '.join(VERBS)}."
        raise UsageError(f"`tpudeploy state` has no verb `{args.verb}`.", hint=hint)
    row = _row(args.verb)
    _check(args, row)
    workspace = context.workspace(lock_timeout=args.lock_timeout)
    values = _values(args, row, context)
    if args.verb == "rm":
        _remove(args, context, workspace, values)
    else:
        show(row.run(workspace, **values), context)
    return exits.SUCCESS


def _row(verb: str) -> Operation:
    return operation(f"state_{verb}")


def _words(row: Operation) -> tuple[Argument, ...]:
    return tuple(argument for argument in row.arguments if argument.positional)


def _usage(row: Operation) -> str:
    """Return the arguments of a verb as help shows them: `SRC DST`, `ADDR...`, `[NAME]`."""
    texts = [f"{argument.metavar}{'...' if argument.kind is Kind.TEXTS else ''}" for argument in _words(row)]
    return " ".join(
        text if argument.is_required else f"[{text}]" for text, argument in zip(texts, _words(row), strict=True)
    )


def _check(args: argparse.Namespace, row: Operation) -> None:
    """Raise `errors.UsageError` for a wrong number of arguments, and for an option of another verb."""
    words, takes = _words(row), _usage(row)
    usage = f"tpudeploy state {args.verb} {takes}".rstrip()
    least = sum(argument.is_required for argument in words)
    is_open = any(argument.kind is Kind.TEXTS for argument in words)
    count = len(args.words)
    if count < least or (count > len(words) and not is_open):
        raise UsageError(f"`state {args.verb}` takes {takes or 'nothing'}, not {count}.", hint=f"Usage: {usage}")
    names = {argument.name for argument in row.arguments} | ({"auto_approve"} if args.verb == "rm" else set())
    for name in _OF_SOME_VERBS:
        value = getattr(args, name)
        is_set = value is not None and value is not False
        # An option that its variable sets applies to every verb, and may not fit this one.
        if is_set and name not in names and not options.environment_value(name):
            raise UsageError(f"`state {args.verb}` has no option `-{name.replace('_', '-')}`.", hint=f"Usage: {usage}")


def _values(args: argparse.Namespace, row: Operation, context: Context) -> dict[str, Any]:
    """Return the arguments of the operation by their names."""
    values: dict[str, Any] = {}
    words = list(args.words)
    for argument in row.arguments:
        if not argument.positional:
            values[argument.name] = getattr(args, argument.name)
        elif argument.kind is Kind.TEXTS:
            values[argument.name] = words
        elif words:
            values[argument.name] = words.pop(0)
    if args.verb == "push":
        values["state"] = _read(values["state"], context.folder)
    if row.takes_events:
        values["on_event"] = event_printer(context.terminal)
    return values


def _remove(args: argparse.Namespace, context: Context, workspace: Workspace, values: Mapping[str, Any]) -> None:
    """List the slices with their prices, ask for approval, and remove exactly those from the state."""
    from tpudeploy.operations.state_change import remove_listed

    terminal = context.terminal
    result = workspace.state_rm(values["addresses"], dry_run=True, force=args.force)
    terminal.data(str(result))
    if args.auto_approve:
        terminal.data("")
    elif not args.dry_run:
        question = "Do you really want to remove these from the state?"
        approve(context, question, otherwise="Review the list, then pass -auto-approve.")
    if not args.dry_run:
        result = remove_listed(workspace, result, force=args.force, on_event=values["on_event"])
        terminal.data(str(result))
    if args.json:
        context.reply.set(result.to_dict())


def _read(source: str, folder: Path) -> State:
    """Return the state in a file. Raise `errors.StateError` if it is not a state."""
    from tpudeploy.serialization import statefile

    try:
        content = sys.stdin.buffer.read() if source == "-" else (folder / source).read_bytes()
        text = content.decode()
    except OSError as cause:
        raise StateUnreadable(f"{source} cannot be read: {cause.strerror or cause}.") from cause
    except UnicodeDecodeError as cause:
        raise StateUnreadable(f"{source} is not a state: {cause}.") from cause
    return statefile.loads(text, source="stdin" if source == "-" else source)
