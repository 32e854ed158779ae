"""A program of a router that runs, or that an earlier process left running."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, Self

from tpudeploy.adapters.local_routers import PROGRAM, find_program, read_tree
from tpudeploy.adapters.state import disk
from tpudeploy.catalog.routers import ROUTERS
from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.router import Router, RouterKind, published_router
from tpudeploy.node.router_configuration import Configuration

_SETTLED = 1.0  # HAProxy ends if the signal arrives before it handles it
_GRACE = 180.0  # for the responses under way when the router is stopped
# The signals at which a program ends once its responses have ended. Envoy has none, and ends at once.
_STOP_SIGNALS = {RouterKind.HAPROXY: signal.SIGUSR1}


def why_closed(router: Router) -> str:
    """Return why no program can listen at the router's address now, or "" if one can."""
    with socket.socket() as probe:
        # Connections of a router that has ended do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((router.address, router.port))
        except OSError as cause:
            if cause.errno == errno.EADDRINUSE:
                return f"another process listens at {router.url}"
            return f"no program can listen at {router.url}: {cause.strerror or cause}"
    return ""


class Program:
    """A running program of a router. `must_reload` is set when a file changed that it does not watch.

    One that was left by a process that was killed is taken over: it serves its clients all the time.
    """

    def __init__(self, process: subprocess.Popen[bytes] | None, facts: Mapping[str, Any]) -> None:
        """Wrap the process of this run, or the one that the `facts` of an earlier run name."""
        self._process = process
        self._pid, self._started_at = int(facts["pid"]), str(facts["started_at"])
        self._stop_signal = _STOP_SIGNALS.get(facts["kind"], signal.SIGTERM)
        self.url, self.command = str(facts["url"]), tuple(facts["command"])
        self.router = _router_of(facts)
        self.began = time.monotonic()
        self.must_reload = False
        self._stop_at, self._kill_at, self._is_stopped = inf, inf, False

    @classmethod
    def start(cls, router: Router, configuration: Configuration, folder: Path) -> Self:
        """Start it. Raise `ConfigError` where it is not installed."""
        program, *words = configuration.command
        path = find_program(program)
        if path is None:
            install = ROUTERS[router.kind].install
            raise ConfigError(f"`{program}` is not installed on this machine.", hint=f"Install it: {install}")
        process = subprocess.Popen([path, *words], cwd=folder, stdin=subprocess.DEVNULL, start_new_session=True)
        facts: dict[str, Any]
        facts = {"pid": process.pid, "started_at": _start_of(process.pid), "kind": router.kind.value, "url": router.url}
        facts |= {"command": list(configuration.command), "router": router.to_dict()}
        disk.Folder(folder).replace(PROGRAM, json.dumps(facts) + "\n", is_private=True)
        return cls(process, facts)

    @classmethod
    def find(cls, folder: Path) -> Self | None:
        """Return the program that an earlier process left running, or None. End one that does not say what it is."""
        facts = read_tree(disk.Folder(folder), PROGRAM)
        if not facts.keys() >= {"pid", "started_at", "kind", "url", "command"} or not facts["started_at"]:
            return None
        # Another process may have its id by now.
        if _start_of(facts["pid"]) != facts["started_at"]:
            return None
        program = cls(None, facts)
        if program.router is not None:
            return program
        program.kill()
        return None

    def poll(self) -> str:
        """Return how it ended, or "" while it runs; until then, let it read its file again if it has to."""
        end = self._end()
        if not end and self.must_reload and time.monotonic() >= self.began + _SETTLED:
            self._send(signal.SIGUSR2)
            self.must_reload = False
        return end

    def end_later(self, seconds: float) -> None:
        """Let the responses under way end from then on, and end it with all its processes some time after that."""
        self._stop_at = min(self._stop_at, time.monotonic() + seconds)
        self._kill_at = min(self._kill_at, self._stop_at + _GRACE)

    def end_soon(self, seconds: float) -> None:
        """End it with all its processes at most this time after the responses under way were to end."""
        self._kill_at = min(self._kill_at, self._stop_at + seconds)

    def has_ended(self) -> bool:
        """Return whether it has ended. Until then, send it the signal that is due."""
        now = time.monotonic()
        if not self._end():
            if now >= self._kill_at:
                self.kill()
            elif now >= self._stop_at and not self._is_stopped:
                self._is_stopped = True
                self._send(self._stop_signal)
            return False
        self.kill()
        return True

    def _end(self) -> str:
        if self._process is None:
            return "" if _start_of(self._pid) == self._started_at else "by itself"
        code = self._process.poll()
        return "" if code is None else f"with exit code {code}"

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def kill(self) -> None:
        """End it with all its processes at once."""
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        if self._process is not None:
            self._process.wait()


def _router_of(facts: Mapping[str, Any]) -> Router | None:
    """Return the router that a program is, or None for one of an earlier version."""
    try:
        return published_router(facts)
    except ValueError:
        return None


def _start_of(pid: int) -> str:
    """Return when a process was started, in a form of the kernel's own, or "" if it does not run or cannot be seen."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
