"""One function over many things by a few threads: all of it, in order, and no more once something fails."""

from __future__ import annotations

import threading
from contextvars import ContextVar

import pytest
from real_time import DEADLINE

from tpudeploy.domain.together import together


def test_every_result_is_in_its_place() -> None:
    assert together(4, lambda number: number * number, range(100)) == [number * number for number in range(100)]


def test_no_more_are_under_way_at_once_than_there_are_threads() -> None:
    meeting = threading.Barrier(3)

    def meet(_: int) -> int:
        meeting.wait(timeout=DEADLINE)
        return threading.get_ident()

    assert len(set(together(3, meet, range(3)))) == 3


def test_one_alone_is_done_by_the_caller() -> None:
    assert together(8, lambda _: threading.get_ident(), [1]) == [threading.get_ident()]
    assert set(together(1, lambda _: threading.get_ident(), [1, 2, 3])) == {threading.get_ident()}


def test_once_one_fails_no_other_is_begun() -> None:
    begun: list[int] = []
    failed = threading.Event()

    def deed(number: int) -> None:
        begun.append(number)
        if number == 0:
            failed.set()
            raise ValueError(number)
        failed.wait(timeout=DEADLINE)

    with pytest.raises(ValueError, match="0"):
        together(2, deed, range(1000))
    assert len(begun) < 1000


def test_the_deadline_of_a_command_is_that_of_its_threads() -> None:
    deadline = ContextVar("deadline", default=0)
    token = deadline.set(7)
    try:
        assert together(4, lambda _: deadline.get(), range(8)) == [7] * 8
    finally:
        deadline.reset(token)
