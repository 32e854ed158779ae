"""Create or update the deployments in PROFILE, wait until each one answers a completion, and print its endpoint.

An interrupted run is resumed.
"""

from __future__ import annotations

import argparse

from tpudeploy.cli import options, planning
from tpudeploy.cli.approval import carry_out
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import event_printer
from tpudeploy.cli.saved import saved_plan
from tpudeploy.domain.errors import UsageError

_OF_PROFILES = {
    "overlays": "file",
    "sets": "set",
    "adopt": "adopt",
    "replace": "replace",
    "target": "target",
    "refresh_only": "refresh-only",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    options.plan_file(parser)
    options.flag(parser, "auto-approve", "Skip the approval prompt.")
    options.flag(parser, "adopt", "Adopt existing slices that no state tracks.")
    planning.replace_option(parser)
    options.flag(parser, "refresh-only", "Only record in the state what changed outside; change nothing in the cloud.")
    planning.arguments(parser)
    options.option(
        parser,
        "wait",
        "How far to wait: accepted, granted or serving.",
        choices=("accepted", "granted", "serving"),
        default="serving",
    )
    options.option(parser, "timeout", "Stop waiting after this time, e.g. 2h (exit 12).", type=options.duration)
    options.flag(parser, "watch", "Keep running afterwards and replace preempted slices until interrupted.")
    options.lock_timeout(parser)
    options.backend(parser)
    options.events(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    if given.watch and given.wait != "serving":
        raise UsageError(f"-watch keeps alive what serves; -wait {given.wait} ends before.", hint="Leave one out.")
    if given.watch and given.target:
        raise UsageError("-watch keeps whole deployments alive, -target names a part.", hint="Leave one out.")
    plan = saved_plan(given, context, _OF_PROFILES)
    if plan is not None:
        workspace = context.workspace(given.profiles, backend=plan.backend, lock_timeout=given.lock_timeout)
    else:
        loaded = context.load_each(given.profiles, given)
        workspace = context.workspace(given.profiles, lock_timeout=given.lock_timeout)
        tell = event_printer(context.terminal, as_json=given.json)
        plan = workspace.plan(loaded.valid, **planning.plan_arguments(given), invalid=loaded.invalid, on_event=tell)
    question = "Do you want to perform these actions?"
    return carry_out(
        given, context, workspace, plan, question=question, wait=given.wait, timeout=given.timeout, watch=given.watch
    )
