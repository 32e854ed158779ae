"""Whether the processes of a startup script and of its units are idle: nothing computes, and every shim naps.

A script that does several things at once waits in one process while it computes in another. Time must not move before
each of them waits, or how long things take would depend on how fast the emulator's own machine is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator

from tpudeploy.emulator.machine import shims
from tpudeploy.emulator.machine.root import SHIMS

_MOST = 65536  # bytes of a file below /proc: the shims are named at the beginning of a command line
_SWITCHES = re.compile(r"ctxt_switches:\s*(\d+)")
_SHIMS = (f"/{SHIMS}/", str(shims.WHOLE))  # as bash, or as Python after it
_IDLE = "SZTt"  # proc(5): sleeping, a zombie, stopped

# Processes, each with how often it was put to sleep or aside: after any work the number is another.
ProcessCounts = frozenset[tuple[int, int]]


def idle_processes(wardens: Collection[int], napping: Collection[int]) -> ProcessCounts | None:
    """Return the processes below `wardens`, each with its count; None where one of them is at work.

    `napping` are the shims that wait for time. One look can miss what passes from process to process: two that are
    the same do not. Only Linux has the counts; elsewhere a shim that naps is taken for the whole script.
    """
    below = dict(_below(wardens))
    if any(state not in _IDLE for state in below.values()):
        return None
    moving = (pid for pid in below if pid not in napping and _is_shim(pid))
    return None if any(moving) else frozenset((pid, _count_switches(pid)) for pid in below)


def _below(wardens: Collection[int]) -> Iterator[tuple[int, str]]:
    """Yield every process below these, at any depth, with its state. Other processes of the machine are not read."""
    ahead = list(wardens)
    while ahead:
        for child in _children(ahead.pop()):
            state = _read(f"{child}/stat").rpartition(")")[2].split()[:1]
            if state:  # otherwise it ended meanwhile
                yield child, state[0]
                ahead.append(child)


def _children(pid: int) -> Iterator[int]:
    """Yield the children of a process: proc(5), /proc/PID/task/TID/children, since Linux 3.5."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - a glob stumbles over what ends meanwhile
    except OSError:
        return
    for thread in threads:
        yield from map(int, _read(f"{pid}/task/{thread}/children").split())


def _is_shim(pid: int) -> bool:
    line = _read(f"{pid}/cmdline")
    return any(shim in line for shim in _SHIMS)


def _count_switches(pid: int) -> int:
    return sum(map(int, _SWITCHES.findall(_read(f"{pid}/status"))))


def _read(name: str) -> str:
    """Return a file below /proc; "" for a process that has ended. A boot reads thousands: pathlib would cost thrice."""
    try:
        handle = os.open(f"/proc/{name}", os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(handle, _MOST).decode("utf-8", "replace")
    except OSError:  # it ended meanwhile
        return ""
    finally:
        os.close(handle)
