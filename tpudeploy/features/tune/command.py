"""Find the settings that serve a load best on its slice, below a ceiling: `tpudeploy tune PROFILE -max-cost 20`.

What cannot start is dropped before anything is measured; the rest races in place on one slice. The result is an overlay
with only what differs, the interval of its effect, and what it cost. A killed tuning continues, and measures nothing
twice; at the end the deployment serves as its profile says, or is deleted if it was not there before.
"""

from __future__ import annotations

import argparse

from tpudeploy.cli.approval import approve
from tpudeploy.cli.context import Context
from tpudeploy.cli.interrupts import stopping_gracefully
from tpudeploy.cli.operation_command import add_arguments, prepare, show
from tpudeploy.domain import events
from tpudeploy.domain.errors import Interrupted
from tpudeploy.domain.events import Event
from tpudeploy.features.benchmark.cell_rows import CellRows
from tpudeploy.features.tune import view
from tpudeploy.features.tune.operation import OPERATIONS
from tpudeploy.features.tune.search import TuneStep
from tpudeploy.features.tune.service import TuneListener, Tunings
from tpudeploy.features.tune.tuning import Tuning
from tpudeploy.views.events import line

_TUNE = OPERATIONS["tune"]
_INTERRUPTED = "Interrupted: all complete measurements are kept. The deployment is brought back next."
_AGAIN = "Run the same command again to continue; nothing is measured twice."


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, _TUNE)


def run(args: argparse.Namespace, context: Context) -> int:
    terminal = context.terminal
    call = prepare(_TUNE, args, context)
    workspace, values = call.opened, call.values
    proposal = workspace.tune(**{**values, "dry_run": True})
    if args.dry_run:
        show(proposal, context)
        return proposal.exit_code
    terminal.explain(proposal.as_text(terminal.paint))
    approve(args, context, _TUNE)
    rows = TuneRows(context)
    listener = TuneListener(
        on_step=rows.step,
        on_event=rows.event,
        on_point=rows.cells.begin_cell,
        on_cell=rows.cells.end_cell,
        on_message=terminal.talk,
    )
    try:
        with stopping_gracefully(workspace.adapters.stop, rows.cells.talk, message=_INTERRUPTED, is_last=False):
            result = workspace.tune(**values, reset=args.auto_approve, listener=listener)
    except (KeyboardInterrupt, Interrupted) as cause:
        # The interrupt has stopped the workspace, so another one brings the deployment back.
        other = context.unstopped().workspace()
        tunings = Tunings(other)
        with (
            stopping_gracefully(other.adapters.stop, rows.cells.talk),
            tunings.holding(proposal.tuning.deployment, rows.event),
        ):
            tunings.bring_back(proposal.tuning, values["profile"], on_event=rows.event)
        raise Interrupted("Interrupted. The deployment is as it was before.", hint=_AGAIN) from cause
    finally:
        rows.cells.clear()
    show(result, context)
    return result.exit_code


class TuneRows:
    """Prints a heading for each measurement and a row for each cell. Events of a restart replace one another."""

    def __init__(self, context: Context) -> None:
        self._terminal = context.terminal
        self.cells = CellRows(context.terminal)

    def step(self, tuning: Tuning, step: TuneStep) -> None:
        self.cells.talk("\n" + view.step(tuning, step, self._terminal.paint))

    def event(self, event: Event) -> None:
        text = line(event, self._terminal.paint)
        if isinstance(event, events.ChangeFailed | events.Warned | events.LockWaiting):
            self.cells.talk(text)
        elif not isinstance(event, events.Outlook | events.LockHeld | events.ChangeLeft):
            self.cells.passing(text)
