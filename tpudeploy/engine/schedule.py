"""A scheduler for many runs in one process: a few threads step each run when it is due.

Why: decision 9 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from tpudeploy.ports import Clock, Workers

_Step = Future[float | None]


class ScheduledRun(Protocol):
    """One deployment's run, as the scheduler sees it."""

    def step(self) -> float | None:
        """Do what is due now. Return the seconds until the next step is due, or None at the end."""
        ...


def run_all(clock: Clock, runs: Iterable[ScheduledRun], *, threads: int, beside: Iterable[ScheduledRun] = ()) -> None:
    """Step all runs to their end, at most `threads` of them at once. Those `beside` them are stepped until then.

    The pause of a run begins when its own step has returned, so a step that takes minutes delays no other run. An
    exception of a step ends every sleep, and is raised here after the other steps have returned.

    KeyboardInterrupt is raised at once: a call that Google does not answer would keep its thread for a minute. The
    intent of that call is in the state.
    """
    beside = tuple(beside)
    threads += len(beside)  # they take no turn from a deployment
    pool = ThreadPoolExecutor(max_workers=threads)
    try:
        with clock.workers() as workers:
            _Schedule(clock, pool, workers, runs, threads=threads, beside=beside).finish()
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
    """The runs that are not due yet, and those whose step is running."""

    def __init__(
        self,
        clock: Clock,
        pool: ThreadPoolExecutor,
        workers: Workers,
        runs: Iterable[ScheduledRun],
        *,
        threads: int,
        beside: Collection[ScheduledRun] = (),
    ) -> None:
        self._clock = clock
        self._pool = pool
        self._workers = workers
        self._threads = threads
        self._order = count()  # breaks ties: runs are not compared, and the one that was due first goes first
        self._due: list[tuple[float, int, ScheduledRun]] = []
        self._steps: dict[_Step, ScheduledRun] = {}
        self._beside = beside
        for run in (*runs, *beside):
            self._add(run, 0.0)

    def finish(self) -> None:
        """Step every run to its end, but for those beside them."""
        while self._is_open():
            # The last run, or the only one, needs no thread.
            if len(self._due) == 1 and not self._steps:
                self._step_in_caller()
                continue
            self._start_due()
            self._workers.wait(self._seconds_to_next_start(), self._has_returned)
            self._collect()

    def _is_open(self) -> bool:
        if not self._beside:
            return bool(self._due or self._steps)
        open_runs = (*(run for _, _, run in self._due), *self._steps.values())
        return any(run not in self._beside for run in open_runs)

    def _step_in_caller(self) -> None:
        """Step the last run in the caller's thread, which receives Ctrl-C at once. One run is the common case."""
        due_at, _, run = heappop(self._due)
        seconds = due_at - self._clock.now()
        if seconds > 0:
            self._clock.sleep(seconds)
        self._add(run, run.step())

    def _start_due(self) -> None:
        now = self._clock.now()
        while self._due and self._due[0][0] <= now and len(self._steps) < self._threads:
            run = heappop(self._due)[2]
            self._workers.start()
            step = self._pool.submit(copy_context().run, run.step)  # the deadline of the command is in the context
            self._steps[step] = run
            step.add_done_callback(lambda _: self._workers.finish())

    def _seconds_to_next_start(self) -> float | None:
        """Return None if only the return of a step can be next: no thread is free, or no run waits."""
        if not self._due or len(self._steps) >= self._threads:
            return None
        return max(0.0, self._due[0][0] - self._clock.now())

    def _has_returned(self) -> bool:
        return any(step.done() for step in self._steps)

    def _collect(self) -> None:
        """Collect the steps that have returned, in the order in which they were started."""
        for step in [step for step in self._steps if step.done()]:
            run = self._steps.pop(step)
            try:
                pause = step.result()
            except BaseException:
                # A run reports its own errors, so this is an interruption or a bug: every other sleep ends too.
                self._clock.stop()
                raise
            self._add(run, pause)

    def _add(self, run: ScheduledRun, pause: float | None) -> None:
        # A run without a pause has ended.
        if pause is not None:
            heappush(self._due, (self._clock.now() + pause, next(self._order), run))
