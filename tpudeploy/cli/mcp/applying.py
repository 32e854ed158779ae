"""Apply a plan in the background."""

from __future__ import annotations

import json
from threading import Lock

from tpudeploy.cli.mcp.operation import EmitEvent, Operation, Outcome
from tpudeploy.cli.mcp.plans import StoredPlan
from tpudeploy.cli.mcp.session import Session
from tpudeploy.domain.events import ChangeStarted, Event
from tpudeploy.ports import Emit
from tpudeploy.views import jsonl
from tpudeploy.views.events import Repeats

_MOMENT = 15.0  # seconds in which a stale plan is detected, or the first change starts


def apply_in_background(
    session: Session,
    stored: StoredPlan,
    *,
    does: str,
    wait: str = "serving",
    timeout: float | None = None,
    reset: bool = False,
) -> Operation:
    """Start to apply a plan; the options are those of `Workspace.apply`.

    Raise what `Workspace.apply` raises before it starts, and `errors.StateLocked` as `Operations.begin`.
    """
    clock = session.project.clock()

    def work(tell: EmitEvent) -> Outcome:
        opening = session.project.workspace(stored.paths, backend=stored.plan.backend, clock=clock)
        with opening as workspace:
            report = workspace.apply(
                stored.plan, on_event=_event_callback(tell), wait=wait, timeout=timeout, reset=reset
            )
        return Outcome(document=report.to_dict(), error=report.error)

    about = {"does": does, "plan_id": stored.id}
    return session.operations.begin(work, about=about, names=stored.names, stop=clock.stop, moment=_MOMENT)


def _event_callback(tell: EmitEvent) -> Emit:
    """Return a callback for `on_event` that omits repeated events, as for people."""
    lock, repeats = Lock(), Repeats()

    def hear(event: Event) -> None:
        with lock:
            if repeats.is_new(event):
                tell(json.loads(jsonl.line(event)), begins=isinstance(event, ChangeStarted))

    return hear
