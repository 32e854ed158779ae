"""Showing a plan, asking for a yes, carrying it out: what apply and destroy share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from tpudeploy.cli import exits
from tpudeploy.cli.boundary import report as tell_error
from tpudeploy.cli.context import Context
from tpudeploy.cli.interrupts import ending_well
from tpudeploy.cli.progress import telling
from tpudeploy.cli.unheard import ask_for_resets
from tpudeploy.domain import events
from tpudeploy.domain.errors import CheckFailed, NotApproved, TpudeployError
from tpudeploy.domain.plan import Action, Mode, Plan
from tpudeploy.domain.report import Report
from tpudeploy.views import excerpt, jsonl
from tpudeploy.views import plan as view
from tpudeploy.views.summary import summary
from tpudeploy.workspace import Workspace


def carry_out(
    given: argparse.Namespace,
    context: Context,
    workspace: Workspace,
    plan: Plan,
    *,
    question: str,
    wait: str = "serving",
    timeout: float | None = None,
    watch: bool = False,
) -> int:
    """Raise `errors.NotApproved`, `errors.CheckFailed` or `errors.StalePlan`; else the exit code."""
    terminal = context.terminal
    is_new = not plan.source
    _show(given, context, plan)
    if plan.stopping_errors:
        raise _stopping(plan)
    if plan.needs_approval and is_new and not given.auto_approve:
        approve(context, question, otherwise="Pass -auto-approve, once you have read the plan.")
    may_reset = given.auto_approve or not is_new

    def go_on(part: Plan, *, reset: bool = True) -> Report:
        with under_way(context, workspace, as_json=given.json) as emit:
            return workspace.apply(part, on_event=emit, wait=wait, timeout=timeout, watch=watch, reset=reset)

    report = go_on(plan, reset=may_reset)
    if not may_reset and not given.json:
        report = ask_for_resets(terminal, plan, report, go_on)
    if given.json:
        terminal.document(jsonl.result(report))
    if report.failures or given.json:
        return _end(context, report, as_json=given.json)
    if plan.mode is Mode.REFRESH_ONLY and plan.has_news:
        terminal.data(terminal.paint.green("\nDone! What was found is written down. Nothing was touched."))
        return exits.SUCCESS
    code = _sum_up(context, plan, report)
    for error in report.not_in_effect:
        terminal.talk("")
        tell_error(terminal, error)
    return code if report.error is None else report.error.exit_code


def _stopping(plan: Plan) -> TpudeployError:
    """Return the worst of what stops a plan; a check has said above what it forbids."""
    found = plan.worst_error
    return CheckFailed("A check forbids this plan.") if found is None or isinstance(found, CheckFailed) else found


def _end(context: Context, report: Report, *, as_json: bool) -> int:
    """Of what failed, or was told as a document: errors alone are left to tell."""
    if report.error is None:
        return exits.SUCCESS
    context.terminal.talk("")
    for error in distinct(report):
        tell_error(context.terminal, error)
    _list(context, report, as_json=as_json)
    return report.error.exit_code


def _show(given: argparse.Namespace, context: Context, plan: Plan) -> None:
    """A saved plan was shown when it was made, and approved by whoever hands it in."""
    terminal, is_new = context.terminal, not plan.source
    if is_new or given.json:
        if given.json:
            terminal.document(jsonl.result(plan))
        else:
            terminal.data(view.plan(plan, terminal.paint))
    if plan.diagnostics and is_new:
        terminal.talk(f"\n{excerpt.diagnostics(plan.diagnostics, terminal.paint)}\n")


@contextmanager
def under_way(context: Context, workspace: Workspace, *, as_json: bool) -> Iterator[Callable[[events.Event], None]]:
    """A callback for the `on_event` of a run that may take long, and that Ctrl-C ends in good order."""
    with (
        telling(context.terminal, context.clock, as_json=as_json) as emit,
        ending_well(workspace.stop, lambda said: emit(_interrupted(context, said))),
    ):
        yield emit


def _interrupted(context: Context, said: str) -> events.Event:
    """Of the whole run, and so without an address."""
    return events.Warned(at=context.clock.now(), address="", message=said, hint="")


def approve(context: Context, question: str, *, otherwise: str) -> None:
    """Raise `errors.NotApproved` for any answer but yes. `otherwise` says what to do without a terminal."""
    terminal = context.terminal
    if not terminal.is_interactive:
        raise NotApproved("There is no terminal to ask for approval.", hint=otherwise)
    terminal.data(f"\n{question}\n  Only 'yes' will be accepted to approve.\n")
    if terminal.ask("  Enter a value: ") != "yes":
        raise NotApproved("Cancelled: nothing was changed.")
    terminal.data("")


def _sum_up(context: Context, plan: Plan, report: Report) -> int:
    if plan.is_empty and not report.outcomes:
        return exits.SUCCESS
    terminal = context.terminal
    terminal.data(terminal.paint.green(f"\n{done(report)}"))
    underway = [o.address for o in report.outcomes if o.underway]
    if underway:
        terminal.data(f"Under way: {', '.join(underway)}. The next `tpudeploy apply` goes on.")
    _list(context, report)
    if report.endpoints:
        terminal.data("\nOutputs:\n")
        for endpoint in report.endpoints:
            terminal.data(f'{endpoint.address} endpoint = "{endpoint.url}"')
    return exits.SUCCESS


def done(report: Report) -> str:
    added = report.count(Action.CREATE, Action.REPLACE)
    gone = report.count(Action.DESTROY, Action.REPLACE)
    restarted = report.count(Action.RESTART)
    also = f", {restarted} restarted" if restarted else ""
    return f"Done! Resources: {added} added, {report.count(Action.UPDATE)} changed{also}, {gone} destroyed."


def _list(context: Context, report: Report, *, as_json: bool = False) -> None:
    """Of several deployments, what came of each; a document has it already."""
    if len(report.deployments) > 1 and not as_json:
        context.terminal.data(summary(report, context.terminal.paint))


def distinct(report: Report) -> Iterable[TpudeployError]:
    """Each of its errors once."""
    return (*report.failures, *report.not_in_effect)
