"""Ctrl-C and SIGTERM while a run is under way: the first ends it in good order, within seconds; the second at once.

Only the console script hears signals: a library's signals are its caller's.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from tpudeploy.cli import exits

# Together below the five seconds in which a pipeline that ends us wants to see us gone (GitHub's are 7.5).
_FOR_THE_STEP = 2.0  # then a call that Google has not answered is left: the intent in the state names what it asked for
_FOR_THE_LOCK = 2.0
SAID = "Interrupted: nothing new is begun, and what is under way is saved. Once more ends it at once."
_AT_ONCE = (
    "\nInterrupted twice: ended at once. The state names all that was asked for; run the same command to go on.\n"
)
_TOO_LONG = (
    "\nEnded without an answer: the state names all that was asked for, but its lock may be left in the bucket.\n"
)


@contextmanager
def ending_well(
    stop: Callable[[], None], say: Callable[[str], None], *, said: str = SAID, is_last: bool = True
) -> Iterator[None]:
    """`stop` ends the run's sleeps and begins nothing more; `say` tells the person. Both are called in a thread.

    A step that is under way then has its time to end; after that KeyboardInterrupt is raised in it. Where it is not
    the last, what follows takes its time: the process is not ended, and a second signal is a KeyboardInterrupt.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.default_int_handler:
        yield  # not the console script
        return
    over = threading.Event()
    main = threading.main_thread().ident or 0

    def first(_number: int, _frame: FrameType | None) -> None:
        _hear(_at_once if is_last else signal.default_int_handler, signal.SIGINT, signal.SIGTERM)
        # Not here: what this thread was doing may hold the locks that these take.
        threading.Thread(target=wind_down, name="interrupt", daemon=True).start()

    def wind_down() -> None:
        try:
            say(said)  # first, or the run may have said its last word
        finally:
            stop()
        if not over.wait(_FOR_THE_STEP):
            signal.pthread_kill(main, signal.SIGALRM)
        if not is_last:
            return
        time.sleep(_FOR_THE_LOCK)
        _end(_TOO_LONG)

    def late(_number: int, _frame: FrameType | None) -> None:
        if not over.is_set():
            raise KeyboardInterrupt

    _hear(late, signal.SIGALRM)
    _hear(first, signal.SIGINT, signal.SIGTERM)
    try:
        yield
    finally:
        over.set()
        if signal.getsignal(signal.SIGTERM) is first:
            _hear(signal.default_int_handler, signal.SIGINT, signal.SIGTERM)


def _hear(handler: Callable[[int, FrameType | None], None], *numbers: signal.Signals) -> None:
    for number in numbers:
        signal.signal(number, handler)


def _at_once(_number: int, _frame: FrameType | None) -> None:
    _end(_AT_ONCE)


def _end(why: str) -> None:
    """Past every buffer: whoever is interrupted may hold its lock."""
    os.write(2, why.encode())
    os._exit(exits.INTERRUPTED)
