"""A plan that is carried out in the background."""

from __future__ import annotations

import json
from threading import Lock

from tpudeploy.cli.mcp.operation import Came, Operation, Tell
from tpudeploy.cli.mcp.plans import Kept
from tpudeploy.cli.mcp.session import Session
from tpudeploy.domain.events import ChangeStarted, Event
from tpudeploy.ports import Emit
from tpudeploy.views import jsonl
from tpudeploy.views.repeats import Repeats

_MOMENT = 15.0  # seconds in which a plan that holds no more is found out, or its first change begun


def carry_out(
    session: Session,
    kept: Kept,
    *,
    does: str,
    wait: str = "serving",
    timeout: float | None = None,
    reset: bool = False,
) -> Operation:
    """Begin it; the options are those of `Workspace.apply`.

    Raise as that does where nothing is begun, and `errors.StateLocked` as `Operations.begin`.
    """
    clock = session.project.clock()

    def work(tell: Tell) -> Came:
        opened = session.project.workspace(kept.paths, backend=kept.plan.backend, clock=clock)
        with opened as workspace:
            report = workspace.apply(kept.plan, on_event=_hearing(tell), wait=wait, timeout=timeout, reset=reset)
        return Came(document=report.to_dict(), error=report.error)

    about = {"does": does, "plan_id": kept.id}
    return session.operations.begin(work, about=about, names=kept.names, stop=clock.stop, moment=_MOMENT)


def _hearing(tell: Tell) -> Emit:
    """A callback for `on_event`. A model is told what a person is: nothing twice."""
    lock, repeats = Lock(), Repeats()

    def hear(event: Event) -> None:
        with lock:
            if repeats.is_new(event):
                tell(json.loads(jsonl.line(event)), begins=isinstance(event, ChangeStarted))

    return hear
