"""Processes in sessions of their own, which a Ctrl-C at the emulator's terminal never reaches."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

GRACE = 60.0  # real seconds for a session to end
_WARDEN = Path(__file__).with_name("warden.py")


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


def start_warden(
    words: Sequence[str], *, console: Path, environment: Mapping[str, str], folder: Path
) -> subprocess.Popen[bytes]:
    """Start a command under warden.py, whose own arguments come first in `words`; it prints to the console."""
    with console.open("ab") as output:
        command = [sys.executable, "-I", "-S", str(_WARDEN), *words]
        return start(command, output=output, environment=environment, folder=folder)


def end_warden(process: subprocess.Popen[bytes]) -> None:
    """End a warden with its session, which it kills when it sees the end of its input."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def read_exit_code(file: Path) -> int | None:
    """Return the exit code that a warden wrote; None where it has not, or was killed itself."""
    with contextlib.suppress(FileNotFoundError):
        return int(file.read_text("ascii"))
    return None


def forget_interrupts() -> None:
    """Drop a SIGINT that came before this process had its own session, and receive later ones as usual."""
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which also discards one that is pending
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, usual)
