"""States as files, replaced atomically. The lock is a file lock, which the kernel releases when the process ends.

Earlier states are kept in a folder as hard links to the files that are about to be replaced, which cost no space.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tpudeploy.adapters.state import disk, holder, stored
from tpudeploy.domain import errors
from tpudeploy.domain.history import HistoryEntry
from tpudeploy.domain.lock import Lease, LockInfo
from tpudeploy.domain.state import State
from tpudeploy.ports import Clock, Snapshot
from tpudeploy.serialization import capacity_history, statefile

# What is read and kept of the zone history: its last 1,500 to 3,000 entries, which take 20 ms of CPU once a run.
_HISTORY_BYTES = 512 * 1024
_MAX_EARLIER = 10  # earlier states of a deployment: a hunt writes 10 in a few minutes, a user's command writes one


class LocalState:
    """Stores `folder`/state/NAME.json, NAME.lock, earlier/, `folder`/zones.jsonl and `folder`/../endpoints/NAME.json.

    See `ports.StateBackend`.
    """

    def __init__(self, folder: Path, clock: Clock, *, who: str) -> None:
        self._states = folder / "state"
        self._history = folder / "zones.jsonl"
        self._endpoints = folder.parent / "endpoints"
        self._clock = clock
        self._who = who
        self._handles: dict[str, int] = {}
        # By deployment: a step uses the path of a state ten times.
        self._paths: dict[str, Path] = {}
        # By deployment, the state in the bytes that were read or written last: most reads of a run find the same again.
        self._parsed: dict[str, tuple[bytes, State]] = {}

    def read(self, name: str) -> Snapshot:
        path = self._path(name)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return Snapshot(state=None, version="")
        except OSError as cause:
            raise errors.StateUnreadable(f"{path} cannot be read: {cause}.") from cause
        digest = _digest(content)
        last_digest, state = self._parsed.get(name, (b"", None))
        if state is None or digest != last_digest:
            state = stored.load_state(content, name, source=str(path))
            self._parsed[name] = (digest, state)
        return Snapshot(state=state, version=_version(state))

    def write(self, name: str, state: State, *, over: str) -> str:
        self._keep_previous(name, over)
        text = statefile.dumps(state)
        disk.replace(self._path(name), text)
        self._parsed[name] = (_digest(text.encode()), state)
        return _version(state)

    def delete(self, name: str, *, over: str) -> None:
        self._keep_previous(name, over)
        with disk.writing(self._path(name)):
            self._path(name).unlink(missing_ok=True)

    def earlier(self, name: str) -> tuple[State, ...]:
        current = self.read(name).state
        states = _read_earlier(self._earlier(name), name)
        return tuple(state for state in states if current is None or _version(state) != _version(current))

    def lock(self, name: str, operation: str) -> Lease:
        path = self._path(name).with_suffix(".lock")
        with disk.writing(path):
            disk.make_folder(self._states)
            disk.hide_from_git(self._states)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, disk.file_mode(path))
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as cause:
            os.close(handle)
            raise _locked_error(name, _read_holder(path)) from cause
        info = holder.this_run(self._who, operation, self._clock.now())
        with disk.writing(path):
            os.ftruncate(handle, 0)
            os.pwrite(handle, holder.dumps(info).encode(), 0)
        self._handles[info.id] = handle
        return Lease(info=info, token=info.id)

    def prove(self, lease: Lease) -> None:
        """Do nothing, because the kernel takes no lock from a live process."""

    def unlock(self, lease: Lease) -> None:
        handle = self._handles.pop(lease.token)
        os.ftruncate(handle, 0)
        os.close(handle)  # releases the kernel's lock

    def force_unlock(self, lock_id: str) -> str:
        """Raise if the lock is held, because then its process is alive: the kernel releases a lock with its process.

        The lock of a killed process is free already, and its file only names the former holder.
        """
        for path in sorted(self._states.glob("*.lock")):
            info = _read_holder(path)
            if info is None or info.id != lock_id:
                continue
            if not _is_locked(path):
                return path.stem
            place = "" if info.host in {"", socket.gethostname()} else f", on {info.host}"
            raise errors.StateError(
                f"The lock of {path.stem} is held by {holder.describe(info)}, which still runs.",
                hint=f"End that process{place}, and the lock ends with it: kill {info.pid}",
            )
        raise errors.StateError(
            f"There is no lock with the id {lock_id}.",
            hint="A command that waits for a lock names its holder.",
        )

    def holder(self, name: str) -> LockInfo | None:
        path = self._path(name).with_suffix(".lock")
        info = _read_holder(path)
        # The lock is tested only if its file names a holder, so that a run taking a free lock finds it free.
        return info if info is not None and _is_locked(path) else None

    def left_locks(self, names: Iterable[str]) -> Mapping[str, errors.StateLocked]:  # noqa: ARG002 - the port's
        """Return none, because the kernel releases the lock of a run that was killed."""
        return {}

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(p.stem for p in self._states.glob("*.json")))

    def publish(self, name: str, body: Mapping[str, object] | None) -> None:
        path = self._endpoints / f"{name}.json"
        if body is None:
            path.unlink(missing_ok=True)
        else:
            disk.replace(path, stored.dump_endpoint(body))

    def published(self, name: str) -> Mapping[str, object] | None:
        path = self._endpoints / f"{name}.json"
        try:
            return stored.load_endpoint(path.read_bytes(), source=str(path))
        except FileNotFoundError:
            return None
        except OSError as cause:
            raise errors.StateUnreadable(f"{path} cannot be read: {cause.strerror or cause}.") from cause

    def history(self) -> tuple[HistoryEntry, ...]:
        try:
            lines = disk.last_lines(self._history, _HISTORY_BYTES)
        except FileNotFoundError:
            return ()
        except OSError as cause:
            raise errors.StateUnreadable(f"{self._history} cannot be read: {cause.strerror or cause}.") from cause
        return capacity_history.parse_entries(lines.decode(errors="replace"))

    def record(self, tried: HistoryEntry) -> None:
        with disk.writing(self._history):
            disk.make_folder(self._history.parent)
            disk.hide_from_git(self._history.parent, f"{self._history.name}\n.gitignore")
            disk.append(self._history, capacity_history.format_entry(tried).encode(), keep=_HISTORY_BYTES)

    def close(self) -> None:
        """Do nothing, because the kernel releases the locks."""

    def _keep_previous(self, name: str, over: str) -> None:
        """Keep the state on disk as an earlier one, if its version is `over`. Raise `errors.StateConflict`."""
        previous = self.read(name)
        if previous.version != over:
            raise stored.conflict(name, previous.version)
        if previous.state is not None:
            _keep_earlier(self._earlier(name), self._path(name), previous.state)

    def _path(self, name: str) -> Path:
        path = self._paths.get(name)
        if path is None:
            path = self._paths[name] = self._states / f"{name}.json"
        return path

    def _earlier(self, name: str) -> Path:
        return self._states / "earlier" / name


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _version(state: State) -> str:
    return f"{state.lineage}/{state.serial}"


def _read_holder(path: Path) -> LockInfo | None:
    """Return the holder in a lock file, or None where it is absent or not written yet."""
    try:
        return holder.loads(path.read_bytes())
    except OSError:
        return None


def _is_locked(path: Path) -> bool:
    """Return whether the process that holds the lock file is alive."""
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


def _locked_error(name: str, by: LockInfo | None) -> errors.StateLocked:
    return errors.StateLocked(
        f"The state of {name} is locked by {holder.describe(by)}.",
        hint="A run holds it for one step at a time. Try again. The lock is released when its process ends.",
        holder=by,
    )


def _keep_earlier(folder: Path, path: Path, state: State) -> None:
    """Keep the file at `path`, which holds `state`, in `folder`. Raise `errors.StateError`."""
    copy = folder / f"{state.lineage[:8]}-{state.serial}.json"
    with disk.writing(copy):
        disk.make_folder(folder)
        with suppress(FileExistsError):  # a run that was killed before it replaced the file had kept it already
            _link_or_copy(path, copy)
        # Most deployments never have more, and each file's time would be looked up at every save.
        if len(os.listdir(folder)) > _MAX_EARLIER:  # noqa: PTH208 - they are only counted
            for old in _oldest_first(folder)[:-_MAX_EARLIER]:
                old.unlink(missing_ok=True)


def _read_earlier(folder: Path, name: str) -> Iterator[State]:
    """Yield the earlier states, newest first. Raise `errors.StateUnreadable` where the folder cannot be read."""
    contents: list[bytes] = []
    try:
        for path in reversed(_oldest_first(folder)):
            with suppress(FileNotFoundError):  # another run has deleted it in the meantime
                contents.append(path.read_bytes())
    except OSError as cause:
        raise errors.StateUnreadable(f"{folder} cannot be read: {cause.strerror or cause}.") from cause
    return stored.readable_states(contents, name)


def _link_or_copy(path: Path, copy: Path) -> None:
    """Link or copy a state file. A link is safe, because state files are replaced and never modified."""
    try:
        copy.hardlink_to(path)
    except FileExistsError:
        raise
    except OSError:  # the file system has no hard links
        shutil.copy2(path, copy)


def _oldest_first(folder: Path) -> list[Path]:
    files: list[tuple[int, int, Path]] = []
    for path in folder.glob("*-*.json"):
        with suppress(FileNotFoundError):
            files.append((path.stat().st_mtime_ns, _serial(path), path))
    return [path for _, _, path in sorted(files)]


def _serial(path: Path) -> int:
    serial = path.stem.rpartition("-")[2]
    return int(serial) if serial.isdecimal() else 0
