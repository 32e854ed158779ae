"""Runs one command in its own session, and kills that session when our owner ends, in whatever way.

Started by path, with the standard library alone: `warden.py [-unit] EXIT_FILE COMMAND…`. Our standard input is a pipe
that our owner holds open and never writes to: its end is the owner's end. What a unit of systemd's still runs ends
with it, as its control group does, after a SIGTERM; the process id of a unit is in EXIT_FILE.pid.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path

SET_PARENT_DEATH_SIGNAL, SET_CHILD_SUBREAPER = 1, 36  # <linux/prctl.h>
GRACE = 2.0  # real seconds that a unit has after SIGTERM


def prctl(option: int, value: int) -> None:
    """Linux alone; elsewhere the pipe does the work by itself."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def start(command: list[str]) -> int:
    pid = os.fork()
    if pid == 0:
        os.setsid()
        prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execv(command[0], command)  # noqa: S606 - no shell: the command is a list
    return pid


def kill_at_end_of_input(group: int, grace: float) -> None:
    while os.read(0, 1):
        pass
    if grace:
        send(signal.SIGTERM, group)
        time.sleep(grace)
    send(signal.SIGKILL, group)
    os._exit(1)


def send(number: signal.Signals, group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
    for pid in session(group):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def session(leader: int) -> list[int]:
    """Return the processes of a session, those with their own group (as under `timeout`) too; Linux only."""
    pids = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = file.read_text("utf-8", "replace").rpartition(")")[2].split()
            if int(fields[3]) == leader:
                pids.append(int(file.parent.name))
    return pids


def wait_for_group(group: int) -> None:
    """Wait for what the command still runs in the background. On Linux all of that has become our child."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS answers EPERM for a group of zombies
        while True:
            os.killpg(group, 0)
            time.sleep(0.2)


def forget_interrupts() -> None:
    """Do as session.forget_interrupts: here only the standard library can be imported, and SIGINT is blocked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    forget_interrupts()
    is_unit = sys.argv[1] == "-unit"
    exit_file, *command = sys.argv[2 if is_unit else 1 :]
    prctl(SET_CHILD_SUBREAPER, 1)
    group = start(command)
    if is_unit:
        Path(f"{exit_file}.pid").write_text(str(group), encoding="ascii")
    threading.Thread(target=kill_at_end_of_input, args=(group, GRACE if is_unit else 0.0), daemon=True).start()
    _, status = os.waitpid(group, 0)
    if is_unit:
        send(signal.SIGKILL, group)
    part_file = Path(f"{exit_file}.part")
    part_file.write_text(str(os.waitstatus_to_exitcode(status)), encoding="ascii")
    part_file.replace(exit_file)  # half a number is never read
    wait_for_group(group)


if __name__ == "__main__":
    main()
