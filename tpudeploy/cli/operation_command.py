"""Make a command from the row of an operation: its options, its profiles, its output and its exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from tpudeploy.cli import options
from tpudeploy.cli.approval import approve
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import event_printer
from tpudeploy.domain import exits
from tpudeploy.domain.errors import ProfileInvalid
from tpudeploy.operations import argument_types, operation
from tpudeploy.operations.arguments import REQUIRED, Declared, NamesProfiles, Value
from tpudeploy.operations.declaration import PROFILE_KINDS, Argument, ArgumentKind, Operation
from tpudeploy.results import Result
from tpudeploy.text.words import plain
from tpudeploy.workspace import Workspace

_PARSERS: Mapping[ArgumentKind, Callable[[str], Any]] = {
    ArgumentKind.COUNT: argument_types.count,
    ArgumentKind.DURATION: argument_types.duration,
    ArgumentKind.SECONDS: argument_types.seconds,
    ArgumentKind.LATENCY: argument_types.latency,
    ArgumentKind.AMOUNT: argument_types.amount,
    ArgumentKind.COUNTS: argument_types.counts,
    ArgumentKind.INDEX: argument_types.index,
}


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
        if argument.command is not None:
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
    return [a for a in row.arguments if a.command and not a.positional and a.kind not in PROFILE_KINDS]


def add_argument(parser: argparse.ArgumentParser, argument: Argument) -> None:
    if argument.declared is not None:
        _add_declared(parser, argument.declared)
        return
    match argument.kind:
        case ArgumentKind.PROFILE:
            options.profile(parser, dest=argument.name, is_required=argument.is_required_option)
        case ArgumentKind.PROFILES | ArgumentKind.VALID_PROFILES | ArgumentKind.PROFILE_FILES:
            options.profiles(parser, nargs="+" if argument.is_required else "*")
        case ArgumentKind.PROFILE_OR_NAME:
            parser.add_argument(argument.name, metavar="PROFILE | NAME", nargs="?", help=argument.help)
            options.overlays(parser)
        case ArgumentKind.PLAN:
            options.plan_file(parser)
        case ArgumentKind.FLAG:
            options.flag(parser, argument.option_name, argument.help, dest=argument.name)
        case ArgumentKind.SWITCH:
            options.switch(parser, argument.option_name, argument.help)
        case ArgumentKind.TEXTS if not argument.positional:
            names = {"metavar": argument.metavar, "dest": argument.name}
            option, variable = (
                f"--{argument.option_name}",
                "" if argument.command is None else argument.command.variable,
            )
            options.several(parser, option, argument.help, variable=variable, **names)
        case _ if argument.positional:
            _add_positional(parser, argument)
        case _:
            _add_option(parser, argument)


def _add_declared(parser: argparse.ArgumentParser, one: Declared) -> None:
    """Add an argument to a command: profiles, a positional, a flag, a switch, a repeatable option, one with a value."""
    arg, value, profiles = one.arg, one.of(Value), one.of(NamesProfiles)
    default = None if one.default is REQUIRED else one.default
    metavar = arg.metavar or (value.metavar if value else None)
    if profiles is not None and profiles.one:
        options.profile(parser, dest=one.name, is_required=one.default is REQUIRED)
    elif profiles is not None:
        options.profiles(parser, nargs="+" if one.default is REQUIRED else "*")
    elif arg.positional:
        many, optional = ("+", "*") if one.is_several else (None, "?")
        nargs: Any = many if one.default is REQUIRED else optional
        parser.add_argument(one.name, metavar=metavar or one.name.upper(), help=arg.help, nargs=nargs, default=default)
    elif one.type is bool and default:
        options.switch(parser, one.option, arg.help)
    elif one.type is bool:
        options.flag(parser, one.option, arg.help, dest=one.name)
    elif one.is_several and value is None:
        options.several(parser, f"--{one.option}", arg.help, variable=arg.variable, metavar=metavar, dest=one.name)
    else:
        more: dict[str, Any] = {"dest": one.name, "metavar": metavar, "default": default}
        more |= {"choices": get_args(one.type)} if get_origin(one.type) is Literal else {}
        more |= {"type": value.parse} if value else {}
        options.option(parser, one.option, arg.help, variable=arg.variable, **more)


def _add_positional(parser: argparse.ArgumentParser, argument: Argument) -> None:
    optional: dict[str, Any] = {} if argument.is_required else {"nargs": "?", "default": argument.default}
    if argument.kind is ArgumentKind.TEXTS:
        optional = {"nargs": "+" if argument.is_required else "*"}
    parser.add_argument(
        argument.name,
        metavar=argument.metavar or argument.name.upper(),
        help=argument.help,
        choices=argument.choices or None,
        **optional,
    )


def _add_option(parser: argparse.ArgumentParser, argument: Argument) -> None:
    more: dict[str, Any] = {"dest": argument.name, "default": argument.default, "metavar": argument.metavar or None}
    if argument.choices:
        more["choices"] = argument.choices
    if argument.kind in _PARSERS:
        more["type"] = _PARSERS[argument.kind]
    variable = "" if argument.command is None else argument.command.variable
    options.option(parser, argument.option_name, argument.help, variable=variable, **more)


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
        if argument.command is None:
            continue
        value = getattr(args, argument.name)
        if _names_profiles(argument, value, context):
            paths = [value] if isinstance(value, str) else value
            value, invalid = _load(argument, paths, args, context)
        elif argument.kind is ArgumentKind.FILE and value is not None:
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
    match argument.kind:
        case ArgumentKind.PROFILES | ArgumentKind.VALID_PROFILES:
            return True
        case ArgumentKind.PROFILE:
            return value is not None
        case ArgumentKind.PROFILE_OR_NAME:
            return value is not None and context.is_profile(value)
        case _:
            return False


def _load(
    argument: Argument, paths: list[str], args: argparse.Namespace, context: Context
) -> tuple[Any, Mapping[str, ProfileInvalid]]:
    """Return one profile or several, as the argument takes them, and the error of each invalid file."""
    if argument.kind is ArgumentKind.VALID_PROFILES:
        loaded = context.load_each(paths, args)
        return loaded.valid, loaded.invalid
    profiles = context.load(paths, args)
    return (profiles if argument.kind is ArgumentKind.PROFILES else profiles[0]), {}


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
