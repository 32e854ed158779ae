"""Stops a process (SIGSTOP) at one of its requests, so that another one can take over from it meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest
from shared_clock import COMMAND, SharedClock

from tpudeploy.emulator import Emulator, running
from tpudeploy.emulator.http_server import HttpRequest, Reply

START = 1_790_000_000.0
TESTS = Path(__file__).parent


@dataclass
class Freezer:
    """Stops the process `pid` when its request number `at`, counted from 0, is carried out and not yet answered."""

    at: int | None
    pid: int = 0
    paths: list[str] = field(default_factory=list)
    is_stopped: Event = field(default_factory=Event)

    def __call__(self, method: str, path: str) -> None:
        self.paths.append(f"{method} {path}")
        if len(self.paths) - 1 == self.at:
            os.kill(self.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)
            self.is_stopped.set()


@contextmanager
def cloud(folder: Path, freezer: Freezer, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Emulator, SharedClock]]:
    """A cloud whose requests the freezer counts, and the time that processes share."""
    clock = SharedClock(folder / "time", start=START)
    with running(clock=clock, scenario={"nodes": "simulated", "boot": {"boot_seconds": 60}}) as emulator:
        answer = emulator._server.answer

        def answer_and_freeze(request: HttpRequest) -> Reply:
            reply = answer(request)
            freezer(request.method, request.target)
            return reply

        monkeypatch.setattr(emulator._server, "answer", answer_and_freeze)
        for name, value in {**emulator.environment, "GOOGLE_CLOUD_PROJECT": "emulated"}.items():
            monkeypatch.setenv(name, value)
        yield emulator, clock


@contextmanager
def process(folder: Path, freezer: Freezer, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A command as a process of its own, which the freezer stops."""
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    words = [sys.executable, "-c", COMMAND, str(folder / "time"), *command]
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as run:
        freezer.pid = run.pid
        try:
            yield run
        finally:
            run.kill()
