"""Define the tools that change resources, offered only by a server that was started with --allow-writes.

`apply` and `destroy` have rows, from which their titles, hints and descriptions of arguments come. Their signatures are
their own: an agent names a plan by the id under which this server showed it, and not profiles with options that would
make another one; and the SDK asks a person through a parameter, `approval`, which no row has.
"""

from __future__ import annotations

import json
from threading import Lock
from typing import Annotated, Literal

from mcp.server.mcpserver import ElicitationResult, Resolve
from pydantic import Field

from tpudeploy.cli import documents
from tpudeploy.domain.cost_budget import CostCeiling
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.events import ChangeStarted, Event
from tpudeploy.domain.plan import Mode
from tpudeploy.features.agents.consent import (
    Consent,
    consent,
    consent_to_report,
    may_reset,
    require,
    require_yes,
)
from tpudeploy.features.agents.operation import BackgroundOperation, EmitEvent, OperationOutcome
from tpudeploy.features.agents.plans import StoredPlan
from tpudeploy.features.agents.session import AgentSession, Call, session
from tpudeploy.operations import operation as row
from tpudeploy.ports import Emit
from tpudeploy.views import jsonl
from tpudeploy.views.events import Repeats

PlanId = Annotated[str, Field(description="the plan_id that the tool plan returned")]
OperationId = Annotated[str | None, Field(description="of what started it; none for the last")]
Approval = Annotated[ElicitationResult[Consent], Resolve(consent)]
ReportApproval = Annotated[ElicitationResult[Consent], Resolve(consent_to_report)]
_APPLY = row("apply")
_REPORT_HOST = row("report_host")
_LONGEST = 50.0  # seconds: clients give up on a call after a minute
_FOR_THE_START = 15.0  # seconds in which a stale plan is detected, or the first change starts


def apply(
    ctx: Call,
    plan_id: PlanId,
    approval: Approval,
    wait: Annotated[
        Literal["accepted", "granted", "serving"], Field(description=_APPLY.argument("wait").agents_help)
    ] = "serving",
    timeout_seconds: Annotated[float | None, Field(gt=0, description=_APPLY.argument("timeout").agents_help)] = None,
) -> documents.Document:
    """Apply a plan in the background, which may take hours: poll the operation. A slice costs money once granted.

    A person has to approve what would end or restart anything, and what spends more unless the server's ceiling covers
    it.
    Refused if the resources changed since the plan.
    """
    stored = session(ctx).plans.find(plan_id)
    if stored.plan.mode is Mode.DESTROY:
        raise UsageError(f"{plan_id} is a plan to destroy.", hint="Pass it to the tool `destroy`.")
    require(stored, approval, ctx)
    agents = session(ctx)
    return apply_in_background(
        agents,
        stored,
        does="apply",
        wait=wait,
        timeout=timeout_seconds,
        reset=may_reset(approval),
        ceiling=agents.ceiling_of(stored),
    ).document()


def destroy(ctx: Call, plan_id: PlanId, approval: Approval) -> documents.Document:
    """Apply a plan made with destroy=true in the background, until everything is deleted. Poll the operation.

    A person has to approve; a client that cannot ask one is refused.
    """
    stored = session(ctx).plans.find(plan_id)
    if stored.plan.mode is not Mode.DESTROY:
        raise UsageError(f"{plan_id} is not a plan to destroy.", hint="Make one with the tool `plan` and destroy=true.")
    require(stored, approval, ctx)
    return apply_in_background(session(ctx), stored, does="destroy").document()


def report_host(
    ctx: Call,
    address: Annotated[str, Field(min_length=1, description=_REPORT_HOST.argument("address").arg.help)],
    approval: ReportApproval,
) -> documents.Document:
    """Report the host of a slice to Google as faulty, if its boot log names a fault of the machine. Its server ends.

    A person has to approve; a client that cannot ask one is refused.
    """
    require_yes(f"report_host of {address} ends or restarts a server", approval, ctx)
    with session(ctx).project.opened() as opened:
        return opened.workspace.report_host(address).to_dict()


def operation(
    ctx: Call,
    operation_id: OperationId = None,
    after: Annotated[int, Field(ge=0, description="the last_event that you have")] = 0,
    wait_seconds: Annotated[float, Field(ge=0, le=_LONGEST, description="how long to wait for a new event")] = 0.0,
) -> documents.Document:
    """Show a background operation: its events since `after`, and its result once it has ended."""
    return session(ctx).operations.find(operation_id).document(after=after, wait=wait_seconds)


def cancel(ctx: Call, operation_id: OperationId = None) -> documents.Document:
    """Stop a background operation as Ctrl-C does: no new step starts, the progress is saved, and a new apply continues.

    Pending requests remain, and may be granted and cost money; to delete them, destroy.
    """
    cancelled = session(ctx).operations.find(operation_id)
    cancelled.stop()
    return cancelled.document()


def apply_in_background(
    session: AgentSession,
    stored: StoredPlan,
    *,
    does: str,
    wait: str = "serving",
    timeout: float | None = None,
    reset: bool = False,
    ceiling: CostCeiling | None = None,
) -> BackgroundOperation:
    """Start to apply a plan; the options are those of `Workspace.apply`.

    Raise what `Workspace.apply` raises before it starts, and `errors.StateLocked` as `Operations.begin`.
    """
    clock = session.project.clock()

    def work(tell: EmitEvent) -> OperationOutcome:
        is_limited = ceiling is not None
        opening = session.project.workspace(
            stored.paths, backend=stored.plan.backend, clock=clock, is_limited=is_limited
        )
        with opening as workspace:
            report = workspace.apply(
                stored.plan,
                on_event=_event_callback(tell),
                wait=wait,
                timeout=timeout,
                reset=reset,
                max_cost=ceiling,
            )
        return OperationOutcome(document=report.to_dict(), error=report.error)

    about = {"does": does, "plan_id": stored.id}
    return session.operations.begin(work, about=about, names=stored.names, stop=clock.stop, moment=_FOR_THE_START)


def _event_callback(tell: EmitEvent) -> Emit:
    """Return a callback for `on_event` that omits repeated events, as for people."""
    lock, repeats = Lock(), Repeats()

    def hear(event: Event) -> None:
        with lock:
            if repeats.is_new(event):
                tell(json.loads(jsonl.line(event)), begins=isinstance(event, ChangeStarted))

    return hear
