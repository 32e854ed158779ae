"""Hold the background operations of a server by id, at most one at a time for each deployment.

Why: decision 41 in docs/decisions.md.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from tpudeploy.cli.mcp.operation import Operation, Work
from tpudeploy.domain.errors import StateLocked, UsageError

_FOR_THE_STEP = 2.0  # seconds for each operation to end its current step when the server ends


class Operations:
    """The operations of a server. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations: dict[str, Operation] = {}

    def begin(
        self,
        work: Work,
        *,
        about: Mapping[str, object],
        names: frozenset[str],
        stop: Callable[[], None],
        moment: float,
    ) -> Operation:
        """Start `work` on deployments of these `names`. `about` is part of the operation's document.

        Raise what `work` raises within `moment` seconds and before it starts, and `errors.StateLocked` while another
        operation works on one of the deployments.
        """
        with self._lock:
            for other in self._operations.values():
                if other.is_running and other.names & names:
                    raise StateLocked(
                        f"{other.id} is already working on {', '.join(sorted(other.names & names))}.",
                        hint="Poll it with the tool `operation`, or end it with `cancel`.",
                    )
            id_ = f"operation-{len(self._operations) + 1}"
            operation = Operation(id_, about=about, names=names, work=work, stop=stop)
            self._operations[id_] = operation
        operation.start(moment)
        return operation

    def find(self, operation_id: str | None) -> Operation:
        """Return the operation of that id, or the last one. Raise `errors.UsageError` without one."""
        with self._lock:
            last = next(reversed(self._operations.values()), None)
            operation = last if operation_id is None else self._operations.get(operation_id)
        if operation is None:
            which = "no operation" if operation_id is None else f"no operation `{operation_id}`"
            raise UsageError(
                f"This server has started {which}.",
                hint="The state records what other servers started: `status` shows it, and a new plan continues it.",
            )
        return operation

    def close(self) -> None:
        """Stop the running operations as Ctrl-C does, so that another apply can continue them."""
        with self._lock:
            running = [operation for operation in self._operations.values() if operation.is_running]
        for operation in running:
            operation.stop()
        for operation in running:
            operation.join(_FOR_THE_STEP)
