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
from math import inf
from pathlib import Path
from typing import Any, Self

from tpudeploy.adapters.local_routers import LOCK, PROGRAM, STATUS, find_program, holder, read_tree
from tpudeploy.adapters.state import disk
from tpudeploy.catalog.routers import ROUTERS
from tpudeploy.domain import errors
from tpudeploy.domain.router import RoutedReplica, Router, RouterHost, RouterKind, published_replicas, published_router
from tpudeploy.node.router_configuration import NEW_KEY, Configuration, configuration

_TURN = 0.25  # seconds between two looks at the program
_STEADY = 10.0  # seconds after which a program that ends is started again at once; before, after a growing pause
_LONGEST_PAUSE = 30.0
_SETTLED = 1.0  # HAProxy ends if the signal arrives before it handles it
_GRACE = 180.0  # for the responses under way when the router is stopped
# How long the replicas of a list stay beside those of the next one if no replica is on both: a router first has to find
# the new ones healthy. A replica serves for longer than that after it has left the list.
_OVERLAP = 15.0
_YIELD = 5.0  # how long a program that ends may keep the port that the next one needs
# The signals at which a program ends once its responses have ended. Envoy has none, and ends at once.
_STOP_SIGNALS = {RouterKind.HAPROXY: signal.SIGUSR1}
# How long the router still serves clients that have its address, after the profile has another one or none any more.
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
        self._replicas: tuple[RoutedReplica, ...] = ()
        self._previous: tuple[RoutedReplica, ...] = ()
        self._overlap_ends_at = 0.0
        self._program: _Program | None = None
        self._retired: list[_Program] = []  # programs of earlier settings, which end
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
            self._program = _Program.find(self._folder)
            next_read = 0.0
            try:
                while not self._stopped.is_set():
                    if time.monotonic() >= next_read:
                        self._follow()
                        next_read = time.monotonic() + self._interval
                    self._retired = [program for program in self._retired if not program.has_ended()]
                    self._supervise()
                    self._stopped.wait(_TURN)
            finally:
                self._end_programs()

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
        if router is None or router.host is RouterHost.VM or self._has_left(router):
            self._wind_down()
        else:
            self._ends_at, self._router = None, router
        if self._router is not None:
            replicas = self._with_previous(replicas)
            self._configure(self._router, configuration(self._router, replicas, self._name))

    def _with_previous(self, replicas: tuple[RoutedReplica, ...]) -> tuple[RoutedReplica, ...]:
        """Return the replicas with those of the previous list, for a while, if none of them is on both lists."""
        now = time.monotonic()
        if replicas and not set(replicas) & set(self._replicas):
            self._previous, self._overlap_ends_at = self._replicas, now + _OVERLAP
        self._replicas = replicas
        if now >= self._overlap_ends_at:
            self._previous = ()
        return (*replicas, *(each for each in self._previous if each not in replicas))

    def _has_left(self, router: Router) -> bool:
        """Return whether the router that ran here is to run where the user starts it, at another address.

        At the same address, this process continues to serve until the user starts another one in its place.
        """
        if self._router is None or self._router.host is not RouterHost.LOCAL:
            return False
        return router.host is RouterHost.OWN and router.url != self._router.url

    def _wind_down(self) -> None:
        """Serve clients that still have the router's address for a while after it is no longer the one to use."""
        now = time.monotonic()
        if self._ends_at is None:
            self._ends_at = now + _WIND_DOWN
        if self._router is None or now >= self._ends_at:
            self._report(f"{self._name} has no router on this machine in its profile.")
            self.stop()

    def _configure(self, router: Router, new: Configuration) -> None:
        old = self._configuration
        if new == old:
            return
        # Before the first turn, the folder has the files of a program that another process left.
        changed = {path for path, text in new.files.items() if self._text(path) != text}
        for path in sorted(changed):
            disk.replace(self._folder / path, new.files[path], is_private=True)
        self._configuration = new
        self._report(f"{router.kind} at {router.url}: replicas that take requests: {len(self._replicas)}")
        if self._program is None:
            return
        if self._program.url != router.url:
            # Clients have the previous address for a while, and the next program needs another port.
            self._report(f"{router.kind} starts at {router.url}; {self._program.url} ends in {_WIND_DOWN:.0f} s.")
            self._retire(_WIND_DOWN)
        elif self._program.command != new.command or changed - {new.watched, new.reloaded}:
            self._report(f"{router.kind} is started again, because its settings changed.")
            self._retire(0.0)
        elif new.reloaded in changed:
            self._program.must_reload = True

    def _text(self, path: str) -> str | None:
        """Return what a file of the router contains, or None."""
        if self._configuration is not None:
            return self._configuration.files.get(path)
        try:
            return (self._folder / path).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None

    def _retire(self, seconds: float) -> None:
        """Let the running program end after this time, beside the next one."""
        if self._program is not None:
            self._program.end_later(seconds)
            self._retired.append(self._program)
            self._program = None
        self._start_at = 0.0

    def _supervise(self) -> None:
        """Start the router's program if it does not run, and note why it ended."""
        if self._router is None or self._configuration is None:
            return
        now = time.monotonic()
        if self._program is not None:
            end = self._program.poll()
            if not end:
                return
            ran_for, self._program = now - self._program.began, None
            self._start_later(f"{self._router.kind} ended {end}".rstrip(), is_steady=ran_for >= _STEADY)
        if now < self._start_at:
            return
        if not _is_taken(self._router):
            self._program = _Program.start(self._router, self._configuration, self._folder)
        elif any(program.url == self._router.url for program in self._retired):
            # Its predecessor ends, and most programs give up the port before their last response has ended.
            for program in self._retired:
                program.end_soon(_YIELD)
        else:
            # HAProxy and Envoy would share the port, and get a part of the requests each.
            self._start_later(f"another process listens at {self._router.url}", is_steady=False)

    def _start_later(self, problem: str, *, is_steady: bool) -> None:
        """Report a problem, and start the program after a pause that grows, or at once after one that ran for long."""
        self._pause = 0.0 if is_steady else min(max(1.0, 2 * self._pause), _LONGEST_PAUSE)
        self._start_at = time.monotonic() + self._pause
        self.restarts += 1
        again = "now" if is_steady else f"in {self._pause:.0f} s"
        sentence = f"{self._name}: {problem}; the router is started again {again}."
        self._report(sentence)
        self._write_status(sentence)

    def _end_programs(self) -> None:
        """Let the responses under way end, then end all programs."""
        self._retire(0.0)
        for program in self._retired:
            program.end_later(0.0)
        while self._retired:
            self._retired = [program for program in self._retired if not program.has_ended()]
            time.sleep(_TURN)
        (self._folder / PROGRAM).unlink(missing_ok=True)

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
    """A running program of a router. `must_reload` is set when a file changed that it does not watch.

    One that was left by a process that was killed is taken over: it serves its clients all the time.
    """

    def __init__(self, process: subprocess.Popen[bytes] | None, facts: Mapping[str, Any]) -> None:
        """Wrap the process of this run, or the one that the `facts` of an earlier run name."""
        self._process = process
        self._pid, self._started_at = int(facts["pid"]), str(facts["started_at"])
        self._stop_signal = _STOP_SIGNALS.get(facts["kind"], signal.SIGTERM)
        self.url, self.command = str(facts["url"]), tuple(facts["command"])
        self.began = time.monotonic()
        self.must_reload = False
        self._stop_at, self._kill_at, self._is_stopped = inf, inf, False

    @classmethod
    def start(cls, router: Router, configuration: Configuration, folder: Path) -> Self:
        """Start it. Raise `errors.ConfigError` where it is not installed."""
        key = secrets.token_urlsafe(24)
        program, *words = (word.replace(NEW_KEY, key) for word in configuration.command)
        path = find_program(program)
        if path is None:
            install = ROUTERS[router.kind].install
            raise errors.ConfigError(f"`{program}` is not installed on this machine.", hint=f"Install it: {install}")
        process = subprocess.Popen([path, *words], cwd=folder, stdin=subprocess.DEVNULL, start_new_session=True)
        facts = {"pid": process.pid, "started_at": _start_of(process.pid), "kind": router.kind.value, "url": router.url}
        facts["command"] = list(configuration.command)
        disk.replace(folder / PROGRAM, json.dumps(facts) + "\n", is_private=True)
        return cls(process, facts)

    @classmethod
    def find(cls, folder: Path) -> Self | None:
        """Return the program that an earlier process left running, or None."""
        facts = read_tree(folder / PROGRAM)
        if not facts.keys() >= {"pid", "started_at", "kind", "url", "command"} or not facts["started_at"]:
            return None
        # Another process may have its id by now.
        return cls(None, facts) if _start_of(facts["pid"]) == facts["started_at"] else None

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
                self._kill()
            elif now >= self._stop_at and not self._is_stopped:
                self._is_stopped = True
                self._send(self._stop_signal)
            return False
        self._kill()
        return True

    def _end(self) -> str:
        if self._process is None:
            return "" if _start_of(self._pid) == self._started_at else "by itself"
        code = self._process.poll()
        return "" if code is None else f"with exit code {code}"

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)


def _start_of(pid: int) -> str:
    """Return when a process was started, in a form of the kernel's own, or "" if it does not run or cannot be seen."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
