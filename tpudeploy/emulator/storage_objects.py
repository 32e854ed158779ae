"""The contents of the buckets: whole objects; each write is a new generation, and each request has its conditions."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import md5
from typing import Any

from tpudeploy.emulator import wire

_GENERATIONS_A_SECOND = 1e6  # the service's are microseconds since the epoch
_CASTAGNOLI = 0x82F63B78  # RFC 3720's polynomial, reflected


class StorageError(Exception):
    """Ends a request to Cloud Storage with this status."""

    def __init__(self, http: int, message: str) -> None:
        super().__init__(message)
        self.http = http
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """One generation of an object; bucket, generation and time are set when it is stored."""

    name: str
    content: bytes
    content_type: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    bucket: str = ""
    generation: int = 0
    created_at: float = 0.0

    @property
    def crc32c(self) -> str:
        return crc32c_base64(self.content)

    def resource(self) -> dict[str, Any]:
        created = wire.timestamp(self.created_at)
        resource = {
            "kind": "storage#object",
            "id": f"{self.bucket}/{self.name}/{self.generation}",
            "bucket": self.bucket,
            "name": self.name,
            "generation": str(self.generation),
            "metageneration": "1",
            "contentType": self.content_type,
            "storageClass": "STANDARD",
            "size": str(len(self.content)),
            "crc32c": self.crc32c,
            "md5Hash": b64encode(md5(self.content, usedforsecurity=False).digest()).decode(),
            "timeCreated": created,
            "updated": created,
        }
        return resource | ({"metadata": dict(self.metadata)} if self.metadata else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """`ifGenerationMatch` and `ifGenerationNotMatch`; None where the request does not set one. 0 means no object."""

    match: int | None = None
    other_than: int | None = None

    def check(self, generation: int) -> None:
        """Raise StorageError, 412 or 304, where the live generation (0 for none) does not meet the conditions.

        The 304 is documented for every request; on one that writes it is UNVERIFIED.
        """
        if self.match is not None and self.match != generation:
            raise StorageError(412, "At least one of the pre-conditions you specified did not hold.")
        if self.other_than is not None and self.other_than == generation:
            raise StorageError(304, "Not Modified")


@dataclass(slots=True, kw_only=True)
class StoredObjects:
    """Live objects by bucket and name. `buckets` are those that exist; None: whichever is requested.

    `versioned` are the buckets whose object versioning is on: an object that is replaced or deleted there is kept.
    """

    now: Callable[[], float]
    buckets: tuple[str, ...] | None = None
    versioned: tuple[str, ...] = ()
    _live: dict[tuple[str, str], StoredObject] = field(default_factory=dict)
    _past: dict[tuple[str, str], list[StoredObject]] = field(default_factory=dict)
    _last_generation: int = 0

    def check_bucket(self, bucket: str) -> None:
        if self.buckets is not None and bucket not in self.buckets:
            raise StorageError(404, "The specified bucket does not exist.")

    def get(self, bucket: str, name: str, conditions: Conditions, *, generation: int | None = None) -> StoredObject:
        """Return the live object, or that `generation`. Raise StorageError, first of all 404 for an absent one."""
        self.check_bucket(bucket)
        stored = self._live.get((bucket, name))
        if generation is not None:
            stored = next((o for o in self._generations(bucket, name) if o.generation == generation), None)
        if stored is None:
            raise StorageError(404, f"No such object: {bucket}/{name}")
        conditions.check(stored.generation)
        return stored

    def insert(self, bucket: str, upload: StoredObject, conditions: Conditions) -> StoredObject:
        self.check_bucket(bucket)
        previous = self._live.get((bucket, upload.name))
        conditions.check(previous.generation if previous is not None else 0)
        now = self.now()
        self._last_generation = max(self._last_generation + 1, int(now * _GENERATIONS_A_SECOND))
        self._retire(previous)
        stored = replace(upload, bucket=bucket, generation=self._last_generation, created_at=now)
        self._live[bucket, upload.name] = stored
        return stored

    def delete(self, bucket: str, name: str, conditions: Conditions) -> None:
        """Remove the live object; where versioning is on, it is kept as a past generation."""
        self._retire(self.get(bucket, name, conditions))
        del self._live[bucket, name]

    def under(self, bucket: str, prefix: str, *, versions: bool = False) -> Iterator[StoredObject]:
        """Yield objects in the service's order: by the bytes of the name, and for one name by generation."""
        self.check_bucket(bucket)
        keys = {*self._live, *self._past} if versions else set(self._live)
        names = {name for key_bucket, name in keys if key_bucket == bucket and name.startswith(prefix)}
        for name in sorted(names, key=str.encode):
            yield from self._generations(bucket, name) if versions else (self._live[bucket, name],)

    def _retire(self, previous: StoredObject | None) -> None:
        if previous is not None and previous.bucket in self.versioned:
            self._past.setdefault((previous.bucket, previous.name), []).append(previous)

    def _generations(self, bucket: str, name: str) -> list[StoredObject]:
        """Return every generation, oldest first."""
        live = self._live.get((bucket, name))
        return [*self._past.get((bucket, name), ()), *([] if live is None else [live])]


def crc32c_base64(content: bytes) -> str:
    """Return the CRC-32C as the service writes it: big-endian, base64."""
    return b64encode(crc32c(content).to_bytes(4)).decode()


def crc32c(content: bytes) -> int:
    """Return the CRC-32C (RFC 3720, appendix B.4)."""
    checksum = 0xFFFFFFFF
    for byte in content:
        checksum = _TABLE[(checksum ^ byte) & 0xFF] ^ (checksum >> 8)
    return checksum ^ 0xFFFFFFFF


def _table_row(index: int) -> int:
    for _ in range(8):
        index = (index >> 1) ^ (_CASTAGNOLI if index & 1 else 0)
    return index


_TABLE = tuple(_table_row(index) for index in range(256))
