"""Run operations in the background and keep their events and results, so that a client can poll them.

Why: decision 41 in docs/decisions.md.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tpudeploy.cli.documents import Document
from tpudeploy.cli.error_report import bug
from tpudeploy.domain.errors import Interrupted, StateLocked, TpudeployError, UsageError
from tpudeploy.features.agents.shortening import size

_MAX_EVENTS = 1000  # events that are kept; older ones are dropped
_EVENTS_PER_ANSWER = 50  # events in one answer
_BYTES_OF_EVENTS = 2400  # in one answer: the next poll continues, so that none is skipped
_FACTS_OF_EVENT = 300  # bytes of an event that an answer keeps in any case
_MOMENT = 5.0  # seconds in which an error before the start of the work is detected
_FOR_THE_STEP = 2.0  # seconds for each operation to end its current step when the server ends


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationOutcome:
    """The result of an operation: its document, and its error if it failed."""

    document: Document
    error: TpudeployError | None = None


class EmitEvent(Protocol):
    """Emits an event. `begins` means that work has started and cannot be refused. Several threads may call it."""

    def __call__(self, event: Document, *, begins: bool = True) -> None: ...


Work = Callable[[EmitEvent], OperationOutcome]


class BackgroundOperation:
    """An operation that several threads may use. `work` runs in its own thread and ends soon after `stop` is called."""

    def __init__(
        self, id_: str, *, about: Mapping[str, object], names: frozenset[str], work: Work, stop: Callable[[], None]
    ) -> None:
        self.id = id_
        self.names = names
        self.stop = stop
        self._about = about
        self._work = work
        self._changed = threading.Condition()
        self._events: deque[tuple[int, Document]] = deque(maxlen=_MAX_EVENTS)
        self._last = 0
        self._has_begun = False
        self._state = "running"
        self._result: Document | None = None
        self._error: Document | None = None
        self._refusal: TpudeployError | None = None
        self._thread = threading.Thread(target=self._run, name=id_, daemon=True)

    @property
    def is_running(self) -> bool:
        return self._state == "running"

    def start(self, moment: float) -> None:
        """Start, and wait up to `moment` seconds for an error. Raise the error if no work had started."""
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._has_begun or not self.is_running, moment)
        if self._refusal is not None and not self._has_begun:
            raise self._refusal

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def document(self, *, after: int = 0, wait: float = 0.0) -> Document:
        """Return the state and the events after that number. Wait up to `wait` seconds for a new one."""
        with self._changed:
            self._changed.wait_for(lambda: self._last > after or not self.is_running, wait)
            events = [(number, event) for number, event in self._events if number > after]
            events = events[: _count(event for _, event in events)]
            # The end is reported only after all events.
            is_complete = not events or events[-1][0] == self._last
            return {
                "format": "tpudeploy.operation/1",
                "operation_id": self.id,
                **self._about,
                "deployments": sorted(self.names),
                "state": self._state if is_complete else "running",
                "last_event": events[-1][0] if events else after,
                "events": [event for _, event in events],
                "result": self._result if is_complete else None,
                "error": self._error if is_complete else None,
            }

    def _run(self) -> None:
        try:
            outcome = self._work(self._tell)
        except Interrupted as error:
            self._end("cancelled", error=error.to_dict(), refusal=error)
        except TpudeployError as error:
            self._end("failed", error=error.to_dict(), refusal=error)
        except Exception:  # noqa: BLE001 - the boundary of this thread: whatever comes here is our bug, and is reported
            self._end("failed", error=bug().to_dict())
        else:
            error_document = None if outcome.error is None else outcome.error.to_dict()
            self._end(
                "succeeded" if error_document is None else "failed", result=outcome.document, error=error_document
            )

    def _tell(self, event: Document, *, begins: bool = True) -> None:
        with self._changed:
            self._has_begun = self._has_begun or begins
            self._last += 1
            self._events.append((self._last, event))
            self._changed.notify_all()

    def _end(
        self,
        state: str,
        *,
        result: Document | None = None,
        error: Document | None = None,
        refusal: TpudeployError | None = None,
    ) -> None:
        with self._changed:
            self._state, self._result, self._error, self._refusal = state, result, error, refusal
            self._changed.notify_all()


def _count(events: Iterable[Document]) -> int:
    """Return how many of these events fit into one answer, one at least."""
    count, used = 0, 0
    for event in events:
        used += min(size(event), _FACTS_OF_EVENT)
        if count and (used > _BYTES_OF_EVENTS or count == _EVENTS_PER_ANSWER):
            break
        count += 1
    return count


class Stops:
    """What stops the work of an operation: each part of it has its own clock or workspace."""

    def __init__(self, *stops: Callable[[], None]) -> None:
        self._stops = stops

    def add(self, stop: Callable[[], None]) -> None:
        self._stops = (*self._stops, stop)

    def become(self, stop: Callable[[], None]) -> None:
        self._stops = (stop,)

    def stop(self) -> None:
        for each in self._stops:
            each()


class Operations:
    """The operations of a server. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations: dict[str, BackgroundOperation] = {}

    def begin(
        self,
        work: Work,
        *,
        about: Mapping[str, object],
        names: frozenset[str],
        stop: Callable[[], None],
        moment: float = _MOMENT,
    ) -> BackgroundOperation:
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
            operation = BackgroundOperation(id_, about=about, names=names, work=work, stop=stop)
            self._operations[id_] = operation
        operation.start(moment)
        return operation

    def find(self, operation_id: str | None) -> BackgroundOperation:
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
