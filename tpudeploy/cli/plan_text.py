"""A plan on stdout, and on stderr what is to be said of it."""

from __future__ import annotations

from tpudeploy.cli.terminal import Terminal
from tpudeploy.domain.plan import Mode, Plan
from tpudeploy.views import excerpt, jsonl
from tpudeploy.views import plan as view
from tpudeploy.views.size import summary


def tell(plan: Plan, terminal: Terminal, *, as_json: bool) -> None:
    terminal.data(jsonl.result(plan) if as_json else view.plan(plan, terminal.paint))
    wanted = [g.deployment for g in plan.goals if g.deployment is not None and plan.mode is Mode.NORMAL]
    if wanted and not as_json:
        terminal.data(terminal.paint.dim("\n".join(["", *(summary(d.name, d.budget) for d in wanted)])))
    if plan.diagnostics:
        terminal.talk(f"\n{excerpt.diagnostics(plan.diagnostics, terminal.paint)}")
