"""One bucket's objects: read whole; written and deleted only over the generation that was read.

Only this module repeats a mutating call to Google. That is safe, because each call changes nothing unless the object
still has the generation that the sender read: a call that already took effect gets a 412 (or a 404) the second time,
and a mark in the metadata identifies our own write. The library's own retries are off, because they would take that
412 for the write of another client.

Why: decision 21 in docs/decisions.md.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import tenacity

from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.translate import Absent, Exists, PreconditionFailed, translate_read_errors
from tpudeploy.domain import errors
from tpudeploy.domain.patience import Patience
from tpudeploy.ports import Clock

if TYPE_CHECKING:
    from google.cloud.storage import Client

T = TypeVar("T")
_MARK = "tpudeploy-write"  # a key in an object's metadata; its value identifies the call that wrote the object
_JSON = "application/json"


class Moved(Exception):
    """The object no longer has the generation that was read. It never leaves the adapters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Holds an object's content. `generation` grows with every write."""

    content: bytes
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedObject:
    """Holds an object as a list shows it, without its content."""

    key: str
    metadata: Mapping[str, str]


class BucketObjects:
    """Reads and writes the objects of one bucket.

    Every method may raise `errors.Denied`, `errors.Fault` if the service has not answered for a while, and
    `errors.StateError` if the bucket does not exist.
    """

    def __init__(self, connection: CloudConnection, clock: Clock, patience: Patience, *, bucket: str) -> None:
        self._connection = connection
        self._clock = clock
        self._patience = patience
        self._bucket = bucket
        self._is_known = False

    def name(self, key: str) -> str:
        """Return the object's URL: gs://bucket/key."""
        return f"gs://{self._bucket}/{key}"

    def get(self, key: str, *, generation: int | None = None) -> Stored | None:
        """Return the object, or an earlier generation of it where the bucket keeps them. None if it does not exist."""

        def send(client: Client) -> Stored:
            blob = self._blob(client, key, generation)
            content: bytes = blob.download_as_bytes(**self._once)
            return Stored(content=content, generation=int(blob.generation))

        try:
            return self._send(f"read {self.name(key)}", send)
        except Absent:
            self._must_exist()
            return None

    def age(self, key: str, *, generation: int) -> float | None:
        """Return the seconds since this generation was written, by the service's clock alone.

        Return None where the generation is no longer the live one, or where the service does not give its time.
        """
        blob = self._get_metadata(key)
        now = self._connection.storage_time()
        if blob is None or int(blob.generation) != generation or blob.updated is None or now is None:
            return None
        return now - float(blob.updated.timestamp())

    def generation(self, key: str) -> int:
        """Return the object's generation, or 0 if it does not exist."""
        blob = self._get_metadata(key)
        return 0 if blob is None else int(blob.generation)

    def generations(self, key: str) -> tuple[int, ...]:
        """Return every generation of this object that the bucket still has, newest first."""
        fields = "items(name,generation),nextPageToken"

        def send(client: Client) -> tuple[int, ...]:
            blobs = client.list_blobs(self._bucket, prefix=key, versions=True, fields=fields, **self._once)
            return tuple(sorted((int(blob.generation) for blob in blobs if blob.name == key), reverse=True))

        with self._in_bucket():
            return self._send(f"list the versions of {self.name(key)}", send)

    def write(self, key: str, content: bytes, *, over: int, metadata: Mapping[str, str] | None = None) -> int:
        """Write over generation `over` (0: the object must not exist), and return the new one. Raise `Moved`."""
        mark = {_MARK: uuid.uuid4().hex}

        def send(client: Client) -> int:
            blob = self._blob(client, key)
            blob.metadata = {**(metadata or {}), **mark}
            blob.cache_control = "no-store"  # otherwise the service may serve a public object an hour late
            blob.upload_from_string(content, content_type=_JSON, if_generation_match=over, **self._once)
            return int(blob.generation)

        try:
            with self._in_bucket():
                return self._send(f"write {self.name(key)}", send)
        except PreconditionFailed as cause:
            current = self._get_metadata(key)
            if current is not None and mark.items() <= (current.metadata or {}).items():
                return int(current.generation)  # the first call took effect, and its reply was lost
            raise Moved(key) from cause

    def delete(self, key: str, *, over: int) -> None:
        """Delete generation `over`. An absent object is success. Raise `Moved`."""
        try:
            self._send(
                f"delete {self.name(key)}",
                lambda client: self._blob(client, key).delete(if_generation_match=over, **self._once),
            )
        except Absent:
            return
        except PreconditionFailed as cause:
            raise Moved(key) from cause

    def list_under(self, prefix: str, *, limit: int | None = None) -> tuple[ListedObject, ...]:
        """Return the objects whose keys begin with `prefix`, by key; at most `limit` of them, or all."""
        action, fields = f"list {self.name(prefix)}", "items(name,metadata),nextPageToken"

        def send(client: Client) -> tuple[ListedObject, ...]:
            blobs = client.list_blobs(self._bucket, prefix=prefix, max_results=limit, fields=fields, **self._once)
            return tuple(ListedObject(key=blob.name, metadata=blob.metadata or {}) for blob in blobs)

        with self._in_bucket():
            return self._send(action, send)

    def _get_metadata(self, key: str) -> Any:
        """Return the object's metadata without its content, or None if it does not exist."""
        try:
            return self._send(f"look at {self.name(key)}", lambda client: self._reload(client, key))
        except Absent:
            return None

    def _reload(self, client: Client, key: str) -> Any:
        blob = self._blob(client, key)
        blob.reload(**self._once)
        return blob

    def _must_exist(self) -> None:
        """Raise if the bucket does not exist: a 404 can mean the object or its bucket.

        A misspelt bucket name must not look like a deployment that was never created.
        """
        if not self._is_known:
            self.list_under("", limit=1)
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

    def _blob(self, client: Client, key: str, generation: int | None = None) -> Any:
        return client.bucket(self._bucket).blob(key, generation=generation)

    @property
    def _once(self) -> dict[str, Any]:
        """The options of a single call without retries; `_send` decides on those."""
        return {"timeout": self._connection.timeout, "retry": None}

    def _send(self, action: str, call: Callable[[Client], T]) -> T:
        with translate_read_errors(action), self._connection.storage():
            pass  # raises here if the library is not installed
        from google.cloud.storage.exceptions import DataCorruption

        def once() -> T:
            try:
                with translate_read_errors(action), self._connection.storage() as client:
                    return call(client)
            except (Exists, DataCorruption) as cause:  # a conflict other than a 412, or a wrong checksum
                raise errors.Fault(f"Could not {action}: {cause}") from cause

        patience = self._patience
        return tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(errors.Fault),
            stop=lambda state: state.idle_for >= patience.faults_at_plan,
            wait=tenacity.wait_exponential(multiplier=patience.fault_first, max=patience.fault_most),
            sleep=self._clock.sleep,
            reraise=True,
        )(once)
