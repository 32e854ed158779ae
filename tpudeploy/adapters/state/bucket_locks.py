"""Locks in a bucket: an object a deployment, made where there is none, and gone with its generation.

A lock is a lease. Nothing frees the lock of a run that was killed, so one that its holder has not renewed for `LEASE`
is taken over: written over the very generation that was seen, so that of any number of takers one has it. How long ago
a lock was renewed is read from the bucket's own clock alone (the object's `updated` against the `Date` of the reply):
the clocks of the machines that run us may differ by any amount. What is assumed is that Google's clocks agree to within
minutes, and that the clock of one machine goes on while a process on it is stopped.

A run that was stopped and wakes up after its lease proves its lock before it writes (`prove`), and before it asks
Google for anything (`engine.session`), and so does neither. `force-unlock` is for those who cannot wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from tpudeploy.adapters.google.objects import Moved, Objects, Stored
from tpudeploy.adapters.state import holder
from tpudeploy.domain import errors
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.lock import Lease, LockInfo
from tpudeploy.ports import Clock

SUFFIX = ".lock"
_RACES = 8  # how often a lock may be gone when we look who holds it
_BEAT = 20.0  # seconds; a step lasts less, and one object takes about one write a second
# Seconds without a sign of life after which a lock is free. A step of a living run lasts seconds; one call to Google is
# given up after a minute, and a run proves its lock between any two that change something.
LEASE = 900.0


@frozen
class _Held:
    info: LockInfo
    generation: int


class BucketLocks:
    """`folder` is the prefix that the locks lie under."""

    def __init__(self, objects: Objects, clock: Clock, *, who: str, folder: str) -> None:
        self._objects = objects
        self._clock = clock
        self._who = who
        self._folder = folder
        self._held: dict[str, _Held] = {}
        # Ids of ours that may lie in the bucket: minted, and not known to be gone.
        self._ours: dict[str, str] = {}

    def take(self, name: str, operation: str) -> Lease:
        """Raise `errors.StateLocked` where somebody else holds it, and has been heard of within `LEASE`."""
        info = holder.this_run(self._who, operation, self._clock.now())
        self._ours[info.id] = name
        over, found, expired = 0, None, None
        for _ in range(_RACES):
            try:
                generation = self._put(name, info, over)
            except Moved:
                found, expired = self._objects.get(self._key(name)), None
                if found is not None and not self._is_left_over(name, found):
                    if not self._has_expired(name, found):
                        break
                    expired = holder.loads(found.content)
                over = 0 if found is None else found.generation
            else:
                self._held[name] = _Held(info=info, generation=generation)
                return Lease(info=info, token=name, expired=expired)
        del self._ours[info.id]
        raise self._locked(name, found)

    def prove(self, name: str) -> None:
        """Where this run holds the lock, it still does. Raise `errors.StateConflict` where it was taken away."""
        held = self._held.get(name)
        if held is None:
            return
        if not self._is_still_ours(name, held):
            raise errors.StateConflict(
                f"The lock of {name} was taken away from this run, so that it may not write the state any more.",
                hint=f"This run was not heard of for {LEASE / 60:.0f} min, or somebody ran `tpudeploy force-unlock`."
                " See `tpudeploy status`, then run the command again.",
            )

    def release(self, lease: Lease) -> None:
        """A lock that was taken away stays with whoever has it now."""
        held = self._held.pop(lease.token)
        with suppress(Moved):
            self._objects.delete(self._key(lease.token), over=held.generation)
        del self._ours[held.info.id]

    def holder(self, name: str) -> LockInfo | None:
        found = self._objects.get(self._key(name))
        return None if found is None else holder.loads(found.content)

    def left(self, names: Iterable[str]) -> Mapping[str, errors.StateLocked]:
        """See `ports.StateBackend.left_locks`. One list finds the locks there are: as a rule there are none."""
        keys = {listed.key for listed in self._objects.list_under(self._folder)}
        locks = ((name, self._objects.get(self._key(name))) for name in names if self._key(name) in keys)
        return {name: self._locked(name, found, "") for name, found in locks if found is not None}

    def force(self, lock_id: str) -> str:
        """See `ports.StateBackend.force_unlock`. A lock that nobody can read goes by its generation."""
        for listed in self._objects.list_under(self._folder):
            if not listed.key.endswith(SUFFIX):
                continue
            found = self._objects.get(listed.key)
            if found is not None and lock_id == _id(found):
                return self._take_away(listed.key, found)
        raise errors.StateError(
            f"There is no lock with the id {lock_id}.", hint="It may be gone by now: run the command again."
        )

    def close(self) -> None:
        """Free what an interrupted call left behind. What cannot be freed now is told to whoever finds it."""
        for id_, name in list(self._ours.items()):
            try:
                found = self._objects.get(self._key(name))
                if found is not None and _id(found) == id_:
                    self._objects.delete(self._key(name), over=found.generation)
            except (errors.TpudeployError, Moved):
                continue
            del self._ours[id_]

    def _is_still_ours(self, name: str, held: _Held) -> bool:
        """One request: a look, or from time to time a heartbeat, which is as good a proof."""
        now = self._clock.now()
        if now - held.info.heartbeat < _BEAT:
            return self._objects.generation(self._key(name)) == held.generation
        info = replace(held.info, heartbeat=now)
        try:
            self._held[name] = _Held(info=info, generation=self._put(name, info, held.generation))
        except Moved:
            return False
        return True

    def _put(self, name: str, info: LockInfo, over: int) -> int:
        return self._objects.put(self._key(name), holder.dumps(info).encode(), over=over)

    def _is_left_over(self, name: str, found: Stored) -> bool:
        """Ours, from a call whose end we never learnt; not one that we hold."""
        return name not in self._held and _id(found) in self._ours

    def _has_expired(self, name: str, found: Stored) -> bool:
        """Whether its holder died, or is stopped. One whose age nobody tells is left to a person."""
        age = self._objects.age(self._key(name), generation=found.generation)
        return age is not None and age >= LEASE

    def _take_away(self, key: str, found: Stored) -> str:
        name = key.removeprefix(self._folder).removesuffix(SUFFIX)
        try:
            self._objects.delete(key, over=found.generation)
        except Moved as cause:
            raise errors.StateError(
                f"The lock of {name} changed hands meanwhile.", hint="Its holder lives: nothing was taken away."
            ) from cause
        return name

    def _locked(
        self, name: str, found: Stored | None, hint: str = "It is held for one step at a time: try again."
    ) -> errors.StateLocked:
        if found is None:
            return errors.StateLocked(f"The state of {name} is locked by one run after the other.", hint=hint)
        info = holder.loads(found.content)
        freed = f"tpudeploy force-unlock {_id(found)}"
        if info is None:
            return errors.StateLocked(
                f"The state of {name} is locked, and {self._objects.name(self._key(name))} does not say by whom.",
                hint=f"If nobody works on it: {freed}",
            )
        now = self._clock.now()
        since, silent = (timedelta(seconds=round(max(0.0, now - t))) for t in (info.created, info.heartbeat))
        message = f"The state of {name} is locked by {holder.told(info)} for {since}, last heard of {silent} ago."
        later = f"If that run is dead, its lock is taken over {LEASE / 60:.0f} min after it was last heard of."
        return errors.StateLocked(message, hint=f"{hint} {later}\nTo free it now: {freed}".lstrip(), holder=info)

    def _key(self, name: str) -> str:
        return f"{self._folder}{name}{SUFFIX}"


def _id(found: Stored) -> str:
    info = holder.loads(found.content)
    return str(found.generation) if info is None else info.id
