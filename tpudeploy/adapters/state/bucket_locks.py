"""Locks in a bucket: one object per deployment, created only if absent, and deleted by its generation.

A lock is a lease. Nothing releases the lock of a run that was killed, so a lock that its holder has not renewed for
`LEASE_SECONDS` is taken over. The new lock is written over the generation that was read, so only one of several
takers succeeds. The age of a lock comes from the bucket's clock alone (the object's `updated` and the `Date` of the
reply), because the clocks of the machines that run us may differ by any amount. Two assumptions remain: Google's clocks
agree to within minutes, and the clock of a machine runs on while a process on it is stopped.

A run that was stopped and continues after its lease proves its lock before it writes (`prove`) and before it sends any
request to Google (`engine.session`), so it does neither. `force-unlock` is for users who cannot wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from tpudeploy.adapters.google.objects import BucketObjects, Moved, Stored
from tpudeploy.adapters.state import holder
from tpudeploy.domain import errors
from tpudeploy.domain.lock import Lease, LockInfo, lock_name, lock_subject
from tpudeploy.ports import Clock

SUFFIX = ".lock"
_RACES = 8  # attempts, because a lock may be released between our write and our read
_HEARTBEAT_SECONDS = 20.0  # a step is shorter, and one object takes about one write per second
# After this time without a heartbeat, a lock is free. A step of a live run takes seconds, one call to Google is given
# up after a minute, and a run proves its lock between any two mutating calls.
LEASE_SECONDS = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _OwnLock:
    info: LockInfo
    generation: int


class BucketLocks:
    """Takes and releases the locks under the prefix `folder`."""

    def __init__(self, objects: BucketObjects, clock: Clock, *, who: str, folder: str) -> None:
        self._objects = objects
        self._clock = clock
        self._who = who
        self._folder = folder
        self._own_locks: dict[str, _OwnLock] = {}
        # Ids of our own locks that may still be in the bucket: created, and not known to be deleted.
        self._ours: dict[str, str] = {}

    def take(self, name: str, operation: str) -> Lease:
        """Take the lock. Raise `errors.StateLocked` if another run holds it and renewed it within `LEASE_SECONDS`."""
        info = holder.this_run(self._who, operation, self._clock.now())
        self._ours[info.id] = name
        over, lock, expired = 0, None, None
        for _ in range(_RACES):
            try:
                generation = self._write_lock(name, info, over)
            except Moved:
                lock, expired = self._objects.get(self._key(name)), None
                if lock is not None and not self._is_own_leftover(name, lock):
                    if not self._has_expired(name, lock):
                        break
                    expired = holder.loads(lock.content)
                over = 0 if lock is None else lock.generation
            else:
                self._own_locks[name] = _OwnLock(info=info, generation=generation)
                return Lease(info=info, token=name, expired=expired)
        del self._ours[info.id]
        raise self._locked(name, lock)

    def prove(self, name: str) -> None:
        """Check that this run still holds the lock that it took. Raise `errors.StateConflict` if it does not."""
        own_lock = self._own_locks.get(name)
        if own_lock is None:
            return
        if not self._is_still_ours(name, own_lock):
            raise errors.StateConflict(
                f"This run lost the lock of {lock_name(name)}, so it can no longer write the state.",
                hint=f"The run was silent for {LEASE_SECONDS / 60:.0f} min, or someone ran `tpudeploy force-unlock`."
                " Check `tpudeploy status`, then run the command again.",
            )

    def release(self, lease: Lease) -> None:
        """Release the lock. If another run took it over, that run keeps it."""
        own_lock = self._own_locks.pop(lease.token)
        with suppress(Moved):
            self._objects.delete(self._key(lease.token), over=own_lock.generation)
        del self._ours[own_lock.info.id]

    def holder(self, name: str) -> LockInfo | None:
        lock = self._objects.get(self._key(name))
        return None if lock is None else holder.loads(lock.content)

    def left_locks(self, names: Iterable[str]) -> Mapping[str, errors.StateLocked]:
        """See `ports.StateBackend.left_locks`. One list shows which locks exist; usually there are none."""
        keys = {entry.key for entry in self._objects.list_under(self._folder)}
        locks = ((name, self._objects.get(self._key(name))) for name in names if self._key(name) in keys)
        return {name: self._locked(name, lock, "") for name, lock in locks if lock is not None}

    def find(self, word: str) -> str:
        """See `ports.StateBackend.find_lock`."""
        return _id(self._find(word)[1])

    def force(self, lock_id: str) -> str:
        """See `ports.StateBackend.force_unlock`."""
        return self._take_away(*self._find(lock_id))

    def _find(self, word: str) -> tuple[str, Stored]:
        """Return the key of a lock, and the lock. The id of an unreadable one is its generation."""
        for entry in self._objects.list_under(self._folder):
            if not entry.key.endswith(SUFFIX):
                continue
            lock = self._objects.get(entry.key)
            if lock is not None and (word == _id(lock) or entry.key == self._key(word)):
                return entry.key, lock
        raise errors.StateError(
            f"There is no lock with the id {word}.", hint="It may have been released. Run the command again."
        )

    def close(self) -> None:
        """Release the locks that interrupted calls left behind, as far as possible now."""
        for id_, name in list(self._ours.items()):
            try:
                lock = self._objects.get(self._key(name))
                if lock is not None and _id(lock) == id_:
                    self._objects.delete(self._key(name), over=lock.generation)
            except (errors.TpudeployError, Moved):
                continue
            del self._ours[id_]

    def _is_still_ours(self, name: str, own_lock: _OwnLock) -> bool:
        """Return whether the lock is still ours, with one request: a read, or from time to time a heartbeat."""
        now = self._clock.now()
        if now - own_lock.info.heartbeat < _HEARTBEAT_SECONDS:
            return self._objects.generation(self._key(name)) == own_lock.generation
        info = replace(own_lock.info, heartbeat=now)
        try:
            self._own_locks[name] = _OwnLock(info=info, generation=self._write_lock(name, info, own_lock.generation))
        except Moved:
            return False
        return True

    def _write_lock(self, name: str, info: LockInfo, over: int) -> int:
        return self._objects.write(self._key(name), holder.dumps(info).encode(), over=over)

    def _is_own_leftover(self, name: str, lock: Stored) -> bool:
        """Return whether a lock is one of ours from a call whose reply was lost, and not one that we hold."""
        return name not in self._own_locks and _id(lock) in self._ours

    def _has_expired(self, name: str, lock: Stored) -> bool:
        """Return whether a lock is older than its lease. One of unknown age has not expired."""
        age = self._objects.age(self._key(name), generation=lock.generation)
        return age is not None and age >= LEASE_SECONDS

    def _take_away(self, key: str, lock: Stored) -> str:
        name = key.removeprefix(self._folder).removesuffix(SUFFIX)
        try:
            self._objects.delete(key, over=lock.generation)
        except Moved as cause:
            raise errors.StateError(
                f"Another run has taken the lock of {lock_name(name)} in the meantime.",
                hint="Its holder is alive, so the lock was not released.",
            ) from cause
        return name

    def _locked(
        self, name: str, lock: Stored | None, hint: str = "A run holds it for one step at a time. Try again."
    ) -> errors.StateLocked:
        if lock is None:
            return errors.StateLocked(f"{lock_subject(name)} is locked by several runs in turn.", hint=hint)
        info = holder.loads(lock.content)
        command = f"tpudeploy force-unlock {_id(lock)}"
        if info is None:
            return errors.StateLocked(
                f"{lock_subject(name)} is locked, and {self._objects.name(self._key(name))} does not say by whom.",
                hint=f"If no run uses it: {command}",
            )
        now = self._clock.now()
        since, silent = holder.age(info.created, now), holder.age(info.heartbeat, now)
        by = holder.describe(info)
        message = f"{lock_subject(name)} is locked by {by} for {since}; its last heartbeat was {silent} ago."
        takeover = f"If that run is dead, its lock is taken over {LEASE_SECONDS / 60:.0f} min after its last heartbeat."
        return errors.StateLocked(
            message, hint=f"{hint} {takeover}\nTo release it now: {command}".lstrip(), holder=info
        )

    def _key(self, name: str) -> str:
        return f"{self._folder}{name}{SUFFIX}"


def _id(lock: Stored) -> str:
    info = holder.loads(lock.content)
    return str(lock.generation) if info is None else info.id
