"""`compare --ab`: one flag, two values, deployed in turns on the slice that is there, and held against each other."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tpudeploy.cli import documents, exits, options, sweeping
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import Interrupted, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tpudeploy.ab_test.proposal import Proposal
    from tpudeploy.domain.experiment import Experiment
    from tpudeploy.operations.ab_test import Arms, Experimenting

# Few cells: each costs its window in every repeat.
GRID = sweeping.Grid(streams=(1, 64), contexts=(1024,), outputs=(128,))
_REPEATS = 3
# What one that goes on has been told already; and what says nothing where there is none.
_OF_THE_BEGINNING = (
    *("ab", "repeats", "concurrency", "context", "output", "window", "driver", "tokenizer"),
    *("accuracy", "questions", "no_accuracy"),
)
_OF_THE_AB = (*_OF_THE_BEGINNING, "duration", "max_cost", "auto_approve", "resume")


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
    sweeping.grid(parser, GRID)
    options.option(
        parser,
        "duration",
        "Start no further repeat after TIME, restarts included, e.g. 2h.",
        metavar="TIME",
        type=options.seconds,
    )
    sweeping.max_cost(parser, "Start no further repeat once the slice has cost this much.")
    sweeping.client(parser)
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


def is_meant(given: argparse.Namespace) -> bool:
    return given.ab is not None or given.resume is not None


def is_id(text: str) -> bool:
    from tpudeploy.adapters.experiments import PREFIX

    return text.startswith(PREFIX)


def check(given: argparse.Namespace) -> None:
    """Raise `errors.UsageError` for what means nothing without an A/B."""
    for option in _written(given, _OF_THE_AB):
        raise UsageError(f"{option} goes with --ab.", hint="Try --ab PATH=A,B and a profile.")


def _written(given: argparse.Namespace, names: Sequence[str]) -> Iterator[str]:
    """Those of these options that stand on the command line; what the environment says is for whom it concerns."""
    for name in names:
        if getattr(given, name) and not options.environment_value(name.replace("_", "-")):
            yield f"--{name.replace('_', '-')}"


def run(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.cli.experiments import UnderWay
    from tpudeploy.operations.ab_test import Experimenting
    from tpudeploy.views import ab as view

    if len(given.runs) != 1:
        raise UsageError("An A/B is of one profile.", hint="tpudeploy compare PROFILE --ab serving.padding_gap=0,512")
    workspace = context.workspace(given.runs, lock_timeout=given.lock_timeout)
    experimenting = Experimenting(workspace)
    experiment, arms = _asked(given, context, experimenting)
    found = experimenting.propose(experiment, arms)
    if not found.turns:
        return _tell(given, context, experimenting, experiment)
    sweeping.check_price(given, found.usd_per_hour)
    _approve(given, context, found)
    under_way = UnderWay(given, context, experimenting, arms)
    try:
        done = under_way.carried_out(found)
    except (Exception, KeyboardInterrupt) as error:
        under_way.bring_back()
        if not isinstance(error, Interrupted):
            context.terminal.talk(view.goes_on(experiment, left=len(experimenting.left(experiment))))
        raise
    failed = under_way.bring_back()
    code = _tell(given, context, experimenting, done)
    return code if failed is None else failed.exit_code


def show(given: argparse.Namespace, context: Context) -> int:
    """One that was made before, by its runs alone."""
    from tpudeploy.operations.ab_test import Experimenting

    experimenting = Experimenting(context.workspace())
    return _tell(given, context, experimenting, _begun(given, experimenting, given.runs[0]))


def _begun(given: argparse.Namespace, experimenting: Experimenting, id_: str) -> Experiment:
    """Raise `errors.UsageError` where it is to be decided by another measure than was named before."""
    begun = experimenting.experiments.find(id_)
    if given.by is not None and given.by != begun.by:
        raise UsageError(
            f"{begun.id} is decided by {begun.by}, as was said before it began; its figures tell the rest.",
            hint="Leave --by out.",
        )
    return begun


def _asked(given: argparse.Namespace, context: Context, experimenting: Experimenting) -> tuple[Experiment, Arms]:
    """A new experiment, or the one that goes on; and its arms."""
    from tpudeploy.ab_test.arms import Written, parsed
    from tpudeploy.cli.experiments import loaded
    from tpudeploy.domain.benchmark import Driver, Sweep
    from tpudeploy.domain.comparison import Measure

    if given.resume is None:
        arms = loaded(context, given.runs[0], given, parsed(given.ab))
        sweep = Sweep(points=sweeping.points(given, GRID), window_seconds=given.window or sweeping.WINDOW)
        made = experimenting.experiment(
            arms,
            sweep,
            repeats=_repeats(given),
            by=None if given.by is None else Measure(given.by),
            driver=Driver(given.driver or Driver.TPUDEPLOY),
            tokenizer=given.tokenizer or "",
            questions=_questions(given, context, arms.path),
            count=given.questions,
        )
        return made, arms
    for option in _written(given, _OF_THE_BEGINNING):
        raise UsageError(
            f"{option} cannot be changed when resuming.",
            hint=f"Omit {option}, or start a new A/B without --resume.",
        )
    begun = _begun(given, experimenting, given.resume)
    return begun, loaded(context, given.runs[0], given, Written(path=begun.path, values=(begun.a.value, begun.b.value)))


def _questions(given: argparse.Namespace, context: Context, path: str) -> str:
    """What both arms are asked, "" for nothing; read now, so that nothing is wrong with it later."""
    from tpudeploy.ab_test.arms import is_risky
    from tpudeploy.accuracy.arithmetic import NAME
    from tpudeploy.cli.accuracy import is_lm_eval, questions_of

    if given.no_accuracy and given.accuracy:
        raise UsageError("--accuracy and --no-accuracy do not go together.", hint="Leave one out.")
    named: str = given.accuracy or (NAME if is_risky(path) and not given.no_accuracy else "")
    if not named and given.questions is not None:
        raise UsageError("--questions goes with --accuracy.", hint="Try --accuracy arithmetic.")
    if named and not is_lm_eval(named):
        questions_of(named, given.questions, context)
    return named


def _repeats(given: argparse.Namespace) -> int:
    from tpudeploy.ab_test.order import FEWEST

    repeats: int = given.repeats or _REPEATS
    if repeats < FEWEST:
        raise UsageError(
            f"{repeats} repeat tells no difference from noise.",
            hint=f"--repeats {FEWEST} is the fewest, more see more.",
        )
    return repeats


def _approve(given: argparse.Namespace, context: Context, found: Proposal) -> None:
    """Raise `errors.NotApproved`."""
    from tpudeploy.cli.approval import approve
    from tpudeploy.views import ab as view
    from tpudeploy.views import excerpt

    terminal = context.terminal
    terminal.data(view.proposal(found, terminal.paint))
    if found.diagnostics:
        terminal.talk(f"\n{excerpt.diagnostics(found.diagnostics, terminal.paint)}")
    if not given.auto_approve:
        approve(context, "Do you want to perform these actions?", otherwise="Review the list, then pass -auto-approve.")


def _tell(given: argparse.Namespace, context: Context, experimenting: Experimenting, done: Experiment) -> int:
    from tpudeploy.views import ab as view

    terminal, found = context.terminal, experimenting.result(done)
    if given.json:
        context.reply.set(documents.ab(found))
    else:
        kept = str(experimenting.experiments.path(done))
        terminal.data("\n" + view.result(found, terminal.paint, kept=kept, width=terminal.width))
    return exits.REFUSED if found.is_refused else exits.SUCCESS
