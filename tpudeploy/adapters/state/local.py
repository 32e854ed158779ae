"""States as files, replaced atomically. The lock is a file lock, which the kernel releases when the process ends.

Earlier states are kept in a folder as hard links to the files that are about to be replaced, which cost no space.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tpudeploy.adapters.project import BUDGETS
from tpudeploy.adapters.state import disk, holder, stored
from tpudeploy.domain import errors
from tpudeploy.domain.history import HistoryEntry
from tpudeploy.domain.ledger import Ledger, LedgerFact
from tpudeploy.domain.lock import Lease, LockInfo, lock_name, lock_subject
from tpudeploy.domain.state import State
from tpudeploy.ports import Clock, Snapshot
from tpudeploy.serialization import capacity_history, ledger, statefile

# What is read and kept of the zone history: its last 1,500 to 3,000 entries, which take 20 ms of CPU once a run.
_HISTORY_BYTES = 512 * 1024
_OUTBOX = "outbox.json"
_OWN_FILES = f"zones*.jsonl\nledger*.jsonl\n{_OUTBOX}\n.gitignore"  # that git ignores in a folder of the user
_MAX_EARLIER = 10  # earlier states of a deployment: a hunt writes 10 in a few minutes, a user's command writes one


class LocalState:
    """Stores `folder`/state/NAME.json, NAME.lock, earlier/, `folder`/zones.jsonl, `folder`/ledger.jsonl,
    `folder`/outbox.json and `folder`/../endpoints/NAME.json.

    See `ports.StateBackend`. The zone history and the ledger of the emulator are zones-emulated.jsonl and
    ledger-emulated.jsonl: no trial there is spent money, or says where Google has capacity.
    """

    is_shared = False

    def __init__(
        self, folder: Path, clock: Clock, *, who: str, root: Path | None = None, emulated: bool = False
    ) -> None:
        """No link is followed below `root`, which is the parent of `folder` by default."""
        root = root or folder.parent
        ending = "-emulated.jsonl" if emulated else ".jsonl"
        self._history, self._ledger = f"zones{ending}", f"ledger{ending}"
        self._folder = disk.Folder(folder, root=root)
        self._states = disk.Folder(folder / "state", root=root)
        self._endpoints = disk.Folder(folder.parent / "endpoints", root=root)
        self._clock = clock
        self._who = who
        self._handles: dict[str, int] = {}
        self._checked: set[str] = set()
        # By deployment: each save looks there.
        self._earlier_folders: dict[str, disk.Folder] = {}
        # By deployment, the state in the bytes that were read or written last: most reads of a run find the same again.
        self._parsed: dict[str, tuple[bytes, State]] = {}

    def read(self, name: str) -> Snapshot:
        return stored.without_marker(self._snapshot(name))

    def _snapshot(self, name: str) -> Snapshot:
        try:
            content = self._states.read(f"{name}.json")
        except FileNotFoundError:
            return Snapshot(state=None, version="")
        except OSError as cause:
            raise _unreadable(self._path(name), cause) from cause
        digest = _digest(content)
        last_digest, state = self._parsed.get(name, (b"", None))
        if state is None or digest != last_digest:
            state = stored.load_state(content, name, source=str(self._path(name)))
            self._parsed[name] = (digest, state)
        return Snapshot(state=state, version=_version(state))

    def write(self, name: str, state: State, *, over: str) -> str:
        self._keep_previous(name, over)
        text = statefile.dumps(state)
        self._states.replace(f"{name}.json", text)
        self._parsed[name] = (_digest(text.encode()), state)
        return _version(state)

    def delete(self, name: str, *, over: str) -> None:
        self._keep_previous(name, over)
        with self._states.writing(f"{name}.json"):
            self._states.remove(f"{name}.json")

    def earlier(self, name: str) -> tuple[State, ...]:
        current = self._snapshot(name).state
        states = self._read_earlier(name)
        return tuple(state for state in states if current is None or _version(state) != _version(current))

    def lock(self, name: str, operation: str) -> Lease:
        file = f"{name}.lock"
        self._check_files(name)
        with self._states.writing(file):
            self._states.hide_from_git()
            handle = self._states.open_in_place(file)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as cause:
            os.close(handle)
            raise _locked_error(name, self._read_holder(file), self._clock.now()) from cause
        info = holder.this_run(self._who, operation, self._clock.now())
        with self._states.writing(file):
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

    def find_lock(self, word: str) -> str:
        for file in sorted(self._states.files(".lock")):
            info = self._read_holder(file)
            if info is not None and word in {info.id, file.removesuffix(".lock")}:
                return info.id
        raise self._no_lock(word)

    @staticmethod
    def _no_lock(word: str) -> errors.StateError:
        hint = "A command that waits for a lock names its holder, and `tpudeploy status` shows it."
        return errors.StateError(f"There is no lock with the id {word}.", hint=hint)

    def force_unlock(self, lock_id: str) -> str:
        """Raise if the lock is held, because then its process is alive: the kernel releases a lock with its process.

        The lock of a killed process is free already, and its file only names the former holder.
        """
        for file in sorted(self._states.files(".lock")):
            info, name = self._read_holder(file), file.removesuffix(".lock")
            if info is None or info.id != lock_id:
                continue
            if not self._is_locked(file):
                return name
            place = "" if info.host in {"", socket.gethostname()} else f", on {info.host}"
            raise errors.StateError(
                f"The lock of {lock_name(name)} is held by {holder.describe(info)}, which still runs.",
                hint=f"End that process{place}, and the lock ends with it: kill {info.pid}",
            )
        raise self._no_lock(lock_id)

    def holder(self, name: str) -> LockInfo | None:
        info = self._read_holder(f"{name}.lock")
        # The lock is tested only if its file names a holder, so that a run taking a free lock finds it free.
        return info if info is not None and self._is_locked(f"{name}.lock") else None

    def left_locks(self, names: Iterable[str]) -> Mapping[str, errors.StateLocked]:  # noqa: ARG002 - the port's
        """Return none, because the kernel releases the lock of a run that was killed."""
        return {}

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(file.removesuffix(".json") for file in self._states.files(".json")))

    def publish(self, name: str, body: Mapping[str, object] | None) -> None:
        file = f"{name}.json"
        if body is None:
            with self._endpoints.writing(file):
                self._endpoints.remove(file)
        else:
            self._endpoints.replace(file, stored.dump_endpoint(body))

    def published(self, name: str) -> Mapping[str, object] | None:
        path = self._endpoints.path / f"{name}.json"
        try:
            return stored.load_endpoint(self._endpoints.read(path.name), source=str(path))
        except FileNotFoundError:
            return None
        except OSError as cause:
            raise _unreadable(path, cause) from cause

    def history(self) -> tuple[HistoryEntry, ...]:
        try:
            lines = self._folder.last_lines(self._history, _HISTORY_BYTES)
        except FileNotFoundError:
            return ()
        except OSError as cause:
            raise _unreadable(self._folder.path / self._history, cause) from cause
        return capacity_history.parse_entries(lines.decode(errors="replace"))

    def record(self, tried: HistoryEntry) -> None:
        with self._folder.writing(self._history):
            self._folder.hide_from_git(_OWN_FILES)
            self._folder.append(self._history, capacity_history.format_entry(tried).encode(), keep=_HISTORY_BYTES)

    def ledger(self) -> Ledger:
        try:
            text = self._folder.read(self._ledger)
        except FileNotFoundError:
            return Ledger()
        except OSError as cause:
            raise _unreadable(self._folder.path / self._ledger, cause) from cause
        return ledger.parse_lines(text.decode("ascii", errors="replace"))

    def budgets(self) -> tuple[str, bytes] | None:
        try:
            return str(self._folder.path / BUDGETS), self._folder.read(BUDGETS)
        except FileNotFoundError:
            return None
        except OSError as cause:
            raise _unreadable(self._folder.path / BUDGETS, cause) from cause

    def outbox(self) -> tuple[str, str]:
        try:
            content = self._folder.read(_OUTBOX)
        except FileNotFoundError:
            return "", ""
        except OSError as cause:
            raise _unreadable(self._folder.path / _OUTBOX, cause) from cause
        return content.decode(errors="replace"), _digest(content).hex()

    def replace_outbox(self, text: str, *, over: str) -> str:
        if self.outbox()[1] != over:
            raise errors.StateConflict(f"{self._folder.path / _OUTBOX} was written by another run.")
        with self._folder.writing(_OUTBOX):
            self._folder.hide_from_git(_OWN_FILES)
        self._folder.replace(_OUTBOX, text)
        return _digest(text.encode()).hex()

    def enter(self, fact: LedgerFact) -> None:
        with self._folder.writing(self._ledger):
            self._folder.hide_from_git(_OWN_FILES)
            self._folder.append(self._ledger, ledger.format_line(fact).encode(), keep=disk.MAX_BYTES)

    def close(self) -> None:
        """Do nothing, because the kernel releases the locks."""

    def _keep_previous(self, name: str, over: str) -> None:
        """Keep the state on disk as an earlier one, if its version is `over`. Raise `errors.StateConflict`."""
        previous = self._snapshot(name)
        if previous.version != over:
            raise stored.conflict(name, previous.version)
        if previous.state is not None:
            self._keep_earlier(name, previous.state)

    def _check_files(self, name: str) -> None:
        """Raise `errors.StateError` where a file of a deployment cannot be written, once and before any request."""
        if name in self._checked:
            return
        self._folder.check(self._history)
        self._folder.check(self._ledger)
        self._earlier(name).check("state")
        self._endpoints.check(f"{name}.json")
        self._checked.add(name)

    def _keep_earlier(self, name: str, state: State) -> None:
        """Keep the file of a deployment, which holds `state`, as an earlier one. Raise `errors.StateError`."""
        folder, copy = self._earlier(name), f"{state.lineage[:8]}-{state.serial}.json"
        with folder.writing(copy):
            count = folder.keep_link(copy, self._states, f"{name}.json")
            # Most deployments never have more, and each file's time would be looked up at every save.
            if count > _MAX_EARLIER:
                for old in _oldest_first(folder)[:-_MAX_EARLIER]:
                    folder.remove(old)

    def _read_earlier(self, name: str) -> Iterator[State]:
        """Yield the earlier states, newest first. Raise `errors.StateUnreadable` if the folder cannot be read."""
        folder, contents = self._earlier(name), list[bytes]()
        try:
            for file in reversed(_oldest_first(folder)):
                with suppress(FileNotFoundError):  # another run has deleted it in the meantime
                    contents.append(folder.read(file))
        except OSError as cause:
            raise _unreadable(folder.path, cause) from cause
        return stored.readable_states(contents, name)

    def _read_holder(self, file: str) -> LockInfo | None:
        """Return the holder in a lock file, or None where it is absent or not written yet."""
        try:
            return holder.loads(self._states.read(file))
        except OSError:
            return None

    def _is_locked(self, file: str) -> bool:
        """Return whether the process that holds the lock file is alive. Raise OSError."""
        try:
            handle = self._states.open_to_read(file)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    def _path(self, name: str) -> Path:
        return self._states.path / f"{name}.json"

    def _earlier(self, name: str) -> disk.Folder:
        folder = self._earlier_folders.get(name)
        if folder is None:
            folder = self._earlier_folders[name] = self._states.sub("earlier", name)
        return folder


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _version(state: State) -> str:
    return f"{state.lineage}/{state.serial}"


def _locked_error(name: str, by: LockInfo | None, now: float) -> errors.StateLocked:
    since = "" if by is None else f" for {holder.age(by.created, now)}"
    return errors.StateLocked(
        f"{lock_subject(name)} is locked by {holder.describe(by)}{since}.",
        hint="A run holds it for one step at a time. Try again. The lock is released when its process ends.",
        holder=by,
    )


def _unreadable(path: Path, cause: OSError) -> errors.StateUnreadable:
    hint = disk.NotOurs.HINT if isinstance(cause, disk.NotOurs) else ""
    return errors.StateUnreadable(f"{path} cannot be read: {cause.strerror or cause}.", hint=hint)


def _oldest_first(folder: disk.Folder) -> list[str]:
    files = folder.files(".json")
    return sorted(files, key=lambda name: (files[name].st_mtime_ns, _serial(name), name))


def _serial(name: str) -> int:
    serial = name.removesuffix(".json").rpartition("-")[2]
    return int(serial) if serial.isdecimal() else 0
