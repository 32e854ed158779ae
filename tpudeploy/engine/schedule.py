"""Many runs in one process: each is stepped when it is due, by a few threads, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from tpudeploy.ports import Clock


class Run(Protocol):
    def step(self) -> float | None:
        """Do what is right now; seconds until it must be called again, None at the end."""
        ...


def side_by_side(clock: Clock, runs: Iterable[Run], *, threads: int) -> None:
    """Step all to their end. What a step raises ends every sleep, and is raised here once the others have stopped.

    KeyboardInterrupt is raised at once: a call that Google does not answer would keep its thread for a minute. What
    that call asks for stands in the state.
    """
    pool = ThreadPoolExecutor(max_workers=threads)
    try:
        _step_all(clock, pool, runs)
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def _step_all(clock: Clock, pool: ThreadPoolExecutor, runs: Iterable[Run]) -> None:
    order = count()  # of equals the one that came first; runs are not compared
    due = [(clock.now(), next(order), run) for run in runs]
    while due:
        now = clock.now()
        if due[0][0] > now:
            clock.sleep(due[0][0] - now)
            continue
        ready = list(_due(due, now))
        pauses = _stepped(clock, pool, [run.step for run in ready])
        now = clock.now()
        for run, pause in zip(ready, pauses, strict=True):
            if pause is not None:
                heappush(due, (now + pause, next(order), run))


def _due(queue: list[tuple[float, int, Run]], now: float) -> Iterator[Run]:
    """Taken out of it."""
    while queue and queue[0][0] <= now:
        yield heappop(queue)[2]


def _stepped(clock: Clock, pool: ThreadPoolExecutor, steps: list[Callable[[], float | None]]) -> list[float | None]:
    """One alone runs in the caller's thread: it is the common case, and hears Ctrl-C at once."""
    if len(steps) == 1:
        return [steps[0]()]
    futures = [pool.submit(step) for step in steps]
    try:
        return [future.result() for future in futures]
    except BaseException:
        clock.stop()
        for future in futures:
            future.cancel()
        raise
