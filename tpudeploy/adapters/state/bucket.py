"""Store states as objects of a Cloud Storage bucket. Each is written only over the generation that was read."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from tpudeploy.adapters.google.objects import BucketObjects, Moved
from tpudeploy.adapters.state import stored
from tpudeploy.adapters.state.aside import Aside
from tpudeploy.adapters.state.bucket_locks import BucketLocks
from tpudeploy.domain import errors
from tpudeploy.domain.boots import BootRecord
from tpudeploy.domain.history import HistoryEntry
from tpudeploy.domain.ledger import Ledger, LedgerFact
from tpudeploy.domain.lock import Lease, LockInfo
from tpudeploy.domain.state import State
from tpudeploy.ports import BootStore, Clock, Snapshot
from tpudeploy.serialization import boot_records, capacity_history, ledger, statefile

_SUFFIX = ".json"
_EARLIER = 20  # earlier states to read; the bucket may hold any number
_RACES = 8  # attempts, because an endpoint may change between our read and our write


class BucketState:
    """Stores PREFIX/state/NAME.json and NAME.lock, PREFIX/endpoints/NAME.json, PREFIX/zones/ and PREFIX/ledger/.

    It reads PREFIX/budgets.yaml, and keeps PREFIX/outbox.json.

    See `ports.StateBackend`. A version is a generation. In addition to the port's errors, every method may raise
    `errors.Fault` and `errors.Denied`.
    """

    is_shared = True

    def __init__(self, objects: BucketObjects, clock: Clock, *, who: str, prefix: str, aside: Aside) -> None:
        self._objects = objects
        self._prefix = prefix
        self._folder = f"{prefix}state/"
        self._aside = aside
        self._locks = BucketLocks(objects, clock, who=who, folder=self._folder)

    def read(self, name: str) -> Snapshot:
        return stored.without_marker(self._snapshot(name))

    def _snapshot(self, name: str) -> Snapshot:
        with self._add_location_of_copy(name):
            stored_object = self._objects.get(self._key(name))
        if stored_object is None:
            return Snapshot(state=None, version="")
        state = stored.load_state(stored_object.content, name, source=self._objects.name(self._key(name)))
        return Snapshot(state=state, version=str(stored_object.generation))

    def write(self, name: str, state: State, *, over: str) -> str:
        text = statefile.dumps(state)
        try:
            self._locks.prove(name)
            generation = self._objects.write(self._key(name), text.encode(), over=int(over or 0))
        except Moved as cause:
            raise stored.conflict(name, self._snapshot(name).version) from cause
        except errors.CloudError as failure:
            self._aside.keep(name, text)
            failure.hint = self._aside.add_to_hint(failure.hint, name)
            raise
        self._aside.drop(name)
        return str(generation)

    def delete(self, name: str, *, over: str) -> None:
        try:
            self._locks.prove(name)
            self._objects.delete(self._key(name), over=int(over or 0))
        except Moved as cause:
            raise stored.conflict(name, self._snapshot(name).version) from cause

    def earlier(self, name: str) -> tuple[State, ...]:
        """See `ports.StateBackend`. Earlier states exist only where the bucket's object versioning is on."""
        key = self._key(name)
        now = self._objects.generation(key)
        generations = [g for g in self._objects.generations(key) if g != now][:_EARLIER]
        objects = (self._objects.get(key, generation=g) for g in generations)
        return tuple(stored.readable_states((one.content for one in objects if one is not None), name))

    def lock(self, name: str, operation: str) -> Lease:
        with self._add_location_of_copy(name):
            return self._locks.take(name, operation)

    def prove(self, lease: Lease) -> None:
        with self._add_location_of_copy(lease.token):
            self._locks.prove(lease.token)

    def unlock(self, lease: Lease) -> None:
        with self._add_location_of_copy(lease.token):
            self._locks.release(lease)

    def find_lock(self, word: str) -> str:
        return self._locks.find(word)

    def force_unlock(self, lock_id: str) -> str:
        return self._locks.force(lock_id)

    def holder(self, name: str) -> LockInfo | None:
        return self._locks.holder(name)

    def left_locks(self, names: Iterable[str]) -> Mapping[str, errors.StateLocked]:
        return self._locks.left_locks(names)

    def names(self) -> tuple[str, ...]:
        keys = (entry.key for entry in self._objects.list_under(self._folder))
        return tuple(key.removeprefix(self._folder).removesuffix(_SUFFIX) for key in keys if key.endswith(_SUFFIX))

    def publish(self, name: str, body: Mapping[str, object] | None) -> None:
        for _ in range(_RACES):
            try:
                self._locks.prove(name)  # a run that lost its lock must not publish its slice over another run's
                self._publish(self._endpoint(name), body)
            except Moved:
                continue  # another run published in between; the later one wins
            return
        raise errors.StateError(f"Several runs write the endpoint of {name} at once.", hint="Try again.")

    def published(self, name: str) -> Mapping[str, object] | None:
        stored_object = self._objects.get(self._endpoint(name))
        if stored_object is None:
            return None
        return stored.load_endpoint(stored_object.content, source=self._objects.name(self._endpoint(name)))

    def history(self) -> tuple[HistoryEntry, ...]:
        return _read_history(self._objects, f"{self._prefix}zones/")

    def record(self, tried: HistoryEntry) -> None:
        _add_to_history(self._objects, f"{self._prefix}zones/", tried)

    def ledger(self) -> Ledger:
        folder = f"{self._prefix}ledger/"
        with self._reading(folder):
            entries = self._objects.list_under(folder)
        return ledger.parse_lines("".join(f"{one.metadata.get(_LINE, _NO_LINE)}\n" for one in entries))

    def budgets(self) -> tuple[str, bytes] | None:
        key = f"{self._prefix}budgets.yaml"
        with self._reading(key):
            stored_object = self._objects.get(key)
        return None if stored_object is None else (self._objects.name(key), stored_object.content)

    def outbox(self) -> tuple[str, str]:
        key = f"{self._prefix}outbox.json"
        with self._reading(key):
            stored_object = self._objects.get(key)
        if stored_object is None:
            return "", ""
        return stored_object.content.decode(errors="replace"), str(stored_object.generation)

    def replace_outbox(self, text: str, *, over: str) -> str:
        key = f"{self._prefix}outbox.json"
        try:
            return str(self._objects.write(key, text.encode(), over=int(over or 0)))
        except Moved as cause:
            raise errors.StateConflict(f"{self._objects.name(key)} was written by another run.") from cause

    def enter(self, fact: LedgerFact) -> None:
        text = ledger.format_line(fact)
        key = f"{self._prefix}ledger/{round(fact.at * 1000):013d}-{uuid.uuid4().hex[:12]}.json"
        try:
            self._objects.write(key, text.encode(), over=0, metadata={_LINE: text.strip()})
        except (errors.CloudError, Moved) as cause:
            raise errors.StateError(f"{self._objects.name(key)} cannot be written: {cause}") from cause

    def close(self) -> None:
        self._locks.close()

    @contextmanager
    def _reading(self, key: str) -> Iterator[None]:
        """Raise `errors.StateUnreadable` for what Google refuses. After a fault, the run looks again."""
        try:
            yield
        except errors.Fault:
            raise
        except errors.CloudError as cause:
            raise errors.StateUnreadable(f"{self._objects.name(key)} cannot be read: {cause}") from cause

    def _publish(self, key: str, body: Mapping[str, object] | None) -> None:
        stored_object = self._objects.get(key)
        if body is not None:
            self._objects.write(
                key, stored.dump_endpoint(body).encode(), over=0 if stored_object is None else stored_object.generation
            )
        elif stored_object is not None:
            self._objects.delete(key, over=stored_object.generation)

    @contextmanager
    def _add_location_of_copy(self, name: str) -> Iterator[None]:
        """Add the location of a state that was kept aside to every later failure, as only the last one is displayed."""
        try:
            yield
        except errors.CloudError as failure:
            failure.hint = self._aside.add_to_hint(failure.hint, name)
            raise

    def _key(self, name: str) -> str:
        return f"{self._folder}{name}{_SUFFIX}"

    def _endpoint(self, name: str) -> str:
        return f"{self._prefix}endpoints/{name}{_SUFFIX}"


# An object cannot be appended to, and one that many runs rewrite takes about one write per second. So the zone log
# has an object per finished request, with its line in the metadata, which a list returns. Keys count down, so that the
# list begins with the latest.
_LINE, _BOOT = "tried", "boot"
_NO_LINE = "an object without its line"  # is no line of the ledger
_MAX_READ = 1000  # the latest ones; one page of a list
_LATEST_TIME = 9_999_999_999_999  # milliseconds since the epoch: keys count down from here


class BucketBoots:
    """See `ports.BootStore`. The boots that all runs of a bucket verified, and those of this machine.

    One that the bucket does not take, such as from a caller who may only read it, is kept on this machine alone.
    """

    def __init__(self, objects: BucketObjects, prefix: str, own: BootStore) -> None:
        self._objects = objects
        self._folder = f"{prefix}boots/"
        self._own = own

    def read(self) -> tuple[BootRecord, ...]:
        try:
            entries = self._objects.list_under(self._folder, limit=_MAX_READ)
        except errors.CloudError:
            entries = ()
        of_bucket = boot_records.parse_records("\n".join(entry.metadata.get(_BOOT, "") for entry in entries))
        others = [record for record in self._own.read() if record not in of_bucket]
        return tuple(sorted((*of_bucket, *others), key=lambda record: record.at))

    def add(self, record: BootRecord) -> None:
        self._own.add(record)
        line = boot_records.format_record(record)
        with suppress(errors.CloudError, Moved):
            key = _countdown_key(self._folder, record.at)
            self._objects.write(key, line.encode(), over=0, metadata={_BOOT: line.strip()})


def _countdown_key(folder: str, at: float) -> str:
    return f"{folder}{max(0, _LATEST_TIME - round(at * 1000)):013d}-{uuid.uuid4().hex[:12]}.json"


def _add_to_history(objects: BucketObjects, folder: str, tried: HistoryEntry) -> None:
    """Add one finished request to the log. Raise `errors.StateError`."""
    line = capacity_history.format_entry(tried)
    key = _countdown_key(folder, tried.at)
    try:
        objects.write(key, line.encode(), over=0, metadata={_LINE: line.strip()})
    except (errors.CloudError, Moved) as cause:
        raise errors.StateError(f"{objects.name(key)} cannot be written: {cause}") from cause


def _read_history(objects: BucketObjects, folder: str) -> tuple[HistoryEntry, ...]:
    """Return the latest finished requests. Raise `errors.StateUnreadable`."""
    try:
        entries = objects.list_under(folder, limit=_MAX_READ)
    except errors.CloudError as cause:
        raise errors.StateUnreadable(f"{objects.name(folder)} cannot be read: {cause}") from cause
    return capacity_history.parse_entries("\n".join(one.metadata.get(_LINE, "") for one in entries))
