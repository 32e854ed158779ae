"""Make profiles true: ask for slices, wait for a real completion, print the endpoint. Resumes an earlier run."""

from __future__ import annotations

import argparse

from tpudeploy.cli import options, planning
from tpudeploy.cli.approval import carry_out
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import teller
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
    options.flag(parser, "auto-approve", "do not ask")
    options.flag(parser, "adopt", "take over slices that no state remembers")
    planning.replacing(parser)
    options.flag(parser, "refresh-only", "only write down what changed outside; touch nothing")
    planning.arguments(parser)
    options.option(
        parser,
        "wait",
        "how far to go: accepted, granted or serving",
        choices=("accepted", "granted", "serving"),
        default="serving",
    )
    options.option(parser, "timeout", "give up waiting after this long, e.g. 2h (exit 12)", type=options.duration)
    options.flag(parser, "watch", "then keep it alive: ask again for what is preempted, until stopped")
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
        profiles = context.load(given.profiles, given)
        workspace = context.workspace(given.profiles, lock_timeout=given.lock_timeout)
        tell = teller(context.terminal, as_json=given.json)
        plan = workspace.plan(profiles, **planning.asked(given), on_event=tell)
    question = "Do you want to perform these actions?"
    return carry_out(
        given, context, workspace, plan, question=question, wait=given.wait, timeout=given.timeout, watch=given.watch
    )
