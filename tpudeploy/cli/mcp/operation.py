"""One run in the background: what it told so far, and what it came to. Whoever asks is never kept waiting for hours."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from tpudeploy.cli.boundary import bug
from tpudeploy.cli.documents import Document
from tpudeploy.domain.errors import Interrupted, TpudeployError
from tpudeploy.domain.frozen import frozen

_MOST = 1000  # events that are kept; then the oldest goes
_AT_ONCE = 50  # events in one answer


@frozen
class Came:
    """What a run came to: its document, and what was wrong with it."""

    document: Document
    error: TpudeployError | None = None


class Tell(Protocol):
    """`begins`: from here on something is done, and to refuse it is too late. Safe to call from several threads."""

    def __call__(self, event: Document, *, begins: bool = True) -> None: ...


Work = Callable[[Tell], Came]


class Operation:
    """Safe to use from several threads. `work` is run in one of its own, and ends soon once `stop` is called."""

    def __init__(
        self, id_: str, *, about: Mapping[str, object], names: frozenset[str], work: Work, stop: Callable[[], None]
    ) -> None:
        self.id = id_
        self.names = names
        self.stop = stop
        self._about = about
        self._work = work
        self._changed = threading.Condition()
        self._events: deque[tuple[int, Document]] = deque(maxlen=_MOST)
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
            # The end is told once all that led to it is.
            whole = not told or told[-1][0] == self._last
            return {
                "format": "tpudeploy.operation/1",
                "operation_id": self.id,
                **self._about,
                "deployments": sorted(self.names),
                "state": self._state if whole else "running",
                "last_event": told[-1][0] if told else after,
                "events": [event for _, event in told],
                "result": self._result if whole else None,
                "error": self._error if whole else None,
            }

    def _run(self) -> None:
        try:
            came = self._work(self._tell)
        except Interrupted as error:
            self._end("cancelled", error=error.to_dict(), refusal=error)
        except TpudeployError as error:
            self._end("failed", error=error.to_dict(), refusal=error)
        except Exception:  # noqa: BLE001 - the boundary of this thread: whatever comes here is our bug, and is reported
            self._end("failed", error=bug().to_dict())
        else:
            failed = None if came.error is None else came.error.to_dict()
            self._end("succeeded" if failed is None else "failed", result=came.document, error=failed)

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
