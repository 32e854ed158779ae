"""Tools that change something. They are there only where a person started the server with --allow-writes."""

from __future__ import annotations

from typing import Annotated, Literal

from mcp.server.mcpserver import ElicitationResult, Resolve
from pydantic import Field

from tpudeploy.cli import documents
from tpudeploy.cli.mcp.applying import carry_out
from tpudeploy.cli.mcp.consent import Consent, consent, may_reset, require
from tpudeploy.cli.mcp.session import Asked, session
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.plan import Mode

PlanId = Annotated[str, Field(description="the plan_id that the tool plan answered")]
OperationId = Annotated[str | None, Field(description="of apply, destroy, bench or ab; none for the last")]
Yes = Annotated[ElicitationResult[Consent], Resolve(consent)]
_LONGEST = 50.0  # seconds: clients give up on a call after a minute


def apply(
    ctx: Asked,
    plan_id: PlanId,
    given: Yes,
    wait: Annotated[Literal["accepted", "granted", "serving"], Field(description="how far to go")] = "serving",
    timeout_seconds: Annotated[float | None, Field(gt=0, description="give up waiting after this long")] = None,
) -> documents.Document:
    """Carry out a plan, in the background, for hours perhaps: poll the operation. A slice costs money once granted.

    What would end or restart anything is asked of a person first. Refused where the world is not as the plan saw it.
    """
    kept = session(ctx).plans.find(plan_id)
    if kept.plan.mode is Mode.DESTROY:
        raise UsageError(f"{plan_id} is a plan to destroy.", hint="Hand it to the tool `destroy`.")
    require(kept, given, ctx)
    return carry_out(
        session(ctx), kept, does="apply", wait=wait, timeout=timeout_seconds, reset=may_reset(given)
    ).document()


def destroy(ctx: Asked, plan_id: PlanId, given: Yes) -> documents.Document:
    """Carry out a plan that was made with destroy=true, in the background, until all of it is gone. Poll the operation.

    A person is asked first; a client that cannot ask is refused.
    """
    kept = session(ctx).plans.find(plan_id)
    if kept.plan.mode is not Mode.DESTROY:
        raise UsageError(f"{plan_id} is no plan to destroy.", hint="Make one with the tool `plan` and destroy=true.")
    require(kept, given, ctx)
    return carry_out(session(ctx), kept, does="destroy").document()


def operation(
    ctx: Asked,
    operation_id: OperationId = None,
    after: Annotated[int, Field(ge=0, description="the last_event that is known")] = 0,
    wait_seconds: Annotated[float, Field(ge=0, le=_LONGEST, description="wait so long for something new")] = 0.0,
) -> documents.Document:
    """How a background operation stands: its events since `after`, and once it has ended its result."""
    return session(ctx).operations.find(operation_id).document(after=after, wait=wait_seconds)


def cancel(ctx: Asked, operation_id: OperationId = None) -> documents.Document:
    """End a background operation as Ctrl-C does: nothing new is begun, what was is saved, and a new apply goes on.

    What was asked for stands, and may be granted and cost money; to give it back, destroy.
    """
    found = session(ctx).operations.find(operation_id)
    found.stop()
    return found.document()
