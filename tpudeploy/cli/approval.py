"""Show a plan, ask for approval and apply it: the steps that apply and destroy share."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from tpudeploy import feature_table
from tpudeploy.cli.context import Context
from tpudeploy.cli.error_report import report_error
from tpudeploy.cli.interrupts import stopping_gracefully
from tpudeploy.cli.progress import event_printing
from tpudeploy.cli.terminal import Terminal
from tpudeploy.domain import events, exits
from tpudeploy.domain.errors import ChangeNotAcknowledged, CheckFailed, NotApproved, TpudeployError
from tpudeploy.domain.excerpt import describe_diagnostics
from tpudeploy.domain.plan import Mode, Plan
from tpudeploy.domain.report import ReplicaEndpoint, ReplicaOutcome, RunReport
from tpudeploy.operations.declaration import Operation
from tpudeploy.views import jsonl
from tpudeploy.views import plan as view
from tpudeploy.views.first_request import first_request
from tpudeploy.views.status import summary
from tpudeploy.workspace import Workspace


def carry_out(
    args: argparse.Namespace,
    context: Context,
    workspace: Workspace,
    plan: Plan,
    row: Operation,
    *,
    wait: str = "serving",
    timeout: float | None = None,
    watch: bool = False,
    max_cost: float | None = None,
) -> int:
    """Apply a plan after approval and return the exit code.

    Raise `errors.NotApproved` without approval, `errors.CheckFailed` if a check forbids the plan, and
    `errors.StalePlan` if a saved plan no longer matches the state.
    """
    terminal = context.terminal
    is_new = not plan.source
    _show(args, context, plan)
    if plan.stopping_errors:
        raise _blocking_error(plan)
    if plan.needs_approval and is_new:
        approve(args, context, row)
    may_reset = args.auto_approve or not is_new

    def apply_part(part: Plan, *, reset: bool = True) -> RunReport:
        with interruptible(context, workspace, as_json=args.json) as emit:
            return workspace.apply(
                part, on_event=emit, wait=wait, timeout=timeout, watch=watch, reset=reset, max_cost=max_cost
            )

    report = apply_part(plan, reset=may_reset)
    if not may_reset and not args.json:
        report = _ask_for_resets(terminal, plan, report, apply_part)
    if args.json:
        terminal.document(jsonl.result(report))
    if report.failures or args.json:
        return _report_failures(context, report, as_json=args.json)
    if plan.mode is Mode.REFRESH_ONLY and plan.has_news:
        terminal.data(terminal.paint.green("\nDone! The state records the drift. No resource was changed."))
        return exits.SUCCESS
    code = _print_summary(context, plan, report)
    for error in report.not_in_effect:
        terminal.talk("")
        report_error(terminal, error)
    return code if report.error is None else report.error.exit_code


def _blocking_error(plan: Plan) -> TpudeployError:
    """Return the worst error of a plan. The messages of checks are already printed."""
    error = plan.worst_error
    return CheckFailed("A check forbids this plan.") if error is None or isinstance(error, CheckFailed) else error


def _report_failures(context: Context, report: RunReport, *, as_json: bool) -> int:
    """Print the errors of a run and return its exit code."""
    if report.error is None:
        return exits.SUCCESS
    context.terminal.talk("")
    for error in all_errors(report):
        report_error(context.terminal, error)
    _list_deployments(context, report, as_json=as_json)
    return report.error.exit_code


def _show(args: argparse.Namespace, context: Context, plan: Plan) -> None:
    """Print a plan. A saved plan was printed when it was made, so only its document is printed."""
    terminal, is_new = context.terminal, not plan.source
    if is_new or args.json:
        if args.json:
            terminal.document(jsonl.result(plan))
        else:
            terminal.data(view.plan(plan, terminal.paint, terminal.width))
    if plan.diagnostics and is_new:
        terminal.explain(f"\n{describe_diagnostics(plan.diagnostics, terminal.paint.styled)}\n")


# Seconds for which the events after an interrupt wait until the interrupt is printed.
_ANNOUNCEMENT = 1.0


@contextmanager
def interruptible(context: Context, workspace: Workspace, *, as_json: bool) -> Iterator[Callable[[events.Event], None]]:
    """Return a context with the `on_event` callback of a long run, which Ctrl-C stops gracefully."""
    stop_signal, announcement = threading.Event(), threading.Event()

    def stop() -> None:
        stop_signal.set()
        workspace.adapters.stop()

    with event_printing(
        context.terminal, context.clock, as_json=as_json, is_emulated=workspace.adapters.is_emulated
    ) as emit:

        def announce(message: str) -> None:
            try:
                emit(_interrupted(context, message))
            finally:
                announcement.set()

        def emit_in_order(event: events.Event) -> None:
            if stop_signal.is_set():
                announcement.wait(_ANNOUNCEMENT)
            emit(event)

        with stopping_gracefully(stop, announce):
            yield emit_in_order


def _interrupted(context: Context, message: str) -> events.Event:
    """Return the event of an interrupt. It has no address, because it is about the whole run."""
    return events.Warned(at=context.clock.now(), address="", message=message, hint="")


def approve(args: argparse.Namespace, context: Context, row: Operation) -> None:
    """Raise `errors.NotApproved` unless the person answers yes, or the command line has the option that skips this."""
    terminal, approval = context.terminal, row.approval
    if approval is None or getattr(args, approval.option.replace("-", "_")):
        return
    if not terminal.is_interactive:
        raise NotApproved("Approval needs an interactive terminal.", hint=approval.otherwise)
    terminal.data(f"\n{approval.question}\n  Only 'yes' will be accepted to approve.\n")
    if terminal.ask("  Enter a value: ") != "yes":
        raise NotApproved("Cancelled: nothing was changed.")
    terminal.data("")


def _print_summary(context: Context, plan: Plan, report: RunReport) -> int:
    terminal = context.terminal
    if not plan.is_empty or report.outcomes:
        paint = terminal.paint.green if report.error is None else terminal.paint.red
        terminal.data(paint(f"\n{report.summary}"))
        underway = [o.address for o in report.outcomes if o.underway]
        if underway:
            terminal.data(f"In progress: {', '.join(underway)}. The next `tpudeploy apply` continues.")
        _list_deployments(context, report)
    if report.endpoints:
        terminal.data("\nOutputs:\n")
        for endpoint in report.endpoints:
            terminal.data(f'{endpoint.address} endpoint = "{endpoint.url}"')
        _print_first_request(context, plan, report)
    return exits.SUCCESS


def _print_first_request(context: Context, plan: Plan, report: RunReport) -> None:
    """Print how to use the first endpoint: a line each for curl, the OpenAI SDK and the dashboard."""
    first = report.endpoints[0]
    deployment = next((goal.deployment for goal in plan.goals if goal.name == _deployment(first)), None)
    if deployment is None:
        return
    lines = [*first_request(deployment, first.url)]
    if "dashboard" in feature_table.COMMANDS:
        lines.append("tpudeploy dashboard")
    context.terminal.data("\nUse it:\n")
    context.terminal.verbatim("\n".join(lines))


def _list_deployments(context: Context, report: RunReport, *, as_json: bool = False) -> None:
    """Print the result of each deployment if there are several; a JSON document already contains it."""
    if len(report.deployments) > 1 and not as_json:
        context.terminal.data(summary(report, context.terminal.paint))


def all_errors(report: RunReport) -> Iterable[TpudeployError]:
    """Return each error of a report once."""
    return (*report.failures, *report.not_in_effect)


def _ask_for_resets(
    terminal: Terminal, plan: Plan, report: RunReport, apply_part: Callable[[Plan], RunReport]
) -> RunReport:
    """Ask whether nodes that did not acknowledge a change may be reset, and return the final report.

    After a yes, `apply_part` applies their part of the plan.
    """
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
    return _with_retry(report, retry, names)


def _with_retry(report: RunReport, retry: RunReport, names: Collection[str]) -> RunReport:
    """Return a report in which the deployments of these names have the outcomes and endpoints of the retry."""
    outcomes = (each for each in report.outcomes if _deployment(each) not in names)
    endpoints = (each for each in report.endpoints if _deployment(each) not in names)
    return replace(report, outcomes=(*outcomes, *retry.outcomes), endpoints=(*endpoints, *retry.endpoints))


def _deployment(each: ReplicaOutcome | ReplicaEndpoint) -> str:
    return each.address.partition("[")[0]
