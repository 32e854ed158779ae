"""A scheduler for many runs in one process: a few threads step each run when it is due.

Why: decision 9 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from heapq import heappop, heappush
from threading import Lock
from typing import Protocol

from tpudeploy.ports import Clock, Workers


class Run(Protocol):
    """One deployment's run, as the scheduler sees it."""

    def step(self) -> float | None:
        """Do what is due now. Return the seconds until the next step is due, or None at the end."""
        ...


# A run, behind the moment at which it is due, the number of its steps so far, and its place among the runs: of two that
# are due at the same time, the one with fewer steps goes first. Runs are never compared.
_Turn = tuple[float, int, int, Run]


def run_all(clock: Clock, runs: Iterable[Run], *, threads: int) -> None:
    """Step all runs to their end, at most `threads` of them at once.

    The pause of a run begins when its own step has returned, so a step that takes minutes delays no other run. An
    exception of a step ends every sleep, and is raised here after the other steps have returned.

    KeyboardInterrupt is raised at once: a call that Google does not answer would keep its thread for a minute. The
    intent of that call is in the state.
    """
    pool = ThreadPoolExecutor(max_workers=threads)
    try:
        with clock.workers() as workers:
            _Schedule(clock, pool, workers, runs, threads=threads).finish()
    except KeyboardInterrupt:
        # Threads in a call to Google are not waited for: the user pressed Ctrl-C, and every intent is saved.
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    except BaseException:
        # The other steps end by themselves: the clock was stopped, so none of them begins anything more.
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


class _Schedule:
    """The runs that wait until they are due, and the threads that step the others."""

    def __init__(
        self, clock: Clock, pool: ThreadPoolExecutor, workers: Workers, runs: Iterable[Run], *, threads: int
    ) -> None:
        self._clock = clock
        self._pool = pool
        self._workers = workers
        self._threads = threads
        self._guard = Lock()  # for what the threads change: the fields below
        self._waiting: list[_Turn] = [(0.0, 0, number, run) for number, run in enumerate(runs)]  # a heap
        self._threads_at_work = 0
        self._has_news = False  # a thread has ended: there is a free one, and its run may be due soon
        self._failure: BaseException | None = None
        self._is_over = False

    def finish(self) -> None:
        """Step every run to its end."""
        try:
            while True:
                is_idle = not self._threads_at_work
                self._raise_failure()  # after the look: a failure is noted before its thread counts as ended
                if is_idle and not self._waiting:
                    return
                # The last run, or the only one, needs no thread.
                if is_idle and len(self._waiting) == 1:
                    self._step_in_caller()
                    continue
                self._has_news = False
                self._start_threads()
                self._workers.wait(self._seconds_to_next_start(), lambda: self._has_news)
        finally:
            self._is_over = True  # however this ends, no thread begins another step

    def _step_in_caller(self) -> None:
        """Step the last run in the caller's thread, which receives Ctrl-C at once. One run is the common case."""
        turn = heappop(self._waiting)
        seconds = turn[0] - self._clock.now()
        if seconds > 0:
            self._clock.sleep(seconds)
        self._put_back(turn, turn[-1].step())

    def _start_threads(self) -> None:
        """Start a thread for each run that is due, as far as there are free ones."""
        with self._guard:
            while self._threads_at_work < self._threads and (turn := self._take_due()) is not None:
                self._threads_at_work += 1
                self._workers.start()
                self._pool.submit(self._work, turn)

    def _work(self, turn: _Turn | None) -> None:
        """Step a run, and then the next one that is due, until none is.

        A thread takes the next run by itself: if the caller were woken for each, a fleet would spend a tenth of its
        processor time on that.
        """
        try:
            while turn is not None:
                turn = self._next_turn(turn, turn[-1].step())
        except BaseException as failure:  # noqa: BLE001 - raised by `finish`
            self._failure, self._is_over = failure, True
        with self._guard:
            self._threads_at_work -= 1
        self._has_news = True
        self._workers.finish()

    def _next_turn(self, turn: _Turn, pause: float | None) -> _Turn | None:
        with self._guard:
            self._put_back(turn, pause)
            # After a failure or an interruption, only the steps that have begun go on.
            return None if self._is_over else self._take_due()

    def _put_back(self, turn: _Turn, pause: float | None) -> None:
        # A run without a pause has ended.
        if pause is not None:
            _, steps, number, run = turn
            heappush(self._waiting, (self._clock.now() + pause, steps + 1, number, run))

    def _take_due(self) -> _Turn | None:
        is_due = bool(self._waiting) and self._waiting[0][0] <= self._clock.now()
        return heappop(self._waiting) if is_due else None

    def _seconds_to_next_start(self) -> float | None:
        """Return None if only the end of a thread can be next: no other one is free, or no run waits."""
        with self._guard:
            if not self._waiting or self._threads_at_work >= self._threads:
                return None
            return max(0.0, self._waiting[0][0] - self._clock.now())

    def _raise_failure(self) -> None:
        if self._failure is not None:
            # A run reports its own errors, so this is an interruption or a bug: every other sleep ends too.
            self._clock.stop()
            raise self._failure
