"""Become a command that gets SIGTERM when the emulator that started it dies. Run by path: PID COMMAND...

Only Linux can promise this; elsewhere the command finds its cloud gone and ends by itself.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(owner: str, *command: str) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != int(owner):
            raise SystemExit(f"process {owner} has ended")
    os.execvp(command[0], command)  # noqa: S606  a command is a list, never shell text


if __name__ == "__main__":
    main(*sys.argv[1:])
