"""What a server does in the background: by id, one at a time for each deployment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from tpudeploy.cli.mcp.operation import Operation, Work
from tpudeploy.domain.errors import StateLocked, UsageError

_FOR_THE_STEP = 2.0  # seconds for each to end a step that is under way, when the server ends


class Operations:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: dict[str, Operation] = {}

    def begin(
        self,
        work: Work,
        *,
        about: Mapping[str, object],
        names: frozenset[str],
        stop: Callable[[], None],
        moment: float,
    ) -> Operation:
        """Do this `work` on deployments of these `names`. `about` is told with it.

        What it raises within a `moment`, in seconds, and before anything is done, is raised here; and
        `errors.StateLocked` while another of ours has one of the deployments.
        """
        with self._lock:
            for other in self._begun.values():
                if other.is_running and other.names & names:
                    raise StateLocked(
                        f"{other.id} is at work on {', '.join(sorted(other.names & names))}.",
                        hint="Poll it with the tool `operation`, or end it with `cancel`.",
                    )
            id_ = f"operation-{len(self._begun) + 1}"
            begun = Operation(id_, about=about, names=names, work=work, stop=stop)
            self._begun[id_] = begun
        begun.start(moment)
        return begun

    def find(self, operation_id: str | None) -> Operation:
        """That one, or the last. Raise `errors.UsageError` where there is none."""
        with self._lock:
            last = next(reversed(self._begun.values()), None)
            found = last if operation_id is None else self._begun.get(operation_id)
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
