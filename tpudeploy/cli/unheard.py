"""Asking a person there and then whether a node that did not take over a change may be reset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tpudeploy.cli.terminal import Terminal
from tpudeploy.domain.errors import Unheard
from tpudeploy.domain.plan import Plan
from tpudeploy.domain.report import Outcome, Report


def ask_for_resets(terminal: Terminal, plan: Plan, report: Report, go_on: Callable[[Plan], Report]) -> Report:
    """`report`, or what came of it in the end: `go_on` applies the part of `plan` that waits for a yes."""
    unheard = [o for o in report.outcomes if isinstance(o.error, Unheard)]
    if not unheard or not terminal.is_interactive:
        return report
    terminal.data("")
    for each in unheard:
        terminal.data(str(each.error))
    where = ", ".join(o.address for o in unheard)
    terminal.data(f"\nDo you want to reset {where}? The machine reboots, and the chips stay.")
    terminal.data("  Only 'yes' will be accepted to approve.\n")
    if terminal.ask("  Enter a value: ") != "yes":
        return report
    terminal.data("")
    names = {_deployment(o) for o in unheard}
    came = go_on(replace(plan, goals=tuple(goal for goal in plan.goals if goal.name in names)))
    others = (o for o in report.outcomes if _deployment(o) not in names)
    return replace(report, outcomes=(*others, *came.outcomes), endpoints=(*report.endpoints, *came.endpoints))


def _deployment(outcome: Outcome) -> str:
    return outcome.address.partition("[")[0]
