"""States as files: written beside, synced, renamed over; the lock is a file that the kernel frees when we die."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

from tpudeploy.adapters.state import disk, earlier, endpoint, holder, stored
from tpudeploy.core import statefile, zonelog
from tpudeploy.domain import errors
from tpudeploy.domain.history import Tried
from tpudeploy.domain.lock import Lease, LockInfo
from tpudeploy.domain.state import State
from tpudeploy.ports import Clock, Snapshot


class LocalState:
    """`folder`/state/NAME.json with NAME.lock and earlier/, `folder`/zones.jsonl, `folder`/../endpoints/NAME.json.

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
            content = path.read_bytes()
        except FileNotFoundError:
            return Snapshot(state=None, version="")
        except OSError as cause:
            raise errors.StateUnreadable(f"{path} cannot be read: {cause}.") from cause
        state = stored.loads(content, name, source=str(path))
        return Snapshot(state=state, version=_version(state))

    def write(self, name: str, state: State, *, over: str) -> str:
        self._set_aside(name, over)
        disk.replace(self._path(name), statefile.dumps(state))
        return _version(state)

    def delete(self, name: str, *, over: str) -> None:
        self._set_aside(name, over)
        with disk.writing(self._path(name)):
            self._path(name).unlink(missing_ok=True)

    def earlier(self, name: str) -> tuple[State, ...]:
        now = self.read(name).state
        before = earlier.read(self._earlier(name), name)
        return tuple(state for state in before if now is None or _version(state) != _version(now))

    def lock(self, name: str, operation: str) -> Lease:
        path = self._path(name).with_suffix(".lock")
        with disk.writing(path):
            disk.make_folder(path.parent)
            disk.hide_from_git(path.parent)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, disk.file_mode(path))
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as cause:
            os.close(handle)
            raise _locked(name, _holder(path)) from cause
        info = holder.this_run(self._who, operation, self._clock.now())
        with disk.writing(path):
            os.ftruncate(handle, 0)
            os.pwrite(handle, holder.dumps(info).encode(), 0)
        self._held[info.id] = handle
        return Lease(info=info, token=info.id)

    def prove(self, lease: Lease) -> None:
        """Nothing to ask: the kernel takes it from nobody who lives."""

    def unlock(self, lease: Lease) -> None:
        handle = self._held.pop(lease.token)
        os.ftruncate(handle, 0)
        os.close(handle)  # frees the kernel's lock

    def force_unlock(self, lock_id: str) -> str:
        """Refused where it is held: the process lives, for the kernel frees a lock with its process.

        One whose process was killed is free already, and only still says whose it was.
        """
        for path in sorted(self._states.glob("*.lock")):
            found = _holder(path)
            if found is None or found.id != lock_id:
                continue
            if not _is_held(path):
                return path.stem
            there = "" if found.host in {"", socket.gethostname()} else f", on {found.host}"
            raise errors.StateError(
                f"The lock of {path.stem} is held by {holder.told(found)}, which still runs.",
                hint=f"End that process{there}, and the lock ends with it: kill {found.pid}",
            )
        raise errors.StateError(
            f"There is no lock with the id {lock_id}.", hint="Who holds one is said by whatever it keeps out."
        )

    def holder(self, name: str) -> LockInfo | None:
        path = self._path(name).with_suffix(".lock")
        told = _holder(path)
        # A free lock is empty, and is not touched: whoever takes it at this moment must find it free.
        return told if told is not None and _is_held(path) else None

    def left_locks(self, names: Iterable[str]) -> Mapping[str, errors.StateLocked]:  # noqa: ARG002 - the port's
        """None: the kernel frees the lock of a run that was killed."""
        return {}

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(p.stem for p in self._states.glob("*.json")))

    def publish(self, name: str, body: Mapping[str, object] | None) -> None:
        path = self._endpoints / f"{name}.json"
        if body is None:
            path.unlink(missing_ok=True)
        else:
            disk.replace(path, endpoint.dumps(body))

    def published(self, name: str) -> Mapping[str, object] | None:
        path = self._endpoints / f"{name}.json"
        try:
            return endpoint.loads(path.read_bytes(), source=str(path))
        except FileNotFoundError:
            return None
        except OSError as cause:
            raise errors.StateUnreadable(f"{path} cannot be read: {cause.strerror or cause}.") from cause

    def history(self) -> tuple[Tried, ...]:
        try:
            text = self._history.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ()
        except OSError as cause:
            raise errors.StateUnreadable(f"{self._history} cannot be read: {cause.strerror or cause}.") from cause
        return zonelog.read(text)

    def record(self, tried: Tried) -> None:
        with disk.writing(self._history):
            disk.make_folder(self._history.parent)
            disk.hide_from_git(self._history.parent, f"{self._history.name}\n.gitignore")
            disk.append(self._history, zonelog.line(tried).encode())

    def close(self) -> None:
        """Nothing to free: the kernel does."""

    def _set_aside(self, name: str, over: str) -> None:
        """Keep what stands there, if it is what it was when it was read. Raise `errors.StateConflict`."""
        now = self.read(name)
        if now.version != over:
            raise stored.conflict(name, now.version)
        if now.state is not None:
            earlier.keep(self._earlier(name), self._path(name), now.state)

    def _path(self, name: str) -> Path:
        return self._states / f"{name}.json"

    def _earlier(self, name: str) -> Path:
        return self._states / "earlier" / name


def _version(state: State) -> str:
    return f"{state.lineage}/{state.serial}"


def _holder(path: Path) -> LockInfo | None:
    """None too where it was taken this very moment, and is not written yet."""
    try:
        return holder.loads(path.read_bytes())
    except OSError:
        return None


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


def _locked(name: str, by: LockInfo | None) -> errors.StateLocked:
    return errors.StateLocked(
        f"The state of {name} is locked by {holder.told(by)}.",
        hint="It is held for one step at a time: try again. The lock ends with its process, whatever happens to it.",
        holder=by,
    )
