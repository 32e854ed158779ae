"""What is there, how far it has come, where it answers and what it costs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError
from tpudeploy.views import jsonl
from tpudeploy.views.status import status

if TYPE_CHECKING:
    from tpudeploy.domain.status import DeploymentStatus
    from tpudeploy.loading import Profile
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
    profiles = context.load(given.profiles, given)
    found = _watched(workspace, profiles, context) if given.watch else _look(workspace, profiles)
    more = [each for profile in profiles for each in workspace.details(profile)] if given.details else []
    starts = [t for each in found for t in workspace.timelines(each.name)] if given.timeline else []
    terminal = context.terminal
    if given.html is not None:
        from tpudeploy.cli.reporting import write
        from tpudeploy.views.report.fleet import fleet

        path = context.folder / given.html
        write(path, fleet(found, at=context.clock.now(), emulated=workspace.is_emulated))
        terminal.talk(f"Wrote {path}")
        if given.json and not given.watch:
            context.reply.set(documents.files([path]))
        return exits.SUCCESS
    if given.json:
        known = documents.status(found, emulated=workspace.is_emulated)
        known |= documents.details(more) if given.details else {}
        known |= documents.timelines(starts) if given.timeline else {}
        if given.watch:
            terminal.document(jsonl.document({"type": "status", **known}))
        else:
            context.reply.set(known)
        return exits.SUCCESS
    terminal.data(status(found, terminal.paint, emulated=workspace.is_emulated))
    if given.details:
        from tpudeploy.views.details import details

        terminal.data("".join(f"\n{details(each, terminal.paint)}" for each in more))
    if given.timeline:
        from tpudeploy.views.timeline import timeline

        terminal.data("\n" + "\n\n".join(timeline(t, terminal.paint) for t in starts) if starts else _NO_START)
    return exits.SUCCESS


def _look(workspace: Workspace, profiles: Sequence[Profile]) -> tuple[DeploymentStatus, ...]:
    return workspace.status(profiles) if profiles else workspace.status_of_all()


def _watched(workspace: Workspace, profiles: Sequence[Profile], context: Context) -> tuple[DeploymentStatus, ...]:
    """The last look; those before it are told where they show something new."""
    terminal, shown = context.terminal, ""
    while True:
        found = _look(workspace, profiles)
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
