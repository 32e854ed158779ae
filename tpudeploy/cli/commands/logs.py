"""A boot's log; --explain names the first real cause in it, with what to do, or the phases of the start."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import AS_WRITTEN, Context
from tpudeploy.domain.errors import UsageError

if TYPE_CHECKING:
    from tpudeploy.domain.bootlog import Reading
    from tpudeploy.domain.budget import HbmBudget
    from tpudeploy.domain.draft import Draft, NoDraft
    from tpudeploy.domain.errors import CloudError
    from tpudeploy.loading import Profile

_PAUSE = 5.0  # seconds between two looks while following


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


def run(given: argparse.Namespace, context: Context) -> int:
    if given.profile is None and given.file is None:
        raise UsageError(
            "No log to read.", hint="Name a profile, or a log: `tpudeploy logs --file boot.log --explain`."
        )
    if (given.ask or given.colleague) and not (given.ask and (given.explain or given.json)):
        raise UsageError("--ask drafts on what --explain finds, and --with says who.", hint="Write --explain --ask.")
    if given.ask and given.follow:
        raise UsageError("--follow shows a boot as it goes on; --ask is for one that ended.", hint="Leave one out.")
    if given.ask and given.profile is None and given.colleague is None:
        raise UsageError("Nobody is there to ask.", hint="Name a deployment that serves: --with PROFILE.")
    profile = None if given.profile is None else context.load([given.profile], given)[0]
    if given.follow and given.file is not None:
        raise UsageError("--follow reads the logs of machines, and --file is a log that exists.", hint="Leave one out.")
    if given.follow and profile is not None:
        _follow(profile, given, context)
        return exits.SUCCESS
    logs = _logs(profile, given, context)
    addresses = _addresses(profile, given, context)
    if given.explain or given.json:
        _explain(logs, profile, given, context, addresses)
    else:
        context.terminal.data("\n\n".join(_headed(logs, addresses)))
    return exits.SUCCESS


def _logs(profile: Profile | None, given: argparse.Namespace, context: Context) -> dict[str, str]:
    """Each log by its slice's, or its file's, name."""
    if given.file is not None or profile is None:
        from tpudeploy.adapters.logfile import read_log

        return {given.file: read_log(given.file if given.file == "-" else str(context.folder / given.file))}
    workspace = context.workspace([given.profile])

    def warn(slice_name: str, cause: CloudError) -> None:
        where = workspace.addresses(profile.spec.name).get(slice_name, profile.spec.name)
        context.terminal.talk(f"Warning: the log of {where} ({slice_name}) cannot be read: {cause.message}")

    found = workspace.logs(profile.spec.name, on_unreadable=warn)
    return {name: "\n".join(lines) for name, lines in found.items()}


def _addresses(profile: Profile | None, given: argparse.Namespace, context: Context) -> Mapping[str, str]:
    """The replica of each slice; nothing for a log from a file."""
    if profile is None or given.file is not None:
        return {}
    return context.workspace([given.profile]).addresses(profile.spec.name)


def _headed(logs: Mapping[str, str], addresses: Mapping[str, str]) -> Iterator[str]:
    """Each log below the replica that printed it; a single one needs no head."""
    for name, text in logs.items():
        yield text.rstrip("\n") if len(logs) == 1 else f"{_label(name, addresses)}:\n{text}".rstrip("\n")


def _label(name: str, addresses: Mapping[str, str]) -> str:
    return f"{addresses[name]} = {name}" if name in addresses else name


def _explain(
    logs: dict[str, str],
    profile: Profile | None,
    given: argparse.Namespace,
    context: Context,
    addresses: Mapping[str, str],
) -> None:
    from tpudeploy.domain.draft import Draft, NoDraft
    from tpudeploy.views.draft import draft
    from tpudeploy.views.logs import explanation

    readings, terminal = read_all(logs, profile), context.terminal
    drafted = _drafted(logs, readings, profile, given, context) if given.ask else None
    if given.json:
        context.reply.set(documents.logs(readings, addresses) | documents.draft(drafted))
        return
    told = {name: explanation(reading, terminal.paint, width=terminal.width) for name, reading in readings.items()}
    terminal.data("\n\n".join(_headed(told, addresses)))
    match drafted:
        case Draft():
            terminal.data(f"\n{draft(drafted, terminal.paint, width=terminal.width)}")
        case NoDraft():
            terminal.talk("\n".join([f"No draft: {drafted.because}", *([f"  {drafted.hint}"] if drafted.hint else [])]))
        case None:
            pass


def _drafted(
    logs: Mapping[str, str],
    readings: Mapping[str, Reading],
    profile: Profile | None,
    given: argparse.Namespace,
    context: Context,
) -> Draft | NoDraft:
    from tpudeploy import drafting

    asked = given.colleague or given.profile
    by = context.load([asked], AS_WRITTEN)[0] if given.colleague else profile
    assert by is not None
    return drafting.draft(context.workspace([asked]), logs, readings, of=profile, by=by)


def read_all(logs: Mapping[str, str], profile: Profile | None) -> dict[str, Reading]:
    """What each log tells; remedies are for `profile`."""
    from tpudeploy.core.bootlog import read

    budget = _budget(profile)
    return {name: read(text, budget=budget) for name, text in logs.items()}


def _follow(profile: Profile, given: argparse.Namespace, context: Context) -> None:
    """Line by line as they come; of several machines, until all have come to an end."""
    from tpudeploy.core.bootlog import has_ended
    from tpudeploy.views import jsonl

    workspace, shown = context.workspace([given.profile]), dict[str, int]()
    while True:
        found, addresses = workspace.logs(profile.spec.name), workspace.addresses(profile.spec.name)
        for name, lines in found.items():
            for line in lines[shown.get(name, 0) :]:
                if given.json:
                    context.terminal.document(jsonl.document({"type": "log_line", "log": name, "line": line}))
                else:
                    context.terminal.data(line if len(found) == 1 else f"{_label(name, addresses)}: {line}")
            shown[name] = len(lines)
        if all(has_ended("\n".join(lines)) for lines in found.values()):
            return
        context.clock.sleep(_PAUSE)


def _budget(profile: Profile | None) -> HbmBudget | None:
    """What the profile predicts, where there is a profile that can be sized."""
    if profile is None:
        return None
    from tpudeploy.domain.budget import HbmBudget
    from tpudeploy.loading import size

    found = size(profile)
    return found if isinstance(found, HbmBudget) else None
