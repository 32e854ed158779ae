"""Handle Ctrl-C and SIGTERM during a run: the first stops it gracefully within seconds, the second at once.

Only the console script handles signals: a library leaves them to its caller.

Why: decision 27 in docs/decisions.md.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from tpudeploy.domain import exits

# The sum is below the five seconds after which a pipeline kills the process (GitHub waits 7.5).
_FOR_THE_STEP = 2.0  # then an unanswered call is abandoned: the state already records the request
_FOR_THE_LOCK = 2.0
INTERRUPTED = "Interrupted: no new step starts, and the progress is saved. Interrupt again to stop at once."
_AT_ONCE = "\nInterrupted twice: stopped at once. The state records every request; run the same command to continue.\n"
_TOO_LONG = "\nStopped without an answer: the state records every request, but its lock may remain in the bucket.\n"


@contextmanager
def stopping_gracefully(
    stop: Callable[[], None], say: Callable[[str], None], *, message: str = INTERRUPTED, is_last: bool = True
) -> Iterator[None]:
    """Return a context in which the first signal calls `stop`, and then `say` with the message, in a thread.

    So the message is true when it is printed, and it is printed before the context ends. The current step then has a
    few seconds to end; after that, KeyboardInterrupt is raised in it. Unless `is_last`, the process is not ended,
    because more work follows, and a second signal raises KeyboardInterrupt.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.default_int_handler:
        yield  # not the console script
        return
    over, interruption, announcement = threading.Event(), threading.Event(), threading.Event()
    main = threading.main_thread().ident or 0

    def first(_number: int, _frame: FrameType | None) -> None:
        _handle(_at_once if is_last else signal.default_int_handler, signal.SIGINT, signal.SIGTERM)
        interruption.set()
        # In a thread of its own: the interrupted thread may hold the locks that these calls take.
        threading.Thread(target=wind_down, name="interrupt", daemon=True).start()

    def wind_down() -> None:
        try:
            stop()
        finally:
            try:
                say(message)
            finally:
                announcement.set()
        if not over.wait(_FOR_THE_STEP):
            signal.pthread_kill(main, signal.SIGALRM)
        if not is_last:
            return
        time.sleep(_FOR_THE_LOCK)
        _end(_TOO_LONG)

    def late(_number: int, _frame: FrameType | None) -> None:
        if not over.is_set():
            raise KeyboardInterrupt

    _handle(late, signal.SIGALRM)
    _handle(first, signal.SIGINT, signal.SIGTERM)
    try:
        yield
    finally:
        over.set()
        if interruption.is_set():
            # A run that ended at once prints its last line after that.
            announcement.wait(_FOR_THE_STEP)
        if signal.getsignal(signal.SIGTERM) is first:
            _handle(signal.default_int_handler, signal.SIGINT, signal.SIGTERM)


def _handle(handler: Callable[[int, FrameType | None], None], *numbers: signal.Signals) -> None:
    for number in numbers:
        signal.signal(number, handler)


def _at_once(_number: int, _frame: FrameType | None) -> None:
    _end(_AT_ONCE)


def _end(why: str) -> None:
    """Write without buffers, because the interrupted code may hold their locks, and exit."""
    os.write(2, why.encode())
    os._exit(exits.INTERRUPTED)
