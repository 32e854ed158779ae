"""The process of one router: it follows the endpoint document, rewrites the router's files, and restarts the router.

Why: decision 63 in docs/decisions.md.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tpudeploy.adapters.local_routers import LOCK, STATUS, find_program, holder
from tpudeploy.adapters.state import disk
from tpudeploy.catalog.routers import ROUTERS
from tpudeploy.domain import errors
from tpudeploy.domain.router import Router, RouterKind, published_replicas, published_router
from tpudeploy.router.configuration import NEW_KEY, Configuration, configuration

_TURN = 0.25  # seconds between two looks at the program
_STEADY = 10.0  # seconds after which a program that ends is started again at once; before, after a growing pause
_LONGEST_PAUSE = 30.0
_SETTLED = 1.0  # HAProxy ends if the signal arrives before it handles it
_GRACE = 180.0  # for the responses under way when the router is stopped
# The signals at which a program ends once its responses have ended. Envoy has none, and ends at once.
_STOP_SIGNALS = {RouterKind.HAPROXY: signal.SIGUSR1}
# How long the router still serves clients that have its address, after the profile has no router any more.
_WIND_DOWN = 60.0


class RouterProcess:
    """Runs the router of a deployment while its endpoint document names one, or until `stop` is called.

    It waits for the first document, and ends when the document is removed: nothing serves then. `read` returns the
    document, and is called every `interval` seconds; one that cannot be read changes nothing. `report` gets a line for
    each thing that happens. `restarts` counts how often the router ended by itself.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        read: Callable[[], Mapping[str, object] | None],
        report: Callable[[str], None],
        *,
        interval: float,
    ) -> None:
        self._name = name
        self._folder = folder
        self._read = read
        self._report = report
        self._interval = interval
        self._stopped = threading.Event()
        self._router: Router | None = None
        self._configuration: Configuration | None = None
        self._program: _Program | None = None
        self._start_at = 0.0
        self._pause = 0.0
        self.restarts = 0
        self._ends_at: float | None = None
        self._unreadable = ""

    def stop(self) -> None:
        """End `run`, from a signal handler or another thread."""
        self._stopped.set()

    def run(self) -> None:
        """Run the router. Raise `errors.UsageError` if another process does, `errors.ConfigError` without program."""
        disk.make_folder(self._folder)
        with self._locked():
            self._write_status("")
            next_read = 0.0
            try:
                while not self._stopped.is_set():
                    if time.monotonic() >= next_read:
                        self._follow()
                        next_read = time.monotonic() + self._interval
                    self._supervise()
                    self._stopped.wait(_TURN)
            finally:
                self._end_program()

    def _follow(self) -> None:
        """Read the endpoint document, and give the router what it says."""
        try:
            document = self._read()
            router = None if document is None else published_router(document)
            replicas = () if document is None else published_replicas(document)
        except (errors.TpudeployError, ValueError) as cause:
            if str(cause) != self._unreadable:
                self._unreadable = str(cause)
                self._report(f"The endpoint document cannot be read, and the list of replicas stays as it is: {cause}")
            return
        self._unreadable = ""
        if document is None:
            # Before the first document, the apply is still under way.
            if self._router is not None:
                self._report(f"{self._name} has no endpoint any more.")
                self.stop()
            return
        if router is None:
            self._wind_down()
        else:
            self._ends_at, self._router = None, router
        if self._router is not None:
            self._configure(self._router, configuration(self._router, replicas, self._name), len(replicas))

    def _wind_down(self) -> None:
        """Serve clients that still have the router's address for a while after the profile has no router any more."""
        now = time.monotonic()
        if self._ends_at is None:
            self._ends_at = now + _WIND_DOWN
        if self._router is None or now >= self._ends_at:
            self._report(f"{self._name} has no router in its profile.")
            self.stop()

    def _configure(self, router: Router, new: Configuration, count: int) -> None:
        old = self._configuration
        if new == old:
            return
        changed = {path for path, text in new.files.items() if old is None or old.files.get(path) != text}
        for path in sorted(changed):
            disk.replace(self._folder / path, new.files[path], is_private=True)
        self._configuration = new
        self._report(f"{router.kind} at {router.url}: replicas that take requests: {count}")
        if old is None:
            return
        if old.command != new.command or changed - {new.watched, new.reloaded}:
            self._report(f"{router.kind} is started again, because its settings changed.")
            self._end_program()
            self._start_at = 0.0
        elif new.reloaded in changed and self._program is not None:
            self._program.must_reload = True

    def _supervise(self) -> None:
        """Start the router's program if it does not run, and note why it ended."""
        if self._router is None or self._configuration is None:
            return
        now = time.monotonic()
        if self._program is not None:
            code = self._program.poll()
            if code is None:
                return
            ran_for, self._program = now - self._program.began, None
            self._start_later(f"{self._router.kind} ended with exit code {code}", is_steady=ran_for >= _STEADY)
        if now < self._start_at:
            return
        if _is_taken(self._router):
            # HAProxy and Envoy would share the port, and get a part of the requests each.
            self._start_later(f"another process listens at {self._router.url}", is_steady=False)
        else:
            self._program = _Program(self._router, self._configuration, self._folder)

    def _start_later(self, problem: str, *, is_steady: bool) -> None:
        """Report a problem, and start the program after a pause that grows, or at once after one that ran for long."""
        self._pause = 0.0 if is_steady else min(max(1.0, 2 * self._pause), _LONGEST_PAUSE)
        self._start_at = time.monotonic() + self._pause
        self.restarts += 1
        again = "now" if is_steady else f"in {self._pause:.0f} s"
        sentence = f"{self._name}: {problem}; the router is started again {again}."
        self._report(sentence)
        self._write_status(sentence)

    def _end_program(self) -> None:
        if self._program is not None:
            self._program.end()
            self._program = None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the folder's lock, which the kernel releases when this process ends."""
        handle = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as cause:
                pid = holder(self._folder)
                process = "another process" if pid is None else f"process {pid}"
                raise errors.UsageError(f"The router of {self._name} is already run by {process}.") from cause
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(handle)

    def _write_status(self, problem: str) -> None:
        status = {"restarts": self.restarts, "problem": problem}
        disk.replace(self._folder / STATUS, json.dumps(status) + "\n", is_private=True)


def _is_taken(router: Router) -> bool:
    """Return whether a process listens at the router's address already."""
    with socket.socket() as probe:
        # Connections of a router that has ended do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((router.address, router.port))
        except OSError as cause:
            return cause.errno == errno.EADDRINUSE
    return False


class _Program:
    """The running program of a router. `must_reload` is set when a file changed that it does not watch."""

    def __init__(self, router: Router, configuration: Configuration, folder: Path) -> None:
        """Start it. Raise `errors.ConfigError` where it is not installed."""
        key = secrets.token_urlsafe(24)
        program, *words = (word.replace(NEW_KEY, key) for word in configuration.command)
        path = find_program(program)
        if path is None:
            install = ROUTERS[router.kind].install
            raise errors.ConfigError(f"`{program}` is not installed on this machine.", hint=f"Install it: {install}")
        self._process = subprocess.Popen([path, *words], cwd=folder, stdin=subprocess.DEVNULL, start_new_session=True)
        self._stop_signal = _STOP_SIGNALS.get(router.kind, signal.SIGTERM)
        self.began = time.monotonic()
        self.must_reload = False

    def poll(self) -> int | None:
        """Return the exit code once it has ended; until then, let it read its file again if it has to."""
        code = self._process.poll()
        if code is None and self.must_reload and time.monotonic() >= self.began + _SETTLED:
            self._process.send_signal(signal.SIGUSR2)
            self.must_reload = False
        return code

    def end(self) -> None:
        """Let the responses under way end, then end it with all its processes."""
        self._process.send_signal(self._stop_signal)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
