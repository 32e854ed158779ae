"""`compare --ab`: one flag, two values, deployed in turns on the slice that is there, and held against each other."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tpudeploy.cli import documents, exits, options, sweeping
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import Interrupted, TpudeployError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudeploy.config.profile import Profile
    from tpudeploy.core.ab.arms import Written
    from tpudeploy.core.ab.proposal import Proposal
    from tpudeploy.core.accuracy.sheet import Sheet
    from tpudeploy.domain.events import Event
    from tpudeploy.domain.experiment import Experiment
    from tpudeploy.domain.side import Side
    from tpudeploy.experimenting import Arms, Experimenting, Listener

# Few cells: each costs its window in every repeat.
GRID = sweeping.Grid(streams=(1, 64), contexts=(1024,), outputs=(128,))
_REPEATS = 3
_OF_THE_AB = (
    *("ab", "repeats", "concurrency", "context", "output", "window", "driver", "tokenizer"),
    *("accuracy", "questions", "no_accuracy", "duration", "max_cost", "auto_approve", "resume"),
)
_OF_THE_BEGINNING = _OF_THE_AB[:11]
STOPPED = "Interrupted: what was measured is kept."
BACK = "Bringing {name} back to what its profile says. Ctrl-C leaves it as it is."
LEFT = "{name} is not yet what its profile says: `tpudeploy plan` shows what is left, `tpudeploy apply` does it."


def arguments(parser: argparse.ArgumentParser) -> None:
    options.option(parser, "ab", "with a profile: two values of one flag, deployed in turns", metavar="PATH=A,B")
    options.option(
        parser,
        "repeats",
        f"with --ab: measure B so often, and A once more (default {_REPEATS})",
        metavar="N",
        type=options.count,
    )
    sweeping.grid(parser, GRID)
    options.option(
        parser,
        "duration",
        "begin nothing more after so long, restarts included, e.g. 2h",
        metavar="TIME",
        type=options.seconds,
    )
    sweeping.max_cost(parser, "begin nothing more when the slice has cost so much meanwhile")
    sweeping.client(parser)
    options.option(
        parser,
        "accuracy",
        "ask both arms questions too: JSONL, `arithmetic` or `lm_eval:TASK` (of a risky flag: arithmetic)",
        metavar="QUESTIONS",
    )
    options.option(parser, "questions", "so many of them (default: all)", type=options.count, metavar="N")
    options.flag(parser, "no-accuracy", "do not ask, however risky the flag")
    options.option(parser, "resume", "go on with an A/B: only the repeats that are left", metavar="ID")
    options.flag(parser, "auto-approve", "do not ask")
    options.overlays(parser)
    options.lock_timeout(parser)


def is_meant(given: argparse.Namespace) -> bool:
    return given.ab is not None or given.resume is not None


def is_id(text: str) -> bool:
    from tpudeploy.adapters.experiments import PREFIX

    return text.startswith(PREFIX)


def check(given: argparse.Namespace) -> None:
    """Raise `errors.UsageError` for what means nothing without an A/B."""
    for name in _OF_THE_AB:
        written = options.written(name.replace("_", "-"))
        if getattr(given, name) and not written:
            raise UsageError(f"--{name.replace('_', '-')} goes with --ab.", hint="Try --ab PATH=A,B and a profile.")


def run(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.experimenting import Experimenting
    from tpudeploy.views import ab as view

    if len(given.runs) != 1:
        raise UsageError("An A/B is of one profile.", hint="tpudeploy compare PROFILE --ab serving.padding_gap=0,512")
    workspace = context.workspace(given.runs, lock_timeout=given.lock_timeout)
    experimenting = Experimenting(workspace)
    experiment, arms = _asked(given, context, experimenting)
    found = experimenting.propose(experiment, arms)
    sweeping.check_price(given, found.usd_per_hour)
    _approve(given, context, found)
    try:
        done = _carried_out(given, context, experimenting, found, arms)
    except (KeyboardInterrupt, TpudeployError) as error:
        _bring_back(given, context.unstopped(), arms)
        if not isinstance(error, Interrupted):
            context.terminal.talk(view.goes_on(experiment, left=len(experimenting.left(experiment))))
        raise
    failed = _bring_back(given, context.unstopped(), arms)
    code = _tell(given, context, experimenting, done)
    return code if failed is None else failed.exit_code


def show(given: argparse.Namespace, context: Context) -> int:
    """One that was made before, by its runs alone."""
    from tpudeploy.experimenting import Experimenting

    experimenting = Experimenting(context.workspace())
    return _tell(given, context, experimenting, experimenting.experiments.find(given.runs[0]))


def _asked(given: argparse.Namespace, context: Context, experimenting: Experimenting) -> tuple[Experiment, Arms]:
    """A new experiment, or the one that goes on; and its arms."""
    from tpudeploy.core.ab.arms import Written, parsed
    from tpudeploy.domain.benchmark import Driver, Sweep
    from tpudeploy.domain.comparison import Measure

    if given.resume is None:
        arms = _arms(given, context, parsed(given.ab))
        sweep = Sweep(points=sweeping.points(given, GRID), window_seconds=given.window or sweeping.WINDOW)
        made = experimenting.experiment(
            arms,
            sweep,
            repeats=_repeats(given),
            by=Measure(given.by),
            driver=Driver(given.driver or Driver.TPUDEPLOY),
            tokenizer=given.tokenizer or "",
            questions=_questions(given, context, arms.path),
            count=given.questions,
        )
        return made, arms
    for name in _OF_THE_BEGINNING:
        if getattr(given, name):
            raise UsageError(
                f"An A/B that goes on is what it began as; --{name.replace('_', '-')} would make it another.",
                hint="Leave it out, or leave out --resume and begin anew.",
            )
    begun = experimenting.experiments.find(given.resume)
    return begun, _arms(given, context, Written(path=begun.path, values=(begun.a.value, begun.b.value)))


def _questions(given: argparse.Namespace, context: Context, path: str) -> str:
    """What both arms are asked, "" for nothing; read now, so that nothing is wrong with it later."""
    from tpudeploy.cli.accuracy import is_lm_eval, questions_of
    from tpudeploy.core.ab.arms import is_risky
    from tpudeploy.core.accuracy.arithmetic import NAME

    if given.no_accuracy and given.accuracy:
        raise UsageError("--accuracy and --no-accuracy do not go together.", hint="Leave one out.")
    named: str = given.accuracy or (NAME if is_risky(path) and not given.no_accuracy else "")
    if not named and given.questions is not None:
        raise UsageError("--questions goes with --accuracy.", hint="Try --accuracy arithmetic.")
    if named and not is_lm_eval(named):
        questions_of(named, given.questions, context)
    return named


def _repeats(given: argparse.Namespace) -> int:
    from tpudeploy.core.ab.order import FEWEST

    repeats: int = given.repeats or _REPEATS
    if repeats < FEWEST:
        raise UsageError(
            f"{repeats} repeat tells no difference from noise.",
            hint=f"--repeats {FEWEST} is the fewest, more see more.",
        )
    return repeats


def _arms(given: argparse.Namespace, context: Context, written: Written) -> Arms:
    """All three loaded: whatever is wrong with one is told before anything is done."""
    from tpudeploy.experimenting import Arms

    (path,) = given.runs
    (base,) = context.load([path], given)
    a, b = (
        context.read(path, argparse.Namespace(overlays=given.overlays, sets=[*given.sets, f"{written.path}={value}"]))
        for value in written.values
    )
    return Arms(base=base, a=a, b=b, path=written.path, values=written.values)


def _approve(given: argparse.Namespace, context: Context, found: Proposal) -> None:
    """Raise `errors.NotApproved`."""
    from tpudeploy.cli.approval import approve
    from tpudeploy.views import ab as view
    from tpudeploy.views import excerpt

    terminal = context.terminal
    (terminal.talk if given.json else terminal.data)(view.proposal(found, terminal.paint))
    if found.diagnostics:
        terminal.talk(f"\n{excerpt.diagnostics(found.diagnostics, terminal.paint)}")
    if not given.auto_approve:
        approve(
            context, "Do you want to perform these actions?", otherwise="Pass -auto-approve, once you have read it."
        )


def _carried_out(
    given: argparse.Namespace, context: Context, experimenting: Experimenting, found: Proposal, arms: Arms
) -> Experiment:
    from tpudeploy.cli.interrupts import ending_well
    from tpudeploy.domain.benchmark import Bounds

    rows, of = sweeping.Rows(context.terminal), found.experiment
    rows.begin()
    with ending_well(experimenting.stop, rows.talk, said=STOPPED, is_last=False):
        return experimenting.run(
            of,
            arms,
            bounds=Bounds(seconds=given.duration, usd=given.max_cost),
            usd_per_hour=found.usd_per_hour,
            reset=given.auto_approve,
            examine=_examiner(of, context, experimenting),
            hear=_listener(context, rows),
        )


def _examiner(
    of: Experiment, context: Context, experimenting: Experimenting
) -> Callable[[Profile, Sheet | None], Sheet]:
    from tpudeploy.cli import accuracy

    def examine(profile: Profile, before: Sheet | None) -> Sheet:
        server = experimenting.examining.deployment(profile)
        asked = accuracy.Asked(named=of.questions, count=of.count)
        return accuracy.ask(asked, context, experimenting.examining, server, at_once=server.at_once, before=before)

    return examine


def _listener(context: Context, rows: sweeping.Rows) -> Listener:
    from tpudeploy.experimenting import Listener
    from tpudeploy.views import ab as view

    def turn(of: Experiment, place: int, side: Side) -> None:
        rows.talk("\n" + view.turn(of, place, side, context.terminal.paint))

    return Listener(on_turn=turn, on_event=_heard(context, rows), on_point=rows.under_way, on_cell=rows.done)


def _heard(context: Context, rows: sweeping.Rows) -> Callable[[Event], None]:
    """Of each restart its end stays, and whatever is wrong; the rest passes by: there are many."""
    from tpudeploy.domain import events
    from tpudeploy.views.events import line

    lasting = (events.ChangeDone, events.ChangeFailed, events.Warned, events.LockWaiting)

    def hear(event: Event) -> None:
        is_broken = isinstance(event, events.Verified) and bool(event.broken)
        if isinstance(event, lasting) or is_broken:
            rows.talk(line(event, context.terminal.paint))
        elif not isinstance(event, events.Outlook):
            rows.passing(line(event, context.terminal.paint))

    return hear


def _bring_back(given: argparse.Namespace, context: Context, arms: Arms) -> TpudeployError | None:
    """With a workspace of its own: an interrupt has stopped the other. What was wrong is told, and not raised."""
    from tpudeploy.cli.boundary import interrupted, report
    from tpudeploy.cli.interrupts import ending_well
    from tpudeploy.domain.events import ChangeStarted
    from tpudeploy.experimenting import Experimenting

    workspace, rows = context.workspace(given.runs, lock_timeout=given.lock_timeout), sweeping.Rows(context.terminal)
    name, hear = arms.base.spec.name, _heard(context, rows)

    def tell(event: Event) -> None:
        if isinstance(event, ChangeStarted):
            rows.talk("\n" + BACK.format(name=name))
        hear(event)

    try:
        with ending_well(workspace.stop, rows.talk):
            Experimenting(workspace).bring_back(arms, reset=given.auto_approve, on_event=tell)
    except (KeyboardInterrupt, TpudeployError) as error:
        failed = error if isinstance(error, TpudeployError) else interrupted()
        report(context.terminal, failed)
        rows.talk(LEFT.format(name=name))
        return failed
    return None


def _tell(given: argparse.Namespace, context: Context, experimenting: Experimenting, done: Experiment) -> int:
    from tpudeploy.views import ab as view

    terminal, found = context.terminal, experimenting.result(done)
    if given.json:
        terminal.data(documents.text(documents.ab(found)))
    else:
        kept = str(experimenting.experiments.path(done))
        terminal.data("\n" + view.result(found, terminal.paint, kept=kept))
    return exits.REFUSED if found.is_refused else exits.SUCCESS
