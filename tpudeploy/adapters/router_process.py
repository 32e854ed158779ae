"""The process of one router: it follows the endpoint document, rewrites the router's files, and restarts the router.

Why: decision 63 in docs/decisions.md.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tpudeploy.adapters.local_routers import LOCK, PROGRAM, STATUS, holder
from tpudeploy.adapters.router_files import RouterFiles
from tpudeploy.adapters.router_program import Program, why_closed
from tpudeploy.adapters.router_trial import RouterTrial
from tpudeploy.adapters.state import disk
from tpudeploy.domain import errors
from tpudeploy.domain.router import RoutedReplica, Router, RouterHost, published_replicas, published_router
from tpudeploy.node.router_configuration import configuration

_TURN = 0.25  # seconds between two looks at the program
_STEADY = 10.0  # seconds after which a program that ends is started again at once; before, after a growing pause
_LONGEST_PAUSE = 30.0
# How long the replicas of a list stay beside those of the next one if no replica is on both: a router first has to find
# the new ones healthy. A replica serves for longer than that after it has left the list.
_OVERLAP = 15.0
_YIELD = 5.0  # how long a program that ends may keep the port that the next one needs
# How long settings that took over and then failed are not tried again.
_REFUSAL = 120.0
# How long the router still serves clients that have its address, after the profile has another one or none any more.
_WIND_DOWN = 60.0


class RouterProcess:
    """Runs the router of a deployment while its endpoint document names one, or until `stop` is called.

    It waits for the first document, and ends when the document is removed: nothing serves then. `read` returns the
    document, and is called every `interval` seconds; one that cannot be read changes nothing. `report` gets a line for
    each thing that happens. `restarts` counts how often the router ended by itself.

    A running program gives way only to one that passes requests on. Until then, that one runs beside it, as a
    `RouterTrial`. If the next one then ends at the address of the clients before it ran for a while, the previous
    settings come back.
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
        self._router: Router | None = None  # that of the document
        self._current: Router | None = None  # the one that clients have
        self._trial: RouterTrial | None = None
        self._previous_router: Router | None = None  # the one before `_current`, until that has run for a while
        self._refused: Router | None = None  # the one that took over and failed, not tried again before `_try_at`
        self._try_at = 0.0
        self._files = RouterFiles(folder)
        self._listed: tuple[RoutedReplica, ...] = ()
        self._replicas: tuple[RoutedReplica, ...] = ()
        self._previous: tuple[RoutedReplica, ...] = ()
        self._overlap_ends_at = 0.0
        self._program: Program | None = None
        self._retired: list[Program] = []  # programs of earlier settings, which end
        self._start_at = 0.0
        self._pause = 0.0
        self.restarts = 0
        self._ends_at: float | None = None
        self._unreadable = ""
        self._problem = ""

    def stop(self) -> None:
        """End `run`, from a signal handler or another thread."""
        self._stopped.set()

    def run(self) -> None:
        """Run the router. Raise `errors.UsageError` if another process does, `errors.ConfigError` without program."""
        disk.Folder(self._folder).make()
        with self._locked():
            RouterTrial.end_leftover(self._folder)
            self._program = Program.find(self._folder)
            self._current = None if self._program is None else self._program.router
            self._write_status("")
            next_read = 0.0
            try:
                while not self._stopped.is_set():
                    if time.monotonic() >= next_read:
                        self._follow()
                        next_read = time.monotonic() + self._interval
                    self._retired = [program for program in self._retired if not program.has_ended()]
                    self._supervise()
                    self._try_next()
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
            self._listed = self._with_previous(replicas)
            self._configure(self._router)

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

    def _configure(self, router: Router) -> None:
        """Give the program that runs its list, and begin a trial if the document's router is another program."""
        program, new = self._program, configuration(router, self._listed, self._name)
        if router == self._refused and time.monotonic() < self._try_at:
            self._end_trial()
        elif program is None or (program.url == router.url and program.command == new.command and self._files.fit(new)):
            # Without a program, clients have nothing that could be lost.
            self._end_trial()
            self._current = router
        elif self._trial is None or self._trial.router != router:
            self._end_trial()
            self._trial = RouterTrial(router, self._folder, self._name)
            self._tell(
                f"{router.kind} is tried beside {program.url}, and takes over once a request comes back through it"
            )
        current = self._current or router
        files = configuration(current, self._listed, self._name)
        if self._files.write(files, but_fixed=self._trial is not None):
            self._report(f"{current.kind} at {current.url}: replicas that take requests: {len(self._replicas)}")
            if program is not None and files.reloaded:
                program.must_reload = True

    def _try_next(self) -> None:
        """Let the router of the document take over once its program passes requests on."""
        trial, program = self._trial, self._program
        if trial is None or program is None:
            return
        problem = trial.turn(self._listed)
        if problem == "" and program.url != trial.router.url:
            problem = why_closed(trial.router)
        if problem:
            self._tell(f"{trial.router.kind} does not take over from {program.url} yet: {problem}")
        elif problem is not None:
            self._report(f"{trial.router.kind} passes requests on, and takes over at {trial.router.url}.")
            # Clients have a previous address for a while.
            self._retire(0.0 if program.url == trial.router.url else _WIND_DOWN)
            self._previous_router, self._current, self._problem = self._current, trial.router, ""
            self._end_trial()
            self._files.write(configuration(self._current, self._listed, self._name))
            self._write_status("")

    def _tell(self, problem: str) -> None:
        """Report what keeps a router from its clients, once."""
        sentence = f"{self._name}: {problem}."
        if sentence != self._problem:
            self._problem = sentence
            self._report(sentence)
            self._write_status(sentence)

    def _end_trial(self) -> None:
        if self._trial is not None:
            self._trial.end()
            self._trial = None

    def _retire(self, seconds: float) -> None:
        """Let the running program end after this time, beside the next one."""
        if self._program is not None:
            self._program.end_later(seconds)
            self._retired.append(self._program)
            self._program = None
        self._start_at = 0.0

    def _supervise(self) -> None:
        """Start the program that clients have if it does not run, and note why it ended."""
        if self._current is None or self._router is None:
            return
        now = time.monotonic()
        if self._program is not None:
            end, is_steady = self._program.poll(), now - self._program.began >= _STEADY
            if is_steady:
                self._previous_router = None
            if not end:
                return
            self._program = None
            problem = f"{self._current.kind} ended {end}".rstrip()
            if self._previous_router is None:
                self._start_later(problem, is_steady=is_steady)
            else:
                self._return_to(self._previous_router, problem)
        if now < self._start_at:
            return
        problem = why_closed(self._current)
        if not problem:
            new = configuration(self._current, self._listed, self._name)
            self._program = Program.start(self._current, new, self._folder)
            self._write_status(self._problem)
        elif any(program.url == self._current.url for program in self._retired):
            # Its predecessor ends, and most programs give up the port before their last response has ended.
            for program in self._retired:
                program.end_soon(_YIELD)
        else:
            # HAProxy and Envoy would share the port, and get a part of the requests each.
            self._start_later(problem, is_steady=False)

    def _return_to(self, previous: Router, problem: str) -> None:
        """Let clients have the settings again that served them before those that just failed."""
        failed, self._refused, self._try_at = self._current, self._current, time.monotonic() + _REFUSAL
        self._current, self._previous_router = previous, None
        self._files.write(configuration(previous, self._listed, self._name))
        self.restarts += 1
        where = previous.url if failed is None else failed.url
        self._tell(f"{problem} at {where}, so {previous.kind} is back at {previous.url}")

    def _start_later(self, problem: str, *, is_steady: bool) -> None:
        """Report a problem, and start the program after a pause that grows, or at once after one that ran for long."""
        self._pause = 0.0 if is_steady else min(max(1.0, 2 * self._pause), _LONGEST_PAUSE)
        self._start_at = time.monotonic() + self._pause
        self.restarts += 1
        again = "now" if is_steady else f"in {self._pause:.0f} s"
        sentence = f"{self._name}: {problem}; the router is started again {again}."
        self._problem = sentence
        self._report(sentence)
        self._write_status(sentence)

    def _end_programs(self) -> None:
        """Let the responses under way end, then end all programs."""
        self._end_trial()
        self._retire(0.0)
        for program in self._retired:
            program.end_later(0.0)
        while self._retired:
            self._retired = [program for program in self._retired if not program.has_ended()]
            time.sleep(_TURN)
        disk.Folder(self._folder).remove(PROGRAM)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the folder's lock, which the kernel releases when this process ends."""
        folder = disk.Folder(self._folder)
        with folder.writing(LOCK):
            handle = folder.open_in_place(LOCK)
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
        """Write what goes wrong, and which router the program that clients have is: null while none runs."""
        runs = None if self._program is None or self._current is None else self._current.to_dict()
        status = {"restarts": self.restarts, "problem": problem, "router": runs}
        disk.Folder(self._folder).replace(STATUS, json.dumps(status) + "\n", is_private=True)
