"""Show what would change, why, and which line of which file caused it. Changes nothing."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits, options
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import teller
from tpudeploy.domain.diagnostics import errors_in
from tpudeploy.views import excerpt, jsonl
from tpudeploy.views import plan as view
from tpudeploy.views.size import summary


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser)
    options.flag(parser, "detailed-exitcode", "exit 2 where there are changes")
    options.flag(parser, "destroy", "plan the removal")
    options.flag(parser, "adopt", "take over slices that no state remembers")
    options.parallelism(parser)
    options.backend(parser)
    options.events(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    terminal = context.terminal
    profiles = context.load(given.profiles, given)
    plan = context.workspace(given.profiles).plan(
        profiles, destroy=given.destroy, adopt=given.adopt, on_event=teller(terminal, as_json=given.json)
    )
    terminal.data(jsonl.result(plan) if given.json else view.plan(plan, terminal.paint))
    sizes = [summary(g.name, g.deployment.budget) for g in plan.goals if g.deployment is not None]
    if sizes and not given.json:
        terminal.data(terminal.paint.dim("\n".join(["", *sizes])))
    if plan.diagnostics:
        terminal.talk(f"\n{excerpt.diagnostics(plan.diagnostics, terminal.paint)}")
    if errors_in(plan.diagnostics):
        return exits.REFUSED
    return exits.CHANGES if given.detailed_exitcode and not plan.is_empty else exits.SUCCESS
