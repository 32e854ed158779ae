"""What a server does in the background: by id, one at a time for each deployment."""

from __future__ import annotations

import threading

from tpudeploy.cli.mcp.operation import Operation
from tpudeploy.cli.mcp.plans import Kept
from tpudeploy.cli.mcp.project import Project
from tpudeploy.domain.errors import StateLocked, UsageError
from tpudeploy.domain.report import Report
from tpudeploy.ports import Emit

_MOMENT = 15.0  # seconds in which a plan that holds no more is found out
_FOR_THE_STEP = 2.0  # seconds for each to end a step that is under way, when the server ends


class Operations:
    """Safe to use from several threads."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._lock = threading.Lock()
        self._begun: dict[str, Operation] = {}

    def begin(self, kept: Kept, *, wait: str, timeout: float | None) -> Operation:
        """Carry out a plan. Raise `errors.StateLocked` while another run of ours has a deployment of it.

        Raise as `Workspace.apply` does where nothing is begun.
        """
        clock = self._project.clock()

        def work(tell: Emit) -> Report:
            with self._project.workspace(kept.paths, backend=kept.plan.backend, clock=clock) as workspace:
                return workspace.apply(kept.plan, on_event=tell, wait=wait, timeout=timeout)

        with self._lock:
            for other in self._begun.values():
                if other.is_running and other.names & kept.names:
                    raise StateLocked(
                        f"{other.id} is at work on {', '.join(sorted(other.names & kept.names))}.",
                        hint="Poll it with the tool `operation`, or end it with `cancel`; then make a new plan.",
                    )
            id_ = f"operation-{len(self._begun) + 1}"
            begun = Operation(id_, plan_id=kept.id, names=kept.names, work=work, stop=clock.stop)
            self._begun[id_] = begun
        begun.start(_MOMENT)
        return begun

    def find(self, operation_id: str | None) -> Operation:
        """That one, or the last. Raise `errors.UsageError` where there is none."""
        with self._lock:
            found = (
                next(reversed(self._begun.values()), None) if operation_id is None else self._begun.get(operation_id)
            )
        if found is None:
            which = "no operation" if operation_id is None else f"no operation `{operation_id}`"
            raise UsageError(
                f"This server has begun {which}.",
                hint="What another began is in the state: `status` shows it, and to apply a new plan goes on.",
            )
        return found

    def close(self) -> None:
        """End what runs as Ctrl-C does: saved, so that another apply goes on."""
        with self._lock:
            running = [operation for operation in self._begun.values() if operation.is_running]
        for operation in running:
            operation.stop()
        for operation in running:
            operation.join(_FOR_THE_STEP)
