"""Delete everything that was created for PROFILE, and wait until it is gone.

In place of a profile, the name of a deployment does: what to delete is in its state.
"""

from __future__ import annotations

from collections.abc import Callable

from tpudeploy.domain.events import Event
from tpudeploy.operations.arguments import ValidProfiles, pick
from tpudeploy.operations.declaration import Access, ApprovalForm, Operation
from tpudeploy.operations.plan import plan
from tpudeploy.plans import Report
from tpudeploy.workspace import Workspace


def destroy(
    workspace: Workspace, profiles: ValidProfiles, *, on_event: Callable[[Event], None] | None = None
) -> Report:
    """Delete everything that was ever created for these profiles, and wait until it is gone. Raise as `apply` does.

    The name of a deployment serves in place of its profile: what to delete is in its state.
    """
    return workspace.apply(workspace.plan(profiles, destroy=True), on_event=on_event)


OPERATION = Operation(
    run=destroy,
    also=pick(plan, "target"),
    results=(Report,),
    access=Access.END,
    title="Destroy",
    options=("lock_timeout", "parallelism", "backend", "events"),
    approval=ApprovalForm(
        question="Do you really want to destroy this? There is no undo.",
        otherwise="Review the plan, then pass -auto-approve.",
    ),
)
