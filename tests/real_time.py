"""How long a test waits for what happens in real time: in another process, or in a thread that no virtual clock moves."""

from __future__ import annotations

import time
from collections.abc import Callable

# Seconds for what takes moments. A test that passes never waits as long, on a machine a hundred times as slow neither.
DEADLINE = 300.0


def until(condition: Callable[[], object], what: str = "", *, log: Callable[[], object] = str) -> None:
    """Wait until the condition holds. If it never does, the test fails with `what`, and what `log` then returns."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {DEADLINE:.0f} s\n{log()}"
        time.sleep(0.02)
