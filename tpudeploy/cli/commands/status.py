"""What is there, how far it has come, where it answers and what it costs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context, LoadedProfiles
from tpudeploy.domain import errors
from tpudeploy.domain.errors import UsageError
from tpudeploy.views import jsonl
from tpudeploy.views.status import status

if TYPE_CHECKING:
    from tpudeploy.domain.status import DeploymentStatus
    from tpudeploy.workspace import Workspace

_EVERY = 10.0  # seconds
_NO_START = "\nNo machine has told of a start."


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser, nargs="*")
    options.parallelism(parser)
    options.backend(parser)
    options.flag(parser, "details", "Show what each engine runs with and what its chips hold: planned beside measured.")
    options.flag(parser, "timeline", "Show each machine's last start part by part, and what made it slow.")
    options.option(parser, "html", "Write the status as an HTML page.", metavar="FILE")
    options.flag(parser, "watch", "Refresh until nothing is in progress.")


def run(given: argparse.Namespace, context: Context) -> int:
    if given.details and not given.profiles:
        raise UsageError("What was planned stands in a profile.", hint="Name the profiles: status -details PROFILE...")
    workspace = context.workspace(given.profiles)
    terminal = context.terminal
    loaded = context.load_each(given.profiles, given)
    context.report_invalid(loaded)
    found = _watched(workspace, loaded, context) if given.watch else _look(workspace, loaded)
    visible = [each.name for each in found if each.error is None]
    profiles = [profile for profile in loaded.valid if profile.spec.name in visible]
    more = [each for profile in profiles for each in workspace.details(profile)] if given.details else []
    starts = [timeline for name in visible for timeline in workspace.timelines(name)] if given.timeline else []
    unknown = errors.worst(each.error for each in found if each.error is not None)
    code = exits.SUCCESS if unknown is None else unknown.exit_code
    if given.html is not None:
        from tpudeploy.cli.reporting import write
        from tpudeploy.views.report.fleet import fleet

        path = context.folder / given.html
        write(path, fleet(found, at=context.clock.now(), emulated=workspace.is_emulated))
        terminal.talk(f"Wrote {path}")
        if given.json and not given.watch:
            context.reply.set(documents.files([path]))
        return code
    if given.json:
        known = documents.status(found, emulated=workspace.is_emulated)
        known |= documents.details(more) if given.details else {}
        known |= documents.timelines(starts) if given.timeline else {}
        if given.watch:
            terminal.document(jsonl.document({"type": "status", **known}))
        else:
            context.reply.set(known)
        return code
    terminal.data(status(found, terminal.paint, emulated=workspace.is_emulated))
    if given.details:
        from tpudeploy.views.details import details

        terminal.data("".join(f"\n{details(each, terminal.paint)}" for each in more))
    if given.timeline:
        from tpudeploy.views.logs import timeline

        terminal.data("\n" + "\n\n".join(timeline(t, terminal.paint) for t in starts) if starts else _NO_START)
    return code


def _look(workspace: Workspace, loaded: LoadedProfiles) -> tuple[DeploymentStatus, ...]:
    return workspace.status(loaded.valid, invalid=loaded.invalid) if loaded.valid else workspace.status_of_all()


def _watched(workspace: Workspace, loaded: LoadedProfiles, context: Context) -> tuple[DeploymentStatus, ...]:
    """The last look; those before it are told where they show something new."""
    terminal, shown = context.terminal, ""
    while True:
        found = _look(workspace, loaded)
        if not any(replica.is_on_its_way for each in found for replica in each.replicas):
            return found
        told = status(found, terminal.paint, emulated=False)
        if told != shown:
            if terminal.as_json:
                terminal.document(
                    jsonl.document({"type": "status", **documents.status(found, emulated=workspace.is_emulated)})
                )
            else:
                terminal.talk(f"{told}\n")
            shown = told
        context.clock.sleep(_EVERY)
