"""Release a lock left behind by a crashed run. If that run is still alive, it cannot save anything afterwards."""

from __future__ import annotations

from typing import Annotated

from tpudeploy.domain.lock import lock_name
from tpudeploy.operations.arguments import Arg
from tpudeploy.operations.declaration import Access, ApprovalForm, Operation, Preview
from tpudeploy.results import Result, result
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace


@result
class Unlocked(Result):
    """A lock that was released: the deployment that it held, and its id."""

    FORMAT = "unlock"
    name: str
    id: str

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return f"Released the lock of {lock_name(self.name)}."


def force_unlock(
    workspace: Workspace,
    id: Annotated[  # noqa: A002 - the command line's word
        str, Arg("The name of the deployment, or the id of the lock, which the blocked command shows.", positional=True)
    ],
) -> Unlocked:
    """Release a lock left behind by a crashed run. If that run is still alive, it cannot save anything afterwards.

    `id` is that of the lock, or the name of the deployment. Raise `errors.StateError` if there is no such lock, or its
    holder is known to be alive.
    """
    states = workspace.adapters.states
    lock_id = states.find_lock(id)
    return Unlocked(name=states.force_unlock(lock_id), id=lock_id)


def _lock(workspace: Workspace, id: str) -> Preview:  # noqa: A002 - as above
    """Return the lock by its id: a run that starts while a person decides keeps its own."""
    return Preview(values={"id": workspace.adapters.states.find_lock(id)})


OPERATION = Operation(
    run=force_unlock,
    results=(Unlocked,),
    access=Access.CHANGE,
    approval=ApprovalForm(
        question="Do you really want to force-unlock? A run that is still alive loses its lock and stops.",
        otherwise="Pass -force once you are sure that no run uses it.",
        option="force",
        preview=_lock,
    ),
)
