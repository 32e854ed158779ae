"""Many runs and few threads: who is stepped when, and what becomes of the others where one fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from real_time import until

from tpudeploy.emulator import VirtualClock
from tpudeploy.engine.schedule import run_all

START = VirtualClock().now()


class Script:
    """A run whose steps take so many seconds each, and pause for so many between them. It notes when each begins."""

    def __init__(
        self, clock: VirtualClock, *steps: tuple[float, float], note: Callable[[], None] = lambda: None
    ) -> None:
        self.began: list[float] = []
        self._clock = clock
        self._steps: Iterator[tuple[float, float]] = iter(steps)
        self._left = len(steps)
        self._note = note

    def step(self) -> float | None:
        self.began.append(self._clock.now() - START)
        self._note()
        seconds, pause = next(self._steps)
        self._left -= 1
        self._clock.sleep(seconds)
        return pause if self._left else None


def test_every_run_is_stepped_to_its_end_whatever_the_number_of_threads() -> None:
    for threads in (1, 2, 8):
        clock = VirtualClock()
        runs = [Script(clock, (1.0, 10.0), (1.0, 0.0), (1.0, 0.0)) for _ in range(5)]
        run_all(clock, runs, threads=threads)
        assert [len(run.began) for run in runs] == [3] * 5, threads


def test_no_more_steps_than_threads_are_under_way_at_once() -> None:
    clock, guard = VirtualClock(), threading.Lock()
    under_way = most = 0

    class Counted(Script):
        def step(self) -> float | None:
            nonlocal under_way, most
            with guard:
                under_way += 1
                most = max(most, under_way)
            try:
                return super().step()
            finally:
                with guard:
                    under_way -= 1

    run_all(clock, [Counted(clock, (5.0, 0.0), (5.0, 0.0)) for _ in range(7)], threads=3)
    assert most == 3


def test_a_step_that_takes_long_delays_no_run_that_becomes_due_meanwhile() -> None:
    clock = VirtualClock()
    slow, busy = Script(clock, (100.0, 0.0)), Script(clock, *[(0.0, 10.0)] * 6)
    run_all(clock, [slow, busy], threads=2)
    assert busy.began == [0, 10, 20, 30, 40, 50]
    assert slow.began == [0]


def test_a_run_is_stepped_again_after_its_pause_while_others_are_due_at_once() -> None:
    clock = VirtualClock()
    pauses = Script(clock, (0.0, 5.0), (0.0, 0.0))
    at_once = Script(clock, (0.0, 0.0), (60.0, 0.0))
    long = Script(clock, (60.0, 0.0))
    run_all(clock, [pauses, at_once, long], threads=3)
    assert pauses.began == [0, 5]


def test_runs_that_are_due_at_the_same_time_take_turns() -> None:
    clock = VirtualClock()
    order: list[str] = []
    runs = [Script(clock, *[(0.0, 0.0)] * 3, note=partial(order.append, name)) for name in "abc"]
    run_all(clock, runs, threads=1)
    assert "".join(order) == "abcabcabc"


def test_a_failure_is_raised_and_no_run_begins_another_step() -> None:
    clock = VirtualClock()

    class Broken(Script):
        def step(self) -> float | None:
            super().step()
            raise RuntimeError("a bug")

    others = [Script(clock, *[(1.0, 1.0)] * 50) for _ in range(4)]
    with pytest.raises(RuntimeError, match="a bug"):
        run_all(clock, [Broken(clock, (10.0, 0.0)), *others], threads=2)
    assert all(len(other.began) < 50 for other in others)
    seen = [list(other.began) for other in others]
    clock.sleep(100)
    assert [other.began for other in others] == seen


def test_after_ctrl_c_no_run_begins_another_step() -> None:
    clock, threads_before = VirtualClock(), threading.active_count()

    def interrupt() -> None:
        if clock.now() - START >= 10:
            raise KeyboardInterrupt

    clock.on_advance.append(interrupt)
    runs = [Script(clock, *[(1.0, 0.0)] * 1000) for _ in range(4)]
    with pytest.raises(KeyboardInterrupt):
        run_all(clock, runs, threads=4)
    clock.on_advance.remove(interrupt)
    until(lambda: threading.active_count() <= threads_before)
    assert all(len(run.began) < 20 for run in runs)
