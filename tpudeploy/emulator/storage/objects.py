"""What lies in the buckets: whole objects, each write a new generation, each request held to its conditions."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import md5
from typing import Any

from tpudeploy.emulator import wire
from tpudeploy.emulator.storage.answers import Refused
from tpudeploy.emulator.storage.crc32c import crc32c

_GENERATIONS_A_SECOND = 1e6  # the service's are microseconds since the epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One generation of an object."""

    bucket: str
    name: str
    generation: int
    content: bytes
    content_type: str
    created_at: float
    metadata: Mapping[str, str]

    @property
    def crc32c(self) -> str:
        return crc32c(self.content)

    def resource(self) -> dict[str, Any]:
        moment = wire.timestamp(self.created_at)
        said = {
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
            "timeCreated": moment,
            "updated": moment,
        }
        return said | ({"metadata": dict(self.metadata)} if self.metadata else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """`ifGenerationMatch` and `ifGenerationNotMatch`; None where the request does not set one. 0 is no object."""

    match: int | None = None
    other_than: int | None = None

    def check(self, generation: int) -> None:
        """`generation` is the live one, 0 for none. Raise Refused: 412, or 304 for what has not changed.

        The 304 is documented for every request; on one that writes it is UNVERIFIED.
        """
        if self.match is not None and self.match != generation:
            raise Refused(412, "At least one of the pre-conditions you specified did not hold.")
        if self.other_than is not None and self.other_than == generation:
            raise Refused(304, "Not Modified")


@dataclass(slots=True, kw_only=True)
class Objects:
    """Live objects by bucket and name. `known` names the buckets there are; None: whichever is asked for.

    `versioned` are the buckets whose object versioning is on: what is replaced or deleted there can still be had.
    """

    now: Callable[[], float]
    known: tuple[str, ...] | None = None
    versioned: tuple[str, ...] = ()
    _live: dict[tuple[str, str], Stored] = field(default_factory=dict)
    _past: dict[tuple[str, str], list[Stored]] = field(default_factory=dict)
    _last: int = 0

    def must_know(self, bucket: str) -> None:
        if self.known is not None and bucket not in self.known:
            raise Refused(404, "The specified bucket does not exist.")

    def get(self, bucket: str, name: str, conditions: Conditions, *, generation: int | None = None) -> Stored:
        """The live one, or that `generation`. Raise Refused: 404 for what is not there, whatever the conditions."""
        self.must_know(bucket)
        found = self._live.get((bucket, name))
        if generation is not None:
            found = next((o for o in self._of(bucket, name) if o.generation == generation), None)
        if found is None:
            raise Refused(404, f"No such object: {bucket}/{name}")
        conditions.check(found.generation)
        return found

    def put(
        self,
        bucket: str,
        name: str,
        conditions: Conditions,
        *,
        content: bytes,
        content_type: str,
        metadata: Mapping[str, str],
    ) -> Stored:
        self.must_know(bucket)
        before = self._live.get((bucket, name))
        conditions.check(before.generation if before is not None else 0)
        now = self.now()
        self._last = max(self._last + 1, int(now * _GENERATIONS_A_SECOND))
        made = Stored(
            bucket=bucket,
            name=name,
            generation=self._last,
            content=content,
            content_type=content_type,
            created_at=now,
            metadata=metadata,
        )
        self._keep(before)
        self._live[bucket, name] = made
        return made

    def delete(self, bucket: str, name: str, conditions: Conditions) -> None:
        """The live one: with versioning on, it is only live no more."""
        self._keep(self.get(bucket, name, conditions))
        del self._live[bucket, name]

    def under(self, bucket: str, prefix: str, *, versions: bool = False) -> Iterator[Stored]:
        """In the service's order: by the bytes of the name, and of one name by generation."""
        self.must_know(bucket)
        every = {*self._live, *self._past} if versions else set(self._live)
        names = sorted((name for held, name in every if held == bucket and name.startswith(prefix)), key=str.encode)
        return (o for name in names for o in (self._of(bucket, name) if versions else [self._live[bucket, name]]))

    def _keep(self, before: Stored | None) -> None:
        if before is not None and before.bucket in self.versioned:
            self._past.setdefault((before.bucket, before.name), []).append(before)

    def _of(self, bucket: str, name: str) -> list[Stored]:
        """Every generation there is, oldest first."""
        live = self._live.get((bucket, name))
        return [*self._past.get((bucket, name), ()), *([] if live is None else [live])]
