"""Print a plan on stdout, as text or as the document of the command, and its diagnostics on stderr."""

from __future__ import annotations

from tpudeploy.cli.context import Context
from tpudeploy.domain.plan import Mode, Plan
from tpudeploy.views import excerpt
from tpudeploy.views import plan as view
from tpudeploy.views.size import summary


def tell(plan: Plan, context: Context) -> None:
    terminal = context.terminal
    if terminal.as_json:
        context.reply.set(plan.to_dict(), on_one_line=True)
    else:
        terminal.data(view.plan(plan, terminal.paint))
        deployments = [g.deployment for g in plan.goals if g.deployment is not None and plan.mode is Mode.NORMAL]
        if deployments:
            terminal.data(terminal.paint.dim("\n".join(["", *(summary(d.name, d.budget) for d in deployments)])))
    if plan.diagnostics:
        terminal.talk(f"\n{excerpt.diagnostics(plan.diagnostics, terminal.paint)}")
