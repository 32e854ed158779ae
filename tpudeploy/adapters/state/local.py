"""States as files: written beside, synced, renamed over; the lock is a file that the kernel frees when we die."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tpudeploy.core import statefile, zonelog
from tpudeploy.domain import errors
from tpudeploy.domain.history import Tried
from tpudeploy.domain.lock import Lease, LockInfo
from tpudeploy.domain.state import State
from tpudeploy.ports import Clock, Snapshot
from tpudeploy.version import VERSION


class LocalState:
    """`folder`/state/NAME.json, NAME.lock beside it, `folder`/zones.jsonl, `folder`/../endpoints/NAME.json.

    See `ports.StateBackend`.
    """

    def __init__(self, folder: Path, clock: Clock, *, who: str) -> None:
        self._states = folder / "state"
        self._history = folder / "zones.jsonl"
        self._endpoints = folder.parent / "endpoints"
        self._clock = clock
        self._who = who
        self._held: dict[str, int] = {}

    def read(self, name: str) -> Snapshot:
        path = self._path(name)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return Snapshot(state=None, version="")
        except (OSError, UnicodeDecodeError) as cause:
            raise errors.StateUnreadable(f"{path} cannot be read: {cause}.") from cause
        state = statefile.loads(text, source=str(path))
        if state.deployment != name:
            raise errors.StateUnreadable(
                f"{path} is the state of {state.deployment}, not of {name}.",
                hint="Each deployment has a state of its own: move this one back to its name.",
            )
        return Snapshot(state=state, version=_version(state))

    def write(self, name: str, state: State, *, over: str) -> str:
        now = self.read(name).version
        if now != over:
            raise errors.StateConflict(
                f"The state of {name} changed while we worked on it (it is now at {now or 'nothing'}).",
                hint="Run the command again.",
            )
        _replace(self._path(name), statefile.dumps(state))
        return _version(state)

    def lock(self, name: str, operation: str) -> Lease:
        path = self._path(name).with_suffix(".lock")
        with _writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            _hide_from_git(path.parent)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as cause:
            os.close(handle)
            raise _locked(name, _holder(path)) from cause
        info = LockInfo(
            id=uuid.uuid4().hex,
            operation=operation,
            who=self._who,
            pid=os.getpid(),
            created=self._clock.now(),
            version=VERSION,
            run_url=os.environ.get("TPUDEPLOY_RUN_URL", ""),
        )
        with _writing(path):
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(asdict(info)).encode(), 0)
        self._held[info.id] = handle
        return Lease(info=info, token=info.id)

    def unlock(self, lease: Lease) -> None:
        handle = self._held.pop(lease.token)
        os.ftruncate(handle, 0)
        os.close(handle)  # frees the kernel's lock

    def holder(self, name: str) -> LockInfo | None:
        path = self._path(name).with_suffix(".lock")
        told = _holder(path)
        # A free lock is empty, and is not touched: whoever takes it at this moment must find it free.
        return told if told is not None and _is_held(path) else None

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(p.stem for p in self._states.glob("*.json")))

    def publish(self, name: str, endpoint: dict[str, object] | None) -> None:
        path = self._endpoints / f"{name}.json"
        if endpoint is None:
            path.unlink(missing_ok=True)
        else:
            _replace(path, json.dumps(endpoint, indent=2) + "\n")

    def history(self) -> tuple[Tried, ...]:
        try:
            text = self._history.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ()
        except OSError as cause:
            raise errors.StateUnreadable(f"{self._history} cannot be read: {cause.strerror or cause}.") from cause
        return zonelog.read(text)

    def record(self, tried: Tried) -> None:
        with _writing(self._history):
            self._history.parent.mkdir(parents=True, exist_ok=True)
            _hide_from_git(self._history.parent, f"{self._history.name}\n.gitignore")
            _append(self._history, zonelog.line(tried).encode())

    def _path(self, name: str) -> Path:
        return self._states / f"{name}.json"


def who() -> str:
    """user@host, for locks and goals."""
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def _hide_from_git(folder: Path, what: str = "*") -> None:
    """A state is one machine's memory, no source: unless somebody decided otherwise, git leaves it alone."""
    rules = folder / ".gitignore"
    if not rules.exists():
        rules.write_text(f"{what}\n", encoding="utf-8")


def _version(state: State) -> str:
    return f"{state.lineage}/{state.serial}"


def _replace(path: Path, text: str) -> None:
    """Atomic: a reader sees the old text or the new, and so does whoever looks after a power cut."""
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_beside(path, text)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as cause:
        raise errors.StateError(
            f"{path} cannot be written: {cause.strerror or cause}.",
            hint="What it held before is unharmed, and nothing was asked for that it does not name.",
        ) from cause


def _write_beside(path: Path, text: str) -> None:
    """One name beside it, for who writes holds the lock: what a killed run leaves there, the next one overwrites."""
    beside = path.with_name(f".{path.name}.new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _append(path: Path, line: bytes) -> None:
    """In one write at the end, wherever that is by then: lines of two runs never mix."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        whole = b"\n" + line if torn else line
        if os.write(handle, whole) < len(whole):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(handle)


def _holder(path: Path) -> LockInfo | None:
    try:
        tree: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return LockInfo(**tree)
    except (OSError, ValueError, TypeError):
        return None  # taken this very moment, not written yet


def _is_held(path: Path) -> bool:
    """Whether who wrote himself into it still lives."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _locked(name: str, holder: LockInfo | None) -> errors.StateLocked:
    by = "another run" if holder is None else f"{holder.who} (process {holder.pid}, `{holder.operation}`)"
    return errors.StateLocked(
        f"The state of {name} is locked by {by}.",
        hint="It is held for one step at a time: try again. The lock ends with its process, whatever happens to it.",
        holder=holder,
    )
