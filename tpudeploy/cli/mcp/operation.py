"""Run one operation in the background and keep its events and result, so that a client can poll it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from tpudeploy.cli.documents import Document
from tpudeploy.cli.error_report import bug
from tpudeploy.domain.errors import Interrupted, TpudeployError
from tpudeploy.domain.frozen import frozen

_MAX_EVENTS = 1000  # events that are kept; older ones are dropped
_EVENTS_PER_ANSWER = 50  # events in one answer


@frozen
class Outcome:
    """The result of an operation: its document, and its error if it failed."""

    document: Document
    error: TpudeployError | None = None


class EmitEvent(Protocol):
    """Emits an event. `begins` means that work has started and cannot be refused. Several threads may call it."""

    def __call__(self, event: Document, *, begins: bool = True) -> None: ...


Work = Callable[[EmitEvent], Outcome]


class Operation:
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
            events = [(number, event) for number, event in self._events if number > after][:_EVENTS_PER_ANSWER]
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
