"""Many runs in one process: each is stepped when it is due, by a few threads, however many there are."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from tpudeploy.ports import Clock, Workers

_Step = Future[float | None]


class Run(Protocol):
    def step(self) -> float | None:
        """Do what is right now; seconds until it must be called again, None at the end."""
        ...


def side_by_side(clock: Clock, runs: Iterable[Run], *, threads: int) -> None:
    """Step all runs to their end, at most `threads` of them at once.

    A run is due again when its own step has returned: a step that takes minutes delays no other run. What a step
    raises ends every sleep, and is raised here once the others have stopped.

    KeyboardInterrupt is raised at once: a call that Google does not answer would keep its thread for a minute. What
    that call asks for stands in the state.
    """
    pool = ThreadPoolExecutor(max_workers=threads)
    try:
        with clock.workers() as workers:
            _Schedule(clock, pool, workers, runs, threads=threads).finish()
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


class _Schedule:
    """The runs that wait for their moment, and those whose step is under way."""

    def __init__(
        self, clock: Clock, pool: ThreadPoolExecutor, workers: Workers, runs: Iterable[Run], *, threads: int
    ) -> None:
        self._clock = clock
        self._pool = pool
        self._workers = workers
        self._threads = threads
        self._order = count()  # breaks ties: runs are not compared, and the one that was due first goes first
        self._due: list[tuple[float, int, Run]] = []
        self._steps: dict[_Step, Run] = {}
        for run in runs:
            self._add(run, 0.0)

    def finish(self) -> None:
        """Step every run to its end."""
        while self._due or self._steps:
            if len(self._due) == 1 and not self._steps:
                self._step_alone()
                continue
            self._start_due()
            self._workers.wait(self._seconds_to_next_start(), self._has_returned)
            self._collect()

    def _step_alone(self) -> None:
        """Step the last run in the caller's thread: one run is the common case, and hears Ctrl-C at once."""
        moment, _, run = heappop(self._due)
        seconds = moment - self._clock.now()
        if seconds > 0:
            self._clock.sleep(seconds)
        self._add(run, run.step())

    def _start_due(self) -> None:
        now = self._clock.now()
        while self._due and self._due[0][0] <= now and len(self._steps) < self._threads:
            run = heappop(self._due)[2]
            self._workers.start()
            step = self._pool.submit(run.step)
            self._steps[step] = run
            step.add_done_callback(lambda _: self._workers.finish())

    def _seconds_to_next_start(self) -> float | None:
        """Return None where the next event can only be the return of a step: no thread is free, or nothing is due."""
        if not self._due or len(self._steps) >= self._threads:
            return None
        return max(0.0, self._due[0][0] - self._clock.now())

    def _has_returned(self) -> bool:
        return any(step.done() for step in self._steps)

    def _collect(self) -> None:
        """Take the steps that have returned, in the order in which they were started."""
        for step in [step for step in self._steps if step.done()]:
            run = self._steps.pop(step)
            try:
                pause = step.result()
            except BaseException:
                self._clock.stop()
                raise
            self._add(run, pause)

    def _add(self, run: Run, pause: float | None) -> None:
        if pause is not None:
            heappush(self._due, (self._clock.now() + pause, next(self._order), run))
