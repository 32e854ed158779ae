"""What only the command line has of `logs`: files, new lines as they come, and drafts of a diagnosis."""

from __future__ import annotations

import argparse

from tpudeploy.adapters.files import read_log
from tpudeploy.boot_log.export import report
from tpudeploy.boot_log.read import has_ended, new_lines
from tpudeploy.cli import options
from tpudeploy.cli.context import AS_WRITTEN, Context
from tpudeploy.cli.operation_command import show
from tpudeploy.domain import exits
from tpudeploy.domain.errors import CloudError, UsageError
from tpudeploy.loading import Profile
from tpudeploy.operations.boot_draft import with_draft
from tpudeploy.operations.logs import OPERATION as OPERATION  # noqa: PLC0414 - the command has its help
from tpudeploy.operations.logs import LogReadings, no_log, read
from tpudeploy.operations.written_files import write_files
from tpudeploy.pins import engine_of, registry_host
from tpudeploy.version import VERSION
from tpudeploy.views import jsonl

_PAUSE = 5.0  # seconds between two reads while following


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "profile", metavar="PROFILE", nargs="?", help="The profile of the server; remedies are written for it."
    )
    options.overlays(parser, "--overlay")
    options.option(parser, "file", "Read this log file instead, `-` for stdin.", variable="logs-file", metavar="LOG")
    options.flag(parser, "explain", "Show the cause and what to do, or how long each phase took.")
    options.flag(parser, "ask", "With --explain: let the served model draft a diagnosis from redacted evidence.")
    options.option(
        parser,
        "with",
        "With --ask: the profile of another deployment, one that serves.",
        dest="colleague",
        metavar="PROFILE",
    )
    options.option(
        parser,
        "export",
        "Write the logs to a new file for an issue, without secrets, addresses, accounts and projects.",
        variable="logs-export",
        metavar="FILE",
    )
    options.flag(parser, "follow", "Show new lines until the server is up or has failed.")
    parser.add_argument(
        "-f", dest="endless", action="store_true", help="Show new lines, after the start too, until Ctrl-C."
    )
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    args.follow = args.follow or args.endless
    _check_usage(args)
    profile = None if args.profile is None else context.load([args.profile], args)[0]
    if args.follow and args.file is not None:
        raise UsageError(
            "--follow reads the logs of machines, and --file reads an existing file.", hint="Leave one out."
        )
    if args.follow and profile is not None:
        _follow(profile, args, context)
        return exits.SUCCESS
    readings = _readings(profile, args, context)
    if args.export is not None:
        _export(readings, profile, args, context)
        return exits.SUCCESS
    if args.ask:
        readings = _with_draft(readings, profile, args, context)
    if args.explain or args.json:
        show(readings, context)
    else:
        context.terminal.foreign(readings.with_headings(readings.texts))
    return exits.SUCCESS


def _check_usage(args: argparse.Namespace) -> None:
    """Raise `errors.UsageError` for options that are missing or cannot be combined."""
    if args.profile is None and args.file is None:
        raise no_log()
    is_asked_alone = args.ask and not (args.explain or args.json)
    if is_asked_alone or (args.colleague and not args.ask):
        raise UsageError("--ask and --with need --explain.", hint="Write --explain --ask.")
    if args.export is not None and (args.ask or args.follow):
        raise UsageError("--export writes the logs as they are now.", hint="Leave out --ask and --follow.")
    if args.ask:
        _check_question(args)


def _check_question(args: argparse.Namespace) -> None:
    if args.follow:
        raise UsageError("--follow shows a running boot, and --ask explains one that has ended.", hint="Leave one out.")
    if args.profile is None and args.colleague is None:
        raise UsageError("There is no model to ask.", hint="Name a deployment that serves: --with PROFILE.")


def _readings(profile: Profile | None, args: argparse.Namespace, context: Context) -> LogReadings:
    """Return what the logs of the profile's machines say, or the log in the file that is named."""
    if args.file is not None or profile is None:
        text = read_log(args.file if args.file == "-" else str(context.folder / args.file))
        pins = None if profile is None else context.workspace([args.profile]).adapters.pins.read()
        return read({args.file: text}, profile, pins=pins)
    workspace = context.workspace([args.profile])

    def warn(slice_name: str, cause: CloudError) -> None:
        where = workspace.addresses(profile.name).get(slice_name, profile.name)
        context.terminal.talk(f"Warning: the log of {where} ({slice_name}) cannot be read: {cause.message}")

    return workspace.logs(profile, on_unreadable=warn)


def _export(readings: LogReadings, profile: Profile | None, args: argparse.Namespace, context: Context) -> None:
    """Write what may be attached to an issue to a new file. Raise `errors.UsageError` if there is one already."""
    names, head = dict[str, str](), [f"tpudeploy {VERSION}"]
    for number, name in enumerate(readings.texts, start=1):
        names[name] = f"machine-{number}"
    if profile is not None:
        spec = profile
        host = registry_host(spec.serving.image)
        names |= {spec.name: "DEPLOYMENT", spec.placement.project or "": "PROJECT", host: "REGISTRY"}
        engine = engine_of(spec.serving.image, context.workspace([args.profile]).adapters.pins.read())
        head += [f"engine: {engine.title}", f"model: {spec.model.id}", f"slice: {spec.tpu.type}"]
    text = report(head, readings.texts, {name: other for name, other in names.items() if name})
    file = context.folder / args.export
    if file.exists():
        raise UsageError(f"{file} is there already.", hint="Name a file that does not exist yet.")
    files = write_files({file: text}, here=context.folder)
    context.terminal.talk(f"{files}. Read it before you attach it: a log can hold what no rule recognizes.")


def _with_draft(
    readings: LogReadings, profile: Profile | None, args: argparse.Namespace, context: Context
) -> LogReadings:
    path = args.colleague or args.profile
    author = context.load([path], AS_WRITTEN)[0] if args.colleague else profile
    assert author is not None
    return with_draft(context.workspace([path]), readings, profile, author)


def _follow(profile: Profile, args: argparse.Namespace, context: Context) -> None:
    """Print new lines until the boots of all machines have ended, or with -f until it is interrupted."""
    workspace, before = context.workspace([args.profile]), dict[str, tuple[str, ...]]()
    while True:
        logs, addresses = workspace.boot_logs(profile.name), workspace.addresses(profile.name)
        for name, lines in logs.items():
            for line in new_lines(before.get(name, ()), lines):
                if args.json:
                    context.terminal.document(jsonl.document({"type": "log_line", "log": name, "line": line}))
                else:
                    label = f"{addresses[name]} = {name}" if name in addresses else name
                    context.terminal.foreign(line if len(logs) == 1 else f"{label}: {line}")
            before[name] = lines
        if not args.endless and all(has_ended("\n".join(lines)) for lines in logs.values()):
            return
        context.clock.sleep(_PAUSE)
