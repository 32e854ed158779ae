"""One bucket's objects: read whole; written and deleted only over the generation that was seen.

The one place where a call to Google is sent again. It may be, because each of these changes nothing unless the object
is still what the sender saw: what was carried out already meets a 412 (or a 404) the second time, and by its mark we
know our own write again. The library's own repetition is off: it would take that 412 for a stranger's.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.translate import Absent, Exists, Precondition, looking
from tpudeploy.domain import errors
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.patience import Patience
from tpudeploy.ports import Clock

T = TypeVar("T")
_MARK = "tpudeploy-write"  # in an object's metadata: which sending made it
_JSON = "application/json"


class Moved(Exception):
    """The object is no longer the generation that was seen. Never leaves the adapters."""


@frozen
class Stored:
    """An object as it was read. `generation` grows with every write."""

    content: bytes
    generation: int


@frozen
class Listed:
    """An object as a list shows it, without its content."""

    key: str
    metadata: Mapping[str, str]


class Objects:
    """Every method may raise `errors.Denied`, `errors.Fault` once the service has not answered for a while, and
    `errors.StateError` where there is no such bucket.
    """

    def __init__(self, connection: Connection, clock: Clock, patience: Patience, *, bucket: str) -> None:
        self._connection = connection
        self._clock = clock
        self._patience = patience
        self._bucket = bucket
        self._is_known = False

    def name(self, key: str) -> str:
        """As a person writes it: gs://bucket/key."""
        return f"gs://{self._bucket}/{key}"

    def get(self, key: str, *, generation: int | None = None) -> Stored | None:
        """As it is, or as it was at that generation, where the bucket keeps them."""

        def send() -> Stored:
            blob = self._blob(key, generation)
            content: bytes = blob.download_as_bytes(**self._once)
            return Stored(content=content, generation=int(blob.generation))

        try:
            return self._sent(f"read {self.name(key)}", send)
        except Absent:
            self._must_exist()
            return None

    def age(self, key: str, *, generation: int) -> float | None:
        """Return the seconds since this generation was written, by the bucket's own clock: no other one is asked.

        Return None where it is no longer the live one, or where the service does not say what time it is.
        """
        blob = self._look(key)
        now = self._connection.storage_time()
        if blob is None or int(blob.generation) != generation or blob.updated is None or now is None:
            return None
        return now - float(blob.updated.timestamp())

    def generation(self, key: str) -> int:
        """0 where there is no object."""
        found = self._look(key)
        return 0 if found is None else int(found.generation)

    def generations(self, key: str) -> tuple[int, ...]:
        """Every one that the bucket still has of this object, newest first."""
        fields = "items(name,generation),nextPageToken"

        def send() -> tuple[int, ...]:
            blobs = self._connection.storage().list_blobs(
                self._bucket, prefix=key, versions=True, fields=fields, **self._once
            )
            return tuple(sorted((int(blob.generation) for blob in blobs if blob.name == key), reverse=True))

        with self._in_bucket():
            return self._sent(f"list the versions of {self.name(key)}", send)

    def put(self, key: str, content: bytes, *, over: int, metadata: Mapping[str, str] | None = None) -> int:
        """Write over generation `over`, 0 for no object; the new generation. Raise `Moved`."""
        mark = {_MARK: uuid.uuid4().hex}

        def send() -> int:
            blob = self._blob(key)
            blob.metadata = {**(metadata or {}), **mark}
            blob.cache_control = "no-store"  # else the service may show what is public an hour late
            blob.upload_from_string(content, content_type=_JSON, if_generation_match=over, **self._once)
            return int(blob.generation)

        try:
            with self._in_bucket():
                return self._sent(f"write {self.name(key)}", send)
        except Precondition as cause:
            found = self._look(key)
            if found is not None and mark.items() <= (found.metadata or {}).items():
                return int(found.generation)  # carried out at the first sending, its reply lost
            raise Moved(key) from cause

    def delete(self, key: str, *, over: int) -> None:
        """Delete generation `over`; gone is what was wanted, whoever did it. Raise `Moved`."""
        try:
            self._sent(
                f"delete {self.name(key)}", lambda: self._blob(key).delete(if_generation_match=over, **self._once)
            )
        except Absent:
            return
        except Precondition as cause:
            raise Moved(key) from cause

    def under(self, prefix: str, *, most: int | None = None) -> tuple[Listed, ...]:
        """The objects whose keys begin so, by key; `most` of them, or all."""
        doing, fields = f"list {self.name(prefix)}", "items(name,metadata),nextPageToken"

        def send() -> tuple[Listed, ...]:
            blobs = self._connection.storage().list_blobs(
                self._bucket, prefix=prefix, max_results=most, fields=fields, **self._once
            )
            return tuple(Listed(key=blob.name, metadata=blob.metadata or {}) for blob in blobs)

        with self._in_bucket():
            return self._sent(doing, send)

    def _look(self, key: str) -> Any:
        """Its metadata alone; None where there is none."""
        try:
            return self._sent(f"look at {self.name(key)}", lambda: self._reloaded(key))
        except Absent:
            return None

    def _reloaded(self, key: str) -> Any:
        blob = self._blob(key)
        blob.reload(**self._once)
        return blob

    def _must_exist(self) -> None:
        """A 404 speaks of an object or of its bucket: a name misspelt is no deployment that was never made."""
        if not self._is_known:
            self.under("", most=1)
            self._is_known = True

    @contextmanager
    def _in_bucket(self) -> Iterator[None]:
        try:
            yield
        except Absent as cause:
            raise errors.StateError(
                f"There is no bucket gs://{self._bucket}.",
                hint=f"Check the name, or run: gcloud storage buckets create gs://{self._bucket}",
            ) from cause

    def _blob(self, key: str, generation: int | None = None) -> Any:
        return self._connection.storage().bucket(self._bucket).blob(key, generation=generation)

    @property
    def _once(self) -> dict[str, Any]:
        """One sending, not longer than our patience: to send again is decided here."""
        return {"timeout": self._connection.timeout, "retry": None}

    def _sent(self, doing: str, call: Callable[[], T]) -> T:
        import tenacity

        with looking(doing):
            self._connection.storage()  # what is not installed is said here
        from google.cloud.storage.exceptions import DataCorruption

        def once() -> T:
            try:
                with looking(doing):
                    return call()
            except (Exists, DataCorruption) as cause:  # a conflict that is no 412, a checksum that does not fit
                raise errors.Fault(f"Could not {doing}: {cause}") from cause

        patience = self._patience
        return tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(errors.Fault),
            stop=lambda state: state.idle_for >= patience.faults_at_plan,
            wait=tenacity.wait_exponential(multiplier=patience.fault_first, max=patience.fault_most),
            sleep=self._clock.sleep,
            reraise=True,
        )(once)
