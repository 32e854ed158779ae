"""Make a command from the row of an operation: its options, its profiles, its output and its exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tpudeploy.cli import options
from tpudeploy.cli.approval import approve
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import event_printer
from tpudeploy.domain import exits
from tpudeploy.domain.errors import ProfileInvalid
from tpudeploy.operations import operation
from tpudeploy.operations.arguments import Argument, NamesProfiles
from tpudeploy.operations.declaration import Operation
from tpudeploy.results import Result
from tpudeploy.text.words import plain
from tpudeploy.workspace import Workspace


class OperationCommand:
    """The command of an operation that has no module in `commands`."""

    def __init__(self, name: str) -> None:
        self._operation = operation(name)
        self.__doc__ = sys.modules[self._operation.run.__module__].__doc__

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        add_arguments(parser, self._operation)

    def run(self, args: argparse.Namespace, context: Context) -> int:
        return run(self._operation, args, context)


def add_arguments(parser: argparse.ArgumentParser, row: Operation) -> None:
    """Add the arguments of an operation, and the options that only its command has."""
    for argument in row.arguments:
        if argument.arg.command:
            add_argument(parser, argument)
    for name in row.options:
        getattr(options, name)(parser)
    add_approval(parser, row)


def add_approval(parser: argparse.ArgumentParser, row: Operation) -> None:
    """Add the option that skips the question before an operation runs, if there is one."""
    if row.approval is not None:
        options.flag(parser, row.approval.option, "Skip the approval prompt.")


def add_options(parser: argparse.ArgumentParser, row: Operation) -> None:
    """Add the options of an operation alone, for a command with several forms. `option_values` returns them."""
    for argument in _options(row):
        add_argument(parser, argument)


def option_values(row: Operation, args: argparse.Namespace) -> dict[str, Any]:
    return {argument.name: getattr(args, argument.name) for argument in _options(row)}


def _options(row: Operation) -> list[Argument]:
    return [each for each in row.arguments if each.arg.command and not each.is_positional]


def add_argument(parser: argparse.ArgumentParser, one: Argument) -> None:
    """Add an argument to a command: profiles, a positional, a flag, a switch, a repeatable option, one with a value."""
    arg, default = one.arg, None if one.is_required else one.default
    metavar = arg.metavar or (one.value.metavar if one.value else None)
    if one.profiles is not None:
        _add_profiles(parser, one, one.profiles)
    elif arg.positional:
        many, optional = ("+", "*") if one.is_several else (None, "?")
        more: dict[str, Any] = {"metavar": metavar or one.name.upper(), "choices": one.choices or None}
        nargs: Any = many if one.is_required else optional
        parser.add_argument(one.name, help=arg.help, nargs=nargs, default=default, **more)
    elif one.type is bool:
        add = options.switch if default else options.flag
        add(parser, one.option, arg.help, dest=one.name)
    elif one.is_repeatable:
        options.several(parser, f"--{one.option}", arg.help, variable=arg.variable, metavar=metavar, dest=one.name)
    else:
        more = {"dest": one.name, "metavar": metavar, "default": default}
        more |= {"choices": one.choices} if one.choices else {}
        more |= {"type": one.value.parse} if one.value else {}
        options.option(parser, one.option, arg.help, variable=arg.variable, **more)


def _add_profiles(parser: argparse.ArgumentParser, one: Argument, which: NamesProfiles) -> None:
    match which:
        case NamesProfiles.ONE:
            options.profile(parser, dest=one.name)
        case NamesProfiles.ONE_OR_NAME:
            parser.add_argument(one.name, metavar="PROFILE | NAME", nargs="?", help=one.arg.help)
            options.overlays(parser)
        case NamesProfiles.OR_PLAN:
            options.plan_file(parser)
        case _:
            options.profiles(parser, nargs="+" if one.is_required else "*")


def run(row: Operation, args: argparse.Namespace, context: Context) -> int:
    """Run an operation, print its result, and return the exit code."""
    call = prepare(row, args, context)
    values = call.values
    if row.approval is not None and not values.get("dry_run"):
        values |= _approved_values(row, call, args, context)
    if row.takes_pieces and not context.terminal.as_json:
        result = _print_pieces(row, call, context)
    else:
        result = row.run(call.workspace, **values)
        show(result, context)
    return exits.ERROR if call.has_invalid else result.exit_code


def _approved_values(
    row: Operation, call: OperationCall, args: argparse.Namespace, context: Context
) -> Mapping[str, Any]:
    """Return the values that a person approved. Raise `errors.NotApproved`."""
    assert row.approval is not None
    make_preview = row.approval.preview
    preview = None if make_preview is None else make_preview(call.workspace, **call.values)
    if preview is not None and preview.result is not None and not context.terminal.as_json:
        context.terminal.data(str(preview.result))
    approve(args, context, row)
    return {} if preview is None else preview.values


def _print_pieces(row: Operation, call: OperationCall, context: Context) -> Result:
    """Run an operation whose text is printed while it arrives, and print its messages."""
    terminal, has_output = context.terminal, False

    def print_piece(piece: str) -> None:
        nonlocal has_output
        has_output = True
        terminal.verbatim(plain(piece), end="")

    try:
        result: Result = row.run(call.workspace, **call.values, on_piece=print_piece)
    finally:
        if has_output:
            terminal.verbatim("")
    if not has_output:
        terminal.verbatim(plain(result.as_text(terminal.paint)))
    terminal.explain(result.messages(terminal.paint))
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCall:
    """The workspace and the values of an operation's arguments. `has_invalid`: a profile is invalid and left out."""

    workspace: Workspace | None
    values: dict[str, Any]
    has_invalid: bool

    @property
    def opened(self) -> Workspace:
        """Return the workspace of an operation that needs one."""
        assert self.workspace is not None
        return self.workspace


def prepare(row: Operation, args: argparse.Namespace, context: Context) -> OperationCall:
    """Load the profiles that are named, and open their workspace."""
    values: dict[str, Any] = {}
    paths: list[str] = []
    invalid: Mapping[str, ProfileInvalid] = {}
    for argument in row.arguments:
        if not argument.arg.command:
            continue
        value = getattr(args, argument.name)
        if _names_profiles(argument, value, context):
            paths = [value] if isinstance(value, str) else value
            value, invalid = _load(argument, paths, args, context)
        elif argument.is_file and value is not None:
            value = context.folder / value
        values[argument.name] = value
    if row.takes_invalid:
        values["invalid"] = invalid
    else:
        context.report_invalid(invalid)
    if row.takes_events:
        values["on_event"] = event_printer(context.terminal)
    if not row.needs_workspace:
        return OperationCall(workspace=None, values=values, has_invalid=False)
    workspace = context.workspace(paths, lock_timeout=getattr(args, "lock_timeout", None))
    return OperationCall(
        workspace=workspace, values=row.grouped(values), has_invalid=bool(invalid) and not row.takes_invalid
    )


def _names_profiles(argument: Argument, value: Any, context: Context) -> bool:
    """Return whether a value names profiles to load, and not a deployment or another text."""
    match argument.profiles:
        case NamesProfiles.SEVERAL | NamesProfiles.EACH_VALID:
            return True
        case NamesProfiles.ONE:
            return value is not None
        case NamesProfiles.ONE_OR_NAME:
            return value is not None and context.is_profile(value)
        case _:
            return False


def _load(
    argument: Argument, paths: list[str], args: argparse.Namespace, context: Context
) -> tuple[Any, Mapping[str, ProfileInvalid]]:
    """Return one profile or several, as the argument takes them, and the error of each invalid file."""
    if argument.profiles is NamesProfiles.EACH_VALID:
        loaded = context.load_each(paths, args)
        return loaded.valid, loaded.invalid
    profiles = context.load(paths, args)
    return (profiles if argument.profiles is NamesProfiles.SEVERAL else profiles[0]), {}


def show(result: Result, context: Context, *, with_messages: bool = True) -> None:
    """Print a result on stdout, as text or as the document of the command, and its messages on stderr."""
    terminal = context.terminal
    if terminal.as_json:
        context.reply.set(result.to_dict(), on_one_line=result.ON_ONE_LINE)
        return
    text = result.as_text(terminal.paint, terminal.width)
    if text:
        write = terminal.verbatim if result.IS_VERBATIM else terminal.data
        write(text)
    messages = result.messages(terminal.paint)
    if messages and with_messages:
        terminal.explain(messages)
