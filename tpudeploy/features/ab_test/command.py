"""With a profile and --ab PATH=A,B, deploy two values of one flag in turns on the slice that serves, and compare them.

Both are measured, and compared with confidence intervals. The id of an A/B shows its result again.
"""

from __future__ import annotations

import argparse

from tpudeploy.cli import options
from tpudeploy.cli.approval import approve
from tpudeploy.cli.context import Context
from tpudeploy.cli.error_report import interrupted, report_error
from tpudeploy.cli.interrupts import stopping_gracefully
from tpudeploy.cli.operation_command import add_approval, add_options, option_values
from tpudeploy.domain import events
from tpudeploy.domain.errors import Interrupted, TpudeployError, UsageError
from tpudeploy.domain.excerpt import describe_diagnostics
from tpudeploy.features.ab_test import view
from tpudeploy.features.ab_test.experiment import Experiment
from tpudeploy.features.ab_test.operation import OPERATIONS, AbProposal, AbResult, find_experiment
from tpudeploy.features.ab_test.service import AbTests, Arms, Listener
from tpudeploy.features.ab_test.store import PREFIX
from tpudeploy.features.ab_test.turns import ExperimentPlan
from tpudeploy.features.benchmark.cell_rows import CellRows
from tpudeploy.features.benchmark.run import Bounds, Side
from tpudeploy.views.events import line
from tpudeploy.workspace import Workspace

_PROPOSE, _AB = OPERATIONS["ab_propose"], OPERATIONS["ab"]
_STOPPED = "Interrupted: the complete measurements are kept."
_BACK = "Restoring {name} to its profile. Ctrl-C leaves it as it is."
_NOT_BACK = "{name} does not match its profile yet: `tpudeploy plan` shows the rest, `tpudeploy apply` does it."


def arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser, _AB)
    add_approval(parser, _AB)
    options.overlays(parser)
    options.lock_timeout(parser)


def run(args: argparse.Namespace, context: Context) -> int | None:
    if _is_requested(args):
        return _run(args, context)
    _check(args)
    if len(args.runs) == 1 and _is_id(args.runs[0]):
        return _show(args, context)
    return None


def _is_requested(args: argparse.Namespace) -> bool:
    return args.flag is not None or args.resume is not None


def _is_id(text: str) -> bool:
    return text.startswith(PREFIX)


def _check(args: argparse.Namespace) -> None:
    """Raise `errors.UsageError` for an option that needs an A/B. The environment's values hold where they apply."""
    values = {**option_values(_AB, args), "auto_approve": args.auto_approve}
    names = {argument.name: argument.option for argument in _AB.arguments} | {"auto_approve": "auto-approve"}
    for name, value in values.items():
        if value and not options.environment_value(names[name]):
            raise UsageError(f"--{names[name]} needs --ab.", hint="Try --ab PATH=A,B and a profile.")


def _run(args: argparse.Namespace, context: Context) -> int:
    if len(args.runs) != 1:
        raise UsageError(
            "An A/B takes exactly one profile.", hint="tpudeploy compare PROFILE --ab serving.padding_gap=0,512"
        )
    workspace = context.workspace(args.runs, lock_timeout=args.lock_timeout)
    proposed, tests = _propose(args, context, workspace), AbTests(workspace)
    proposal, experiment = proposed.proposal, proposed.proposal.experiment
    if not proposal.turns:
        return _show_result(context, tests, experiment)
    bounds = proposed.bounds(args.duration_seconds, args.max_cost)
    _approve(args, context, proposed)
    command = _Command(args, context, tests, proposed.arms)
    try:
        with stopping_gracefully(workspace.adapters.stop, command.rows.talk, message=_STOPPED, is_last=False):
            experiment = command.run(proposal, bounds)
    except (Exception, KeyboardInterrupt) as error:
        command.bring_back()
        if not isinstance(error, Interrupted):
            context.terminal.talk(view.how_to_continue(experiment, missing=len(tests.remaining_turns(experiment))))
        raise
    failure = command.bring_back()
    code = _show_result(context, tests, experiment)
    return code if failure is None else failure.exit_code


def _show(args: argparse.Namespace, context: Context) -> int:
    """Show the result of an earlier A/B, from its runs alone."""
    tests = AbTests(context.workspace())
    return _show_result(context, tests, find_experiment(tests, args.runs[0], by=args.by))


def _propose(args: argparse.Namespace, context: Context, workspace: Workspace) -> AbProposal:
    values = option_values(_PROPOSE, args)
    if args.resume is not None:
        values = options.without_environment(_PROPOSE.arguments, values)
    (profile,) = context.load([args.runs[0]], args)
    return workspace.ab_propose(profile, **_PROPOSE.grouped(values), by=args.by, folder=context.folder)


def _approve(args: argparse.Namespace, context: Context, proposed: AbProposal) -> None:
    """Raise `errors.NotApproved`."""
    terminal, diagnostics = context.terminal, proposed.proposal.diagnostics
    terminal.data(proposed.as_text(terminal.paint))
    if diagnostics:
        terminal.explain(f"\n{describe_diagnostics(diagnostics, terminal.paint.styled)}")
    approve(args, context, _AB)


class _Command:
    """The part of an A/B that one command runs, after its approval."""

    def __init__(self, args: argparse.Namespace, context: Context, tests: AbTests, arms: Arms) -> None:
        self._args = args
        self._context = context
        self._tests = tests
        self._arms = arms
        self.rows = CellRows(context.terminal)

    def run(self, proposal: ExperimentPlan, bounds: Bounds) -> Experiment:
        """Run the remaining turns. Raise as `AbTests.run` does; `bring_back` follows then too."""
        rows = self.rows
        listener = Listener(
            on_turn=self._turn,
            on_event=self._event,
            on_point=rows.begin_cell,
            on_cell=rows.end_cell,
            on_message=self._context.terminal.talk,
        )
        rows.talk("")
        rows.begin()
        try:
            return self._tests.run(
                proposal.experiment,
                self._arms,
                bounds=bounds,
                usd_per_hour=proposal.usd_per_hour,
                reset=self._args.auto_approve,
                folder=self._context.folder,
                listener=listener,
            )
        finally:
            rows.clear()

    def bring_back(self) -> TpudeployError | None:
        """Restore the profile in a new workspace, because an interrupt has stopped the other. Report a failure."""
        args, context = self._args, self._context.unstopped()
        workspace = context.workspace(args.runs, lock_timeout=args.lock_timeout)
        name = self._arms.base.name

        def show(event: events.Event) -> None:
            if isinstance(event, events.ChangeStarted):
                self.rows.talk("\n" + _BACK.format(name=name))
            self._event(event)

        try:
            with stopping_gracefully(workspace.adapters.stop, self.rows.talk):
                AbTests(workspace).bring_back(self._arms, reset=args.auto_approve, on_event=show)
        except (KeyboardInterrupt, TpudeployError) as error:
            self.rows.clear()
            failure = error if isinstance(error, TpudeployError) else interrupted()
            report_error(context.terminal, failure)
            self.rows.talk(_NOT_BACK.format(name=name))
            return failure
        return None

    def _turn(self, experiment: Experiment, place: int, side: Side) -> None:
        self.rows.talk("\n" + view.turn(experiment, place, side, self._context.terminal.paint))

    def _event(self, event: events.Event) -> None:
        """Keep the line of a restart's end, and of each problem; the next line replaces all others."""
        lasting = (events.ChangeDone, events.ChangeFailed, events.Warned, events.LockWaiting)
        text = line(event, self._context.terminal.paint)
        if isinstance(event, lasting) or (isinstance(event, events.Verified) and event.broken):
            self.rows.talk(text)
        elif not isinstance(event, events.Outlook | events.LockHeld | events.ChangeLeft):  # as in views/events.py
            self.rows.passing(text)


def _show_result(context: Context, tests: AbTests, experiment: Experiment) -> int:
    terminal = context.terminal
    result = AbResult(effects=tests.result(experiment), path=tests.experiments.path(experiment))
    if terminal.as_json:
        context.reply.set(result.to_dict())
    else:
        terminal.data("\n" + result.as_text(terminal.paint, terminal.width))
    return result.exit_code
