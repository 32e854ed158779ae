"""An A/B under way: its turns told, ended in good order, and the deployment brought back to its profile afterwards."""

from __future__ import annotations

import argparse

from tpudeploy.ab_test.arms import Written
from tpudeploy.ab_test.proposal import Proposal
from tpudeploy.accuracy.sheet import Sheet
from tpudeploy.cli import accuracy, sweeping
from tpudeploy.cli.boundary import interrupted, report
from tpudeploy.cli.context import Context
from tpudeploy.cli.interrupts import stopping_gracefully
from tpudeploy.config.profile import Profile
from tpudeploy.domain import events
from tpudeploy.domain.benchmark import Bounds
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.experiment import Experiment
from tpudeploy.domain.side import Side
from tpudeploy.operations.ab_test import Arms, Examine, Experimenting, Listener
from tpudeploy.operations.accuracy import Examining
from tpudeploy.views import ab as view
from tpudeploy.views.events import line

_STOPPED = "Interrupted: what was measured is kept."
_BACK = "Bringing {name} back to what its profile says. Ctrl-C leaves it as it is."
_LEFT = "{name} is not yet what its profile says: `tpudeploy plan` shows what is left, `tpudeploy apply` does it."
_LASTING = (events.ChangeDone, events.ChangeFailed, events.Warned, events.LockWaiting)
_UNTOLD = (events.Outlook, events.LockHeld, events.ChangeLeft)  # as in views/repeats.py


def loaded(context: Context, path: str, given: argparse.Namespace, written: Written) -> Arms:
    """A profile with what is laid over it, and with each value: whatever is wrong with one is told now."""
    (base,) = context.load([path], given)
    a, b = (
        context.read(path, argparse.Namespace(overlays=given.overlays, sets=[*given.sets, f"{written.path}={value}"]))
        for value in written.values
    )
    return Arms(base=base, a=a, b=b, path=written.path, values=written.values)


class UnderWay:
    """One command's part of an A/B, once there was a yes."""

    def __init__(self, given: argparse.Namespace, context: Context, experimenting: Experimenting, arms: Arms) -> None:
        self._given = given
        self._context = context
        self._experimenting = experimenting
        self._arms = arms
        self._rows = sweeping.Rows(context.terminal)

    def carried_out(self, found: Proposal) -> Experiment:
        """Raise as `Experimenting.run` does: then too, `bring_back` is what follows."""
        given, of, rows = self._given, found.experiment, self._rows
        rows.talk("")
        rows.begin()
        try:
            with stopping_gracefully(self._experimenting.stop, rows.talk, message=_STOPPED, is_last=False):
                return self._experimenting.run(
                    of,
                    self._arms,
                    bounds=Bounds(seconds=given.duration, usd=given.max_cost),
                    usd_per_hour=found.usd_per_hour,
                    reset=given.auto_approve,
                    examine=examiner(of, self._context, self._experimenting.examining),
                    hear=Listener(on_turn=self._turn, on_event=self._hear, on_point=rows.under_way, on_cell=rows.done),
                )
        finally:
            rows.clear()

    def bring_back(self) -> TpudeployError | None:
        """With a workspace of its own: an interrupt has stopped the other. What was wrong is told, and not raised."""
        given, context = self._given, self._context.unstopped()
        workspace = context.workspace(given.runs, lock_timeout=given.lock_timeout)
        name = self._arms.base.spec.name

        def tell(event: events.Event) -> None:
            if isinstance(event, events.ChangeStarted):
                self._rows.talk("\n" + _BACK.format(name=name))
            self._hear(event)

        try:
            with stopping_gracefully(workspace.stop, self._rows.talk):
                Experimenting(workspace).bring_back(self._arms, reset=given.auto_approve, on_event=tell)
        except (KeyboardInterrupt, TpudeployError) as error:
            self._rows.clear()
            failed = error if isinstance(error, TpudeployError) else interrupted()
            report(context.terminal, failed)
            self._rows.talk(_LEFT.format(name=name))
            return failed
        return None

    def _turn(self, of: Experiment, place: int, side: Side) -> None:
        self._rows.talk("\n" + view.turn(of, place, side, self._context.terminal.paint))

    def _hear(self, event: events.Event) -> None:
        """Of each restart its end stays, and whatever is wrong; the rest passes by: there are many."""
        text = line(event, self._context.terminal.paint)
        is_broken = isinstance(event, events.Verified) and bool(event.broken)
        if isinstance(event, _LASTING) or is_broken:
            self._rows.talk(text)
        elif not isinstance(event, _UNTOLD):
            self._rows.passing(text)


def examiner(of: Experiment, context: Context, examining: Examining) -> Examine:
    """Whoever puts the questions of this experiment to an arm."""
    asked = accuracy.QuestionRequest(source=of.questions, count=of.count)

    def examine(profile: Profile, before: Sheet | None) -> Sheet:
        server = examining.deployment(profile)
        return accuracy.ask(asked, context, examining, server, at_once=server.at_once, before=before)

    return examine
