"""One run in the background: what it told so far, and what it came to. Whoever asks is never kept waiting for hours."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable

from tpudeploy.cli.boundary import bug
from tpudeploy.cli.documents import Document
from tpudeploy.domain.errors import Interrupted, TpudeployError
from tpudeploy.domain.events import ChangeStarted, Event
from tpudeploy.domain.report import Report
from tpudeploy.views import jsonl
from tpudeploy.views.repeats import Repeats

Work = Callable[[Callable[[Event], None]], Report]

_MOST = 1000  # events that are kept; then the oldest goes
_AT_ONCE = 50  # events in one answer


class Operation:
    """Safe to use from several threads. `work` is run in one of its own, and ends soon once `stop` is called."""

    def __init__(self, id_: str, *, plan_id: str, names: frozenset[str], work: Work, stop: Callable[[], None]) -> None:
        self.id = id_
        self.names = names
        self.stop = stop
        self._plan_id = plan_id
        self._work = work
        self._changed = threading.Condition()
        self._events: deque[tuple[int, Document]] = deque(maxlen=_MOST)
        self._last = 0
        self._repeats = Repeats()
        self._has_begun = False
        self._state = "running"
        self._report: Report | None = None
        self._error: Document | None = None
        self._refusal: TpudeployError | None = None
        self._thread = threading.Thread(target=self._run, name=id_, daemon=True)

    @property
    def is_running(self) -> bool:
        return self._state == "running"

    def start(self, moment: float) -> None:
        """Begin, and give it a `moment`, in seconds, to find that it cannot. Raise that, where nothing was done."""
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._has_begun or not self.is_running, moment)
        if self._refusal is not None and not self._has_begun:
            raise self._refusal

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def document(self, *, after: int = 0, wait: float = 0.0) -> Document:
        """Its events after that number, and how it stands. Waits so many seconds for something new."""
        with self._changed:
            self._changed.wait_for(lambda: self._last > after or not self.is_running, wait)
            told = [(number, event) for number, event in self._events if number > after][:_AT_ONCE]
            whole = not told or told[-1][0] == self._last
            return {
                "format": "tpudeploy.operation/1",
                "operation_id": self.id,
                "plan_id": self._plan_id,
                "deployments": sorted(self.names),
                # The end is told once all that led to it is.
                "state": self._state if whole else "running",
                "last_event": told[-1][0] if told else after,
                "events": [event for _, event in told],
                "result": self._report.to_dict() if self._report is not None and whole else None,
                "error": self._error if whole else None,
            }

    def _run(self) -> None:
        try:
            self._report = self._work(self._tell)
        except Interrupted as error:
            self._end("cancelled", error.to_dict(), error)
        except TpudeployError as error:
            self._end("failed", error.to_dict(), error)
        except Exception:  # noqa: BLE001 - the boundary of this thread: whatever comes here is our bug, and is reported
            self._end("failed", {"code": "", "exit_code": 70, "message": bug(), "hint": ""}, None)
        else:
            error_ = self._report.error
            self._end("succeeded" if error_ is None else "failed", None if error_ is None else error_.to_dict(), None)

    def _tell(self, event: Event) -> None:
        with self._changed:
            self._has_begun = self._has_begun or isinstance(event, ChangeStarted)
            if self._repeats.is_new(event):
                self._last += 1
                self._events.append((self._last, json.loads(jsonl.line(event))))
            self._changed.notify_all()

    def _end(self, state: str, error: Document | None, refusal: TpudeployError | None) -> None:
        with self._changed:
            self._state, self._error, self._refusal = state, error, refusal
            self._changed.notify_all()
