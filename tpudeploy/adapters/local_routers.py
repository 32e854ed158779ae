"""Routers on this machine: each is a process of `tpudeploy router NAME`, which outlives the run that starts it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tpudeploy.adapters.project import absolute
from tpudeploy.adapters.state import disk
from tpudeploy.catalog.routers import ROUTERS
from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.router import Router

LOCK, STATUS, PROGRAM, LOG = "lock", "status.json", "program.json", "router.log"
ANSWERS_WITHIN, _TURN = 60.0, 0.25  # seconds
# Programs of the system that the PATH of a user who is not root leaves out.
_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")


class LocalRouters:
    """See `ports.Routers`. `root` has a folder for each router, and `command` runs the router of the name after it."""

    def __init__(self, root: Path, *, command: Sequence[str], folder: Path) -> None:
        self._root = root
        self._command = tuple(command)
        self._folder = folder
        self._restarts: dict[str, int] = {}
        self._started: dict[str, int] = {}

    def folder(self, name: str) -> Path:
        """Return the folder of a router's files. Only their owner can read them."""
        return self._root / name

    def check(self, router: Router) -> None:
        """Raise `errors.ConfigError` if the program of this router is not installed here."""
        facts = ROUTERS[router.kind]
        if find_program(facts.program) is None:
            raise ConfigError(
                f"`{facts.program}` is not installed on this machine, where the profile's {router.kind} router runs.",
                hint=f"Install it: {facts.install}\nOr write router.host: own, and run `tpudeploy router` elsewhere.",
            )

    def keep(self, name: str) -> str:
        if holder(self.folder(name)) is None:
            # It takes its lock a moment after it was started.
            if not self._is_starting(name):
                self._restarts[name] = 0
                self._start(name)
            return ""
        status = read_tree(self._files(name), STATUS)
        restarts = int(status.get("restarts", 0))
        # What happened before this run was reported by the run that saw it.
        previous, self._restarts[name] = self._restarts.get(name, restarts), restarts
        return str(status.get("problem", "")) if restarts > previous else ""

    def turns(self, name: str, router: Router) -> Iterator[str | None]:
        # A router is a process that knows no other time. smg looks at a late replica after 30 s.
        deadline = time.monotonic() + ANSWERS_WITHIN
        while time.monotonic() < deadline:
            self.keep(name)
            problem = read_tree(self._files(name), STATUS).get("problem")
            yield None if self._runs(name, router) else str(problem or f"{router.kind} has not started yet")
            time.sleep(_TURN)

    def is_running(self, name: str, router: Router) -> bool:
        # Only a live process has the lock, whatever the file beside it says.
        return holder(self.folder(name)) is not None and self._runs(name, router)

    def _runs(self, name: str, router: Router) -> bool:
        return read_tree(self._files(name), STATUS).get("router") == router.to_dict()

    def _files(self, name: str) -> disk.Folder:
        return disk.Folder(self.folder(name))

    def _start(self, name: str) -> None:
        root = disk.Folder(self._root)
        with root.writing():
            root.hide_from_git()
        files = self._files(name)
        with files.writing(LOG):
            log = files.open_in_place(LOG, flags=os.O_APPEND)
        command = [*self._command, "--chdir", str(absolute(self._folder)), name]
        try:
            self._started[name] = os.posix_spawn(
                command[0],
                command,
                os.environ,
                # A session of its own: Ctrl-C in the terminal of this run is not meant for the router.
                setsid=True,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, log, 1),
                    (os.POSIX_SPAWN_DUP2, log, 2),
                ],
            )
        finally:
            os.close(log)

    def _is_starting(self, name: str) -> bool:
        """Return whether the process that this run started for a router is still alive."""
        pid = self._started.get(name)
        if pid is None:
            return False
        if os.waitpid(pid, os.WNOHANG) == (0, 0):
            return True
        del self._started[name]
        return False


def find_program(name: str) -> str | None:
    """Return the path of a router's program: on PATH, beside this Python, or in a folder for the system's programs."""
    beside = str(Path(sys.executable).parent)
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), beside, *_SYSTEM_FOLDERS)))


def holder(folder: Path) -> int | None:
    """Return the id of the process that runs the router of this folder, or None."""
    try:
        handle = disk.Folder(folder).open_to_read(LOCK)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.read(handle, 32).decode()
        # It is empty for the instant between the lock and the write.
        return int(text) if text.isdecimal() else None
    finally:
        os.close(handle)
    return None


def read_tree(folder: disk.Folder, name: str) -> Mapping[str, Any]:
    """Return what the process of a router last wrote about itself or about its program, or nothing."""
    try:
        tree = json.loads(folder.read(name))
    except (OSError, ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}
