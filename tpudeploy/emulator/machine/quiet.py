"""Whether the processes of a startup script and of its units stand still: nothing computes, and every shim naps.

A script that does several things at once waits in one process while it computes in another. Time must not move before
each of them waits, or how long things take would depend on how fast the emulator's own machine is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

_PROC = Path("/proc")
_SWITCHES = re.compile(r"ctxt_switches:\s*(\d+)")
_SHIM = str(Path(__file__).with_name("shim.py"))
_STILL = "SZTt"  # proc(5): sleeping, a zombie, stopped


Look = frozenset[tuple[int, int]]


def standing_still(wardens: Collection[int], napping: Collection[int]) -> Look | None:
    """The processes below `wardens`, each with how often it came and went; None where one of them is at work.

    `napping` are the shims that wait for time. One look can miss what passes from process to process: two that are
    alike do not. Known on Linux alone; elsewhere whoever naps is taken for the whole script.
    """
    parents = dict(_processes())
    below = {pid: state for pid, (state, _) in parents.items() if _is_below(pid, wardens, parents)}
    if any(state not in _STILL for state in below.values()):
        return None
    moving = (pid for pid in below if pid not in napping and _is_shim(pid))
    return None if any(moving) else frozenset((pid, _switches(pid)) for pid in below)


def _processes() -> Iterator[tuple[int, tuple[str, int]]]:
    """Process → its state and its parent."""
    for name in os.listdir(_PROC) if _PROC.is_dir() else ():  # noqa: PTH208 - a glob stumbles over what ends meanwhile
        if not name.isdecimal():
            continue
        try:
            fields = (_PROC / name / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:  # it ended while we looked
            continue
        yield int(name), (fields[0], int(fields[1]))


def _is_below(pid: int, wardens: Collection[int], parents: dict[int, tuple[str, int]]) -> bool:
    while pid in parents:
        pid = parents[pid][1]
        if pid in wardens:
            return True
    return False


def _is_shim(pid: int) -> bool:
    try:
        return _SHIM in (_PROC / str(pid) / "cmdline").read_text("utf-8", "replace").split("\0")
    except OSError:
        return False


def _switches(pid: int) -> int:
    """How often it was put to sleep or aside: one that did anything in between has another number."""
    try:
        return sum(map(int, _SWITCHES.findall((_PROC / str(pid) / "status").read_text("utf-8", "replace"))))
    except OSError:
        return -1
