"""Ctrl-C and SIGTERM: as the end of a wait, or handed on to a command."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ended_by_signal() -> Iterator[Callable[[], None]]:
    """Yield a wait that ends at the first SIGINT or SIGTERM, also at one that came before it began."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    previous_fd = signal.set_wakeup_fd(writer)
    old = {number: signal.signal(number, _ignore) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: _wait_for(reader, frozenset(old))
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(previous_fd)
        os.close(reader)
        os.close(writer)


def _wait_for(reader: int, numbers: frozenset[int]) -> None:
    while not numbers & frozenset(os.read(reader, 64)):
        pass


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the signal's number goes to the wake-up pipe, but a handler must exist."""


@contextmanager
def signals_reach(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ctrl-C reaches the child by the terminal, SIGTERM through us; both leave it to the child how to end."""

    def forward(number: int, _frame: FrameType | None) -> None:
        child.send_signal(number)

    old = {signal.SIGINT: signal.signal(signal.SIGINT, _ignore), signal.SIGTERM: signal.signal(signal.SIGTERM, forward)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        if child.poll() is None:
            child.terminate()
            child.wait()
