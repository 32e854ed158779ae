"""One function over many things, by a few threads: for calls that wait for somebody else's answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

# Unless a person says otherwise: how many calls, or deployments, are under way at once.
PARALLELISM = 8

T = TypeVar("T")
R = TypeVar("R")


def together(threads: int, function: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """What `function` makes of each, in their order. One alone is done in the caller's thread.

    What it raises is raised here, once the calls under way have come back; no other is begun then.
    """
    todo = list(things)
    if threads <= 1 or len(todo) <= 1:
        return [function(each) for each in todo]
    from concurrent.futures import ThreadPoolExecutor  # most commands do without

    done: dict[int, R] = {}
    left = deque(enumerate(todo))

    def work() -> None:
        try:
            while (taken := _taken(left)) is not None:
                number, each = taken
                done[number] = function(each)
        except BaseException:
            left.clear()
            raise

    with ThreadPoolExecutor(max_workers=min(threads, len(todo))) as pool:
        try:
            for worker in [pool.submit(work) for _ in range(min(threads, len(todo)))]:
                worker.result()
        except BaseException:
            left.clear()
            raise
    return [done[number] for number in range(len(todo))]


def _taken(left: deque[T]) -> T | None:
    """The next one, or None once another thread has taken the last."""
    try:
        return left.popleft()
    except IndexError:
        return None
