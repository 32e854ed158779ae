"""Child processes: each in a session of its own, so that Ctrl-C is ours to handle, and ended with its descendants."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tpudeploy.domain.errors import Interrupted

_WITHOUT_SECRETS = ("HOME", "LANG", "PATH", "TMPDIR")


def bare_environment() -> dict[str, str]:
    """Return what a program that needs no account is given of our environment: no token, and none of our settings."""
    return {name: os.environ[name] for name in _WITHOUT_SECRETS if name in os.environ}


@contextmanager
def child(command: Sequence[str], *, grace_seconds: float = 0.0, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process that runs at most as long as this context. `options` are those of `subprocess.Popen`.

    A terminal sends SIGINT to the whole foreground process group, and a child in that group may end before our own
    handler has run: its death would be taken for a failure. At the end the child and its descendants get SIGTERM and
    `grace_seconds`, then SIGKILL. Raise OSError where the program cannot be started.
    """
    process = subprocess.Popen(command, start_new_session=True, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            _end(process, grace_seconds)


def check_interrupt(process: subprocess.Popen[Any], message: str = "Interrupted.") -> None:
    """Raise `errors.Interrupted` where SIGINT ended a child.

    Until its setsid a child is of our process group, so Ctrl-C may reach it there. Nothing else sends it this signal.
    """
    if process.returncode == -signal.SIGINT:
        raise Interrupted(message)


def _end(process: subprocess.Popen[Any], grace_seconds: float) -> None:
    if grace_seconds:
        _signal(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace_seconds)
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: subprocess.Popen[Any], number: signal.Signals) -> None:
    """Signal the whole session: its id is that of the child, as long as anything of it lives."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
