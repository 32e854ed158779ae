"""What only the command line has of `status`: a page, and a status that is printed whenever it changes."""

from __future__ import annotations

import argparse

from tpudeploy.cli import options
from tpudeploy.cli.context import Context, LoadedProfiles
from tpudeploy.cli.operation_command import add_arguments, show
from tpudeploy.domain.errors import UsageError
from tpudeploy.operations.status import OPERATION, Status
from tpudeploy.operations.written_files import write_files
from tpudeploy.views import jsonl
from tpudeploy.views.page import fleet
from tpudeploy.workspace import Workspace

_INTERVAL = 10.0  # seconds


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, OPERATION)
    options.option(parser, "html", "Write the status as an HTML page.", metavar="FILE")
    options.flag(parser, "watch", "Refresh until nothing is in progress.")


def run(args: argparse.Namespace, context: Context) -> int:
    if args.details and not args.profiles:
        raise UsageError("-details needs a profile.", hint="Name the profiles: status -details PROFILE...")
    workspace = context.workspace(args.profiles)
    loaded = context.load_each(args.profiles, args)
    context.report_invalid(loaded.invalid)
    if args.watch:
        _watch(workspace, loaded, context)
    result = workspace.status(loaded.valid, details=args.details, timeline=args.timeline, invalid=loaded.invalid)
    if args.html is not None:
        _write_page(result, args, context)
    elif args.json and args.watch:
        context.terminal.document(jsonl.document({"type": "status", **result.to_dict()}))
    else:
        show(result, context)
    return result.exit_code


def _write_page(result: Status, args: argparse.Namespace, context: Context) -> None:
    page = fleet(result.deployments, at=context.clock.now(), emulated=result.emulated)
    written_files = write_files({context.folder / args.html: page}, here=context.folder)
    context.terminal.talk(str(written_files))
    if args.json and not args.watch:
        context.reply.set(written_files.to_dict())


def _watch(workspace: Workspace, loaded: LoadedProfiles, context: Context) -> None:
    """Print the status whenever it changes, until nothing is in progress."""
    terminal, printed = context.terminal, ""
    while True:
        result = workspace.status(loaded.valid, invalid=loaded.invalid)
        if not result.is_in_progress:
            return
        text = result.as_text(terminal.paint, terminal.width)
        if text != printed:
            if terminal.as_json:
                terminal.document(jsonl.document({"type": "status", **result.to_dict()}))
            else:
                terminal.talk(f"{text}\n")
            printed = text
        context.clock.sleep(_INTERVAL)
