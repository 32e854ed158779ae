"""Ask whether a node that did not acknowledge a change may be reset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tpudeploy.cli.terminal import Terminal
from tpudeploy.domain.errors import ChangeNotAcknowledged
from tpudeploy.domain.plan import Plan
from tpudeploy.domain.report import Outcome, Report


def ask_for_resets(terminal: Terminal, plan: Plan, report: Report, apply_part: Callable[[Plan], Report]) -> Report:
    """Return the final report: after a yes, `apply_part` applies the part of `plan` that waits for a reset."""
    unacknowledged = [o for o in report.outcomes if isinstance(o.error, ChangeNotAcknowledged)]
    if not unacknowledged or not terminal.is_interactive:
        return report
    terminal.data("")
    for outcome in unacknowledged:
        terminal.data(outcome.error.message if outcome.error else "")
    where = ", ".join(o.address for o in unacknowledged)
    terminal.data(f"\nDo you want to reset {where}? The machine reboots, and the chips stay.")
    terminal.data("  Only 'yes' will be accepted to approve.\n")
    if terminal.ask("  Enter a value: ") != "yes":
        return report
    terminal.data("")
    names = {_deployment(o) for o in unacknowledged}
    retry = apply_part(replace(plan, goals=tuple(goal for goal in plan.goals if goal.name in names)))
    others = (o for o in report.outcomes if _deployment(o) not in names)
    return replace(report, outcomes=(*others, *retry.outcomes), endpoints=(*report.endpoints, *retry.endpoints))


def _deployment(outcome: Outcome) -> str:
    return outcome.address.partition("[")[0]
