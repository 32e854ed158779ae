"""Run `compare --ab`: deploy two values of one flag in turns on the existing slice, and compare them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tpudeploy.cli import accuracy, options, sweep_options
from tpudeploy.cli.context import Context
from tpudeploy.cli.error_report import interrupted, report_error
from tpudeploy.cli.interrupts import stopping_gracefully
from tpudeploy.domain.errors import Interrupted, TpudeployError, UsageError

if TYPE_CHECKING:
    from tpudeploy.ab_test.experiment import Experiment
    from tpudeploy.ab_test.turns import Proposal
    from tpudeploy.accuracy.sheet import Sheet
    from tpudeploy.config.profile import Profile
    from tpudeploy.domain import events
    from tpudeploy.domain.benchmark import Side
    from tpudeploy.operations.ab_test import AbTests, Arms, AskQuestions
    from tpudeploy.operations.accuracy import AccuracyTests

# Few cells: each costs its window in every repeat.
GRID = sweep_options.Grid(streams=(1, 64), contexts=(1024,), outputs=(128,))
_REPEATS = 3
# Options that a resumed A/B has already, and those that need an A/B.
_OF_THE_BEGINNING = (
    *("ab", "repeats", "concurrency", "context", "output", "window", "driver", "tokenizer"),
    *("accuracy", "questions", "no_accuracy"),
)
_OF_THE_AB = (*_OF_THE_BEGINNING, "duration", "max_cost", "auto_approve", "resume")
_STOPPED = "Interrupted: the complete measurements are kept."
_BACK = "Restoring {name} to its profile. Ctrl-C leaves it as it is."
_NOT_BACK = "{name} does not match its profile yet: `tpudeploy plan` shows the rest, `tpudeploy apply` does it."


def arguments(parser: argparse.ArgumentParser) -> None:
    options.option(
        parser,
        "ab",
        "With a profile: deploy these two values of one flag in turns, and compare them.",
        metavar="PATH=A,B",
    )
    options.option(
        parser,
        "repeats",
        f"With --ab: measure B this many times, and A once more (default {_REPEATS}).",
        metavar="N",
        type=options.count,
    )
    sweep_options.grid(parser, GRID)
    options.option(
        parser,
        "duration",
        "Start no further repeat after TIME, restarts included, e.g. 2h.",
        metavar="TIME",
        type=options.seconds,
    )
    sweep_options.max_cost(parser, "Start no further repeat once the slice has cost this much.")
    sweep_options.client(parser)
    options.option(
        parser,
        "accuracy",
        "Also compare answers: a JSONL file, `arithmetic` or `lm_eval:TASK` (default for a risky flag: arithmetic).",
        metavar="QUESTIONS",
    )
    options.option(
        parser, "questions", "Ask only the first N questions (default: all).", type=options.count, metavar="N"
    )
    options.flag(parser, "no-accuracy", "Ask no questions, even if the flag can change answers.")
    options.option(parser, "resume", "Continue an A/B: measure only the remaining repeats.", metavar="ID")
    options.flag(parser, "auto-approve", "Skip the approval prompt.")
    options.overlays(parser)
    options.lock_timeout(parser)


def is_requested(args: argparse.Namespace) -> bool:
    return args.ab is not None or args.resume is not None


def is_id(text: str) -> bool:
    from tpudeploy.adapters.experiments import PREFIX

    return text.startswith(PREFIX)


def check(args: argparse.Namespace) -> None:
    """Raise `errors.UsageError` for an option that needs an A/B."""
    for option in _options_on_command_line(args, _OF_THE_AB):
        raise UsageError(f"{option} needs --ab.", hint="Try --ab PATH=A,B and a profile.")


def _options_on_command_line(args: argparse.Namespace, names: Sequence[str]) -> Iterator[str]:
    """Yield those of these options that the command line has. The environment's values hold where they apply."""
    for name in names:
        if getattr(args, name) and not options.environment_value(name.replace("_", "-")):
            yield f"--{name.replace('_', '-')}"


def run(args: argparse.Namespace, context: Context) -> int:
    from tpudeploy.ab_test import view
    from tpudeploy.operations.ab_test import AbTests

    if len(args.runs) != 1:
        raise UsageError(
            "An A/B takes exactly one profile.", hint="tpudeploy compare PROFILE --ab serving.padding_gap=0,512"
        )
    tests = AbTests(context.workspace(args.runs, lock_timeout=args.lock_timeout))
    experiment, arms = _experiment(args, context, tests)
    proposal = tests.propose(experiment, arms)
    if not proposal.turns:
        return _show_result(args, context, tests, experiment)
    sweep_options.check_price(args, proposal.usd_per_hour)
    _approve(args, context, proposal)
    command = _Command(args, context, tests, arms)
    try:
        experiment = command.run(proposal)
    except (Exception, KeyboardInterrupt) as error:
        command.bring_back()
        if not isinstance(error, Interrupted):
            context.terminal.talk(view.how_to_continue(experiment, missing=len(tests.remaining_turns(experiment))))
        raise
    failure = command.bring_back()
    code = _show_result(args, context, tests, experiment)
    return code if failure is None else failure.exit_code


def show(args: argparse.Namespace, context: Context) -> int:
    """Show the result of an earlier A/B, from its runs alone."""
    from tpudeploy.operations.ab_test import AbTests

    tests = AbTests(context.workspace())
    return _show_result(args, context, tests, _find(args, tests, args.runs[0]))


def _find(args: argparse.Namespace, tests: AbTests, id_: str) -> Experiment:
    """Return a stored experiment. Raise `errors.UsageError` for another measure than it began with."""
    experiment = tests.experiments.find(id_)
    if args.by is not None and args.by != experiment.by:
        raise UsageError(
            f"{experiment.id} is decided by {experiment.by}, which was chosen before it began; its result has the "
            "other measures.",
            hint="Leave --by out.",
        )
    return experiment


def _experiment(args: argparse.Namespace, context: Context, tests: AbTests) -> tuple[Experiment, Arms]:
    """Return a new experiment, or the one to resume, and its arms."""
    from tpudeploy.ab_test.arms import Flag, parsed
    from tpudeploy.domain.benchmark import Driver, Sweep
    from tpudeploy.domain.comparison import Measure
    from tpudeploy.operations.ab import make_arms

    if args.resume is not None:
        for option in _options_on_command_line(args, _OF_THE_BEGINNING):
            raise UsageError(
                f"{option} cannot be changed when resuming.",
                hint=f"Omit {option}, or start a new A/B without --resume.",
            )
        experiment = _find(args, tests, args.resume)
        flag = Flag(path=experiment.path, values=(experiment.a.value, experiment.b.value))
        return experiment, make_arms(_profile(args, context), flag)
    arms = make_arms(_profile(args, context), parsed(args.ab))
    experiment = tests.experiment(
        arms,
        Sweep(points=sweep_options.points(args, GRID), window_seconds=args.window or sweep_options.WINDOW),
        repeats=_repeats(args),
        by=None if args.by is None else Measure(args.by),
        driver=Driver(args.driver or Driver.TPUDEPLOY),
        tokenizer=args.tokenizer or "",
        questions=_questions(args, context, arms.path),
        count=args.questions,
    )
    return experiment, arms


def _profile(args: argparse.Namespace, context: Context) -> Profile:
    (profile,) = context.load([args.runs[0]], args)
    return profile


def _questions(args: argparse.Namespace, context: Context, path: str) -> str:
    """Return the questions for both arms, or "". They are read now, so that an error in them comes first."""
    from tpudeploy.ab_test.arms import is_risky
    from tpudeploy.accuracy.questions import ARITHMETIC

    if args.no_accuracy and args.accuracy:
        raise UsageError("--accuracy and --no-accuracy cannot be used together.", hint="Leave one out.")
    source: str = args.accuracy or (ARITHMETIC if is_risky(path) and not args.no_accuracy else "")
    if not source and args.questions is not None:
        raise UsageError("--questions needs --accuracy.", hint="Try --accuracy arithmetic.")
    if source and not accuracy.is_lm_eval(source):
        accuracy.questions_of(source, args.questions, context)
    return source


def _repeats(args: argparse.Namespace) -> int:
    from tpudeploy.ab_test.turns import FEWEST

    repeats: int = args.repeats or _REPEATS
    if repeats < FEWEST:
        raise UsageError(
            f"{repeats} repeat cannot separate a difference from noise.",
            hint=f"Use --repeats {FEWEST} or more; more repeats detect smaller differences.",
        )
    return repeats


def _approve(args: argparse.Namespace, context: Context, proposal: Proposal) -> None:
    """Raise `errors.NotApproved`."""
    from tpudeploy.ab_test import view
    from tpudeploy.cli.approval import approve
    from tpudeploy.domain.excerpt import describe_diagnostics

    terminal = context.terminal
    terminal.data(view.proposal(proposal, terminal.paint))
    if proposal.diagnostics:
        terminal.talk(f"\n{describe_diagnostics(proposal.diagnostics, terminal.paint.styled)}")
    if not args.auto_approve:
        approve(context, "Do you want to perform these actions?", otherwise="Review the list, then pass -auto-approve.")


class _Command:
    """The part of an A/B that one command runs, after its approval."""

    def __init__(self, args: argparse.Namespace, context: Context, tests: AbTests, arms: Arms) -> None:
        self._args = args
        self._context = context
        self._tests = tests
        self._arms = arms
        self._rows = sweep_options.Rows(context.terminal)

    def run(self, proposal: Proposal) -> Experiment:
        """Run the remaining turns. Raise as `AbTests.run` does; `bring_back` follows then too."""
        from tpudeploy.domain.benchmark import Bounds
        from tpudeploy.operations.ab_test import Listener

        args, rows = self._args, self._rows
        listener = Listener(on_turn=self._turn, on_event=self._event, on_point=rows.begin_cell, on_cell=rows.end_cell)
        rows.talk("")
        rows.begin()
        try:
            with stopping_gracefully(self._tests.stop, rows.talk, message=_STOPPED, is_last=False):
                return self._tests.run(
                    proposal.experiment,
                    self._arms,
                    bounds=Bounds(seconds=args.duration, usd=args.max_cost),
                    usd_per_hour=proposal.usd_per_hour,
                    reset=args.auto_approve,
                    ask_questions=question_asker(proposal.experiment, self._context, self._tests.accuracy),
                    listener=listener,
                )
        finally:
            rows.clear()

    def bring_back(self) -> TpudeployError | None:
        """Restore the profile in a new workspace, because an interrupt has stopped the other. Report a failure."""
        from tpudeploy.domain import events
        from tpudeploy.operations.ab_test import AbTests

        args, context = self._args, self._context.unstopped()
        workspace = context.workspace(args.runs, lock_timeout=args.lock_timeout)
        name = self._arms.base.spec.name

        def show(event: events.Event) -> None:
            if isinstance(event, events.ChangeStarted):
                self._rows.talk("\n" + _BACK.format(name=name))
            self._event(event)

        try:
            with stopping_gracefully(workspace.stop, self._rows.talk):
                AbTests(workspace).bring_back(self._arms, reset=args.auto_approve, on_event=show)
        except (KeyboardInterrupt, TpudeployError) as error:
            self._rows.clear()
            failure = error if isinstance(error, TpudeployError) else interrupted()
            report_error(context.terminal, failure)
            self._rows.talk(_NOT_BACK.format(name=name))
            return failure
        return None

    def _turn(self, experiment: Experiment, place: int, side: Side) -> None:
        from tpudeploy.ab_test import view

        self._rows.talk("\n" + view.turn(experiment, place, side, self._context.terminal.paint))

    def _event(self, event: events.Event) -> None:
        """Keep the line of a restart's end, and of each problem; the next line replaces all others."""
        from tpudeploy.domain import events
        from tpudeploy.views.events import line

        lasting = (events.ChangeDone, events.ChangeFailed, events.Warned, events.LockWaiting)
        text = line(event, self._context.terminal.paint)
        if isinstance(event, lasting) or (isinstance(event, events.Verified) and event.broken):
            self._rows.talk(text)
        elif not isinstance(event, events.Outlook | events.LockHeld | events.ChangeLeft):  # as in views/repeats.py
            self._rows.passing(text)


def question_asker(experiment: Experiment, context: Context, tests: AccuracyTests) -> AskQuestions:
    """Return the function that asks an arm the questions of this experiment."""
    request = accuracy.QuestionRequest(source=experiment.questions, count=experiment.count)

    def ask(profile: Profile, before: Sheet | None) -> Sheet:
        server = tests.deployment(profile)
        return accuracy.ask(request, context, tests, server, at_once=server.at_once, before=before)

    return ask


def _show_result(args: argparse.Namespace, context: Context, tests: AbTests, experiment: Experiment) -> int:
    from tpudeploy.operations.ab import AbResult

    terminal = context.terminal
    result = AbResult(effects=tests.result(experiment), path=tests.experiments.path(experiment))
    if args.json:
        context.reply.set(result.to_dict())
    else:
        terminal.data("\n" + result.as_text(terminal.paint, terminal.width))
    return result.exit_code
