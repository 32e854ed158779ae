"""Show a boot log; --explain shows the root cause and what to do, or the phases of the start."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import AS_WRITTEN, Context
from tpudeploy.domain.errors import UsageError

if TYPE_CHECKING:
    from tpudeploy.domain.boot_log import Draft, NoDraft, Reading
    from tpudeploy.domain.budget import HbmBudget
    from tpudeploy.domain.errors import CloudError
    from tpudeploy.loading import Profile

_PAUSE = 5.0  # seconds between two reads while following


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "profile", metavar="PROFILE", nargs="?", help="The profile of the server; remedies are written for it."
    )
    options.overlays(parser, "-f", "--overlay")
    options.option(parser, "file", "Read this log file instead, `-` for stdin.", metavar="LOG")
    options.flag(parser, "explain", "Show the cause and what to do, or how long each phase took.")
    options.flag(parser, "ask", "With --explain: let the served model draft a diagnosis from redacted evidence.")
    options.option(
        parser,
        "with",
        "With --ask: the profile of another deployment, one that serves.",
        dest="colleague",
        metavar="PROFILE",
    )
    options.flag(parser, "follow", "Show new lines until the server is up or has failed.")
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    _check_usage(args)
    profile = None if args.profile is None else context.load([args.profile], args)[0]
    if args.follow and args.file is not None:
        raise UsageError(
            "--follow reads the logs of machines, and --file reads an existing file.", hint="Leave one out."
        )
    if args.follow and profile is not None:
        _follow(profile, args, context)
        return exits.SUCCESS
    logs = _logs(profile, args, context)
    addresses = _addresses(profile, args, context)
    if args.explain or args.json:
        _explain(logs, profile, args, context, addresses)
    else:
        context.terminal.data("\n\n".join(_with_headings(logs, addresses)))
    return exits.SUCCESS


def _check_usage(args: argparse.Namespace) -> None:
    """Raise `errors.UsageError` for options that are missing or cannot be combined."""
    if args.profile is None and args.file is None:
        raise UsageError(
            "No log to read.", hint="Name a profile, or a log: `tpudeploy logs --file boot.log --explain`."
        )
    is_asked_alone = args.ask and not (args.explain or args.json)
    if is_asked_alone or (args.colleague and not args.ask):
        raise UsageError("--ask and --with need --explain.", hint="Write --explain --ask.")
    if args.ask and args.follow:
        raise UsageError("--follow shows a running boot, and --ask explains one that has ended.", hint="Leave one out.")
    if args.ask and args.profile is None and args.colleague is None:
        raise UsageError("There is no model to ask.", hint="Name a deployment that serves: --with PROFILE.")


def _logs(profile: Profile | None, args: argparse.Namespace, context: Context) -> dict[str, str]:
    """Return each log by the name of its slice or file."""
    if args.file is not None or profile is None:
        from tpudeploy.adapters.files import read_log

        return {args.file: read_log(args.file if args.file == "-" else str(context.folder / args.file))}
    workspace = context.workspace([args.profile])

    def warn(slice_name: str, cause: CloudError) -> None:
        where = workspace.addresses(profile.spec.name).get(slice_name, profile.spec.name)
        context.terminal.talk(f"Warning: the log of {where} ({slice_name}) cannot be read: {cause.message}")

    logs = workspace.logs(profile.spec.name, on_unreadable=warn)
    return {name: "\n".join(lines) for name, lines in logs.items()}


def _addresses(profile: Profile | None, args: argparse.Namespace, context: Context) -> Mapping[str, str]:
    """Return the replica of each slice, or nothing for a log from a file."""
    if profile is None or args.file is not None:
        return {}
    return context.workspace([args.profile]).addresses(profile.spec.name)


def _with_headings(logs: Mapping[str, str], addresses: Mapping[str, str]) -> Iterator[str]:
    """Yield each log under a heading with its replica; a single log has no heading."""
    for name, text in logs.items():
        yield text.rstrip("\n") if len(logs) == 1 else f"{_label(name, addresses)}:\n{text}".rstrip("\n")


def _label(name: str, addresses: Mapping[str, str]) -> str:
    return f"{addresses[name]} = {name}" if name in addresses else name


def _explain(
    logs: dict[str, str],
    profile: Profile | None,
    args: argparse.Namespace,
    context: Context,
    addresses: Mapping[str, str],
) -> None:
    from tpudeploy.domain.boot_log import Draft, NoDraft
    from tpudeploy.views.logs import draft, explanation

    readings, terminal = read_all(logs, profile), context.terminal
    draft_ = _request_draft(logs, readings, profile, args, context) if args.ask else None
    if args.json:
        context.reply.set(documents.logs(readings, addresses) | documents.draft(draft_))
        return
    texts = {name: explanation(reading, terminal.paint, width=terminal.width) for name, reading in readings.items()}
    terminal.data("\n\n".join(_with_headings(texts, addresses)))
    match draft_:
        case Draft():
            terminal.data(f"\n{draft(draft_, terminal.paint, width=terminal.width)}")
        case NoDraft():
            terminal.talk("\n".join([f"No draft: {draft_.because}", *([f"  {draft_.hint}"] if draft_.hint else [])]))
        case None:
            pass


def _request_draft(
    logs: Mapping[str, str],
    readings: Mapping[str, Reading],
    profile: Profile | None,
    args: argparse.Namespace,
    context: Context,
) -> Draft | NoDraft:
    from tpudeploy.operations.diagnose import draft

    path = args.colleague or args.profile
    author = context.load([path], AS_WRITTEN)[0] if args.colleague else profile
    assert author is not None
    return draft(context.workspace([path]), logs, readings, profile=profile, author=author)


def read_all(logs: Mapping[str, str], profile: Profile | None) -> dict[str, Reading]:
    """Return the reading of each log, with remedies for `profile`."""
    from tpudeploy.boot_log.read import read

    budget = _budget(profile)
    return {name: read(text, budget=budget) for name, text in logs.items()}


def _follow(profile: Profile, args: argparse.Namespace, context: Context) -> None:
    """Print new lines until the boots of all machines have ended."""
    from tpudeploy.boot_log.read import has_ended
    from tpudeploy.views import jsonl

    workspace, printed = context.workspace([args.profile]), dict[str, int]()
    while True:
        logs, addresses = workspace.logs(profile.spec.name), workspace.addresses(profile.spec.name)
        for name, lines in logs.items():
            for line in lines[printed.get(name, 0) :]:
                if args.json:
                    context.terminal.document(jsonl.document({"type": "log_line", "log": name, "line": line}))
                else:
                    context.terminal.data(line if len(logs) == 1 else f"{_label(name, addresses)}: {line}")
            printed[name] = len(lines)
        if all(has_ended("\n".join(lines)) for lines in logs.values()):
            return
        context.clock.sleep(_PAUSE)


def _budget(profile: Profile | None) -> HbmBudget | None:
    """Return the predicted memory budget, or None without a profile that can be sized."""
    if profile is None:
        return None
    from tpudeploy.domain.budget import HbmBudget
    from tpudeploy.loading import size

    prediction = size(profile)
    return prediction if isinstance(prediction, HbmBudget) else None
