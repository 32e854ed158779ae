"""Processes in sessions of their own, which a Ctrl-C at the emulator's terminal never reaches."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO


def start(
    words: Sequence[str], *, output: IO[bytes], environment: Mapping[str, str], folder: Path
) -> subprocess.Popen[bytes]:
    """Start a Python program of the emulator with a pipe for its standard input.

    A child belongs to the caller's process group until it calls setsid, so a Ctrl-C in between would kill it. SIGINT is
    blocked from before the fork; the program calls `forget_interrupts` first of all.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def forget_interrupts() -> None:
    """Drop a SIGINT that came before this process had its own session, and receive later ones as usual."""
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which also discards one that is pending
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, usual)
