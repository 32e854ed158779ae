"""Show what would change, why, and which line of which file caused it. Changes nothing."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from tpudeploy.cli import exits, options, planning
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import teller
from tpudeploy.domain.plan import Mode, Plan
from tpudeploy.views import excerpt, jsonl
from tpudeploy.views import plan as view
from tpudeploy.views.size import summary


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser)
    options.option(parser, "out", "save the plan, for `tpudeploy apply FILE`", metavar="FILE", type=Path)
    options.flag(parser, "detailed-exitcode", "exit 2 where there are changes")
    options.flag(parser, "destroy", "plan the removal")
    options.flag(parser, "adopt", "take over slices that no state remembers")
    planning.replacing(parser)
    options.flag(parser, "refresh-only", "only write down what changed outside; touch nothing")
    planning.arguments(parser)
    options.switch(parser, "refresh", "take the cloud to be as the states remember it; apply looks all the same")
    options.backend(parser)
    options.json(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    asked = planning.asked(given, destroy=given.destroy)
    return tell(given, context, asked, out=given.out, is_detailed=given.detailed_exitcode)


def tell(
    given: argparse.Namespace, context: Context, asked: planning.Asked, *, out: Path | None, is_detailed: bool
) -> int:
    """Make the plan that was `asked` for, and show it."""
    terminal = context.terminal
    profiles = context.load(given.profiles, given)
    plan = context.workspace(given.profiles).plan(profiles, **asked, on_event=teller(terminal, as_json=given.json))
    terminal.data(jsonl.result(plan) if given.json else view.plan(plan, terminal.paint))
    wanted = [g.deployment for g in plan.goals if g.deployment is not None and plan.mode is Mode.NORMAL]
    sizes = [summary(d.name, d.budget) for d in wanted]
    if sizes and not given.json:
        terminal.data(terminal.paint.dim("\n".join(["", *sizes])))
    if plan.diagnostics:
        terminal.talk(f"\n{excerpt.diagnostics(plan.diagnostics, terminal.paint)}")
    if out is not None:
        plan.save(context.folder / out)
        terminal.talk(f"\n{_saved(out, plan)}")
    if plan.is_forbidden:
        return exits.REFUSED
    return exits.CHANGES if is_detailed and not plan.is_empty else exits.SUCCESS


def _saved(path: Path, plan: Plan) -> str:
    """Terraform's words; a plan that cannot be applied is saved for whoever reads it."""
    if plan.is_forbidden:
        return f"Saved the plan to: {path}. It cannot be applied: a check forbids it."
    command = shlex.join(["tpudeploy", "apply", str(path)])
    return f"Saved the plan to: {path}\n\nTo perform exactly these actions, run:\n    {command}"
