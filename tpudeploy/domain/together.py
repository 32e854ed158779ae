"""Parallel application of one function by a few threads, for calls that wait for the network."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

# The default number of parallel calls or deployments.
PARALLELISM = 8

T = TypeVar("T")
R = TypeVar("R")


def together(threads: int, function: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """Return the results of `function` in order. A single call runs in the caller's thread, all in its context.

    An exception of a call is raised here after the running calls have ended; no further call is started.
    """
    items = list(things)
    if threads <= 1 or len(items) <= 1:
        return [function(item) for item in items]

    results: dict[int, R] = {}
    queue = deque(enumerate(items))

    def work() -> None:
        try:
            while (numbered_item := _next_item(queue)) is not None:
                number, item = numbered_item
                results[number] = function(item)
        except BaseException:
            queue.clear()
            raise

    with ThreadPoolExecutor(max_workers=min(threads, len(items))) as pool:
        try:
            for worker in [pool.submit(copy_context().run, work) for _ in range(min(threads, len(items)))]:
                worker.result()
        except BaseException:
            queue.clear()
            raise
    return [results[number] for number in range(len(items))]


def _next_item(queue: deque[T]) -> T | None:
    """Return the next item, or None if another thread has taken the last one."""
    try:
        return queue.popleft()
    except IndexError:
        return None
