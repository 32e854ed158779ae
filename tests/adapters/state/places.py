"""PLACES: where states can lie, one row a backend; what every sentence of the contract is said of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

from promises.mortal import Watch

from tpudeploy import Workspace
from tpudeploy.emulator import Emulator, VirtualClock, running
from tpudeploy.emulator.storage_objects import Conditions, StoredObject
from tpudeploy.ports import StateBackend

BUCKET, PREFIX = "states", "team/a"
# What may happen to one call and leave its sender without an answer.
LOST_CALLS: Mapping[str, Mapping[str, Any]] = {
    "503 before": {"fault": "unavailable"},
    "503 after it was carried out": {"fault": "failed-reply"},
    "429": {"fault": "rate-limit"},
    "no connection": {"fault": "connection-refused"},
    "reply lost": {"fault": "lost-reply"},
    "reply lost, the connection closed": {"fault": "lost-reply", "close": True},
}


class Place(Protocol):
    """`reopen` is another process's view of it; `put` and `get` go round us, as somebody else's program would."""

    def reopen(self) -> StateBackend: ...
    def put(self, key: str, content: bytes) -> None: ...
    def get(self, key: str) -> bytes | None: ...


class Folder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def reopen(self) -> StateBackend:
        return Workspace.open(self.folder, clock=VirtualClock()).adapters.states

    def put(self, key: str, content: bytes) -> None:
        self._path(key).parent.mkdir(parents=True, exist_ok=True)
        self._path(key).write_bytes(content)

    def get(self, key: str) -> bytes | None:
        return self._path(key).read_bytes() if self._path(key).exists() else None

    def _path(self, key: str) -> Path:
        return self.folder / (key if key.startswith("endpoints/") else f".tpudeploy/{key}")


class InBucket:
    """A bucket behind Google's real client; `trouble` is added by `emulator.script`."""

    def __init__(self, folder: Path, emulator: Emulator, clock: VirtualClock, stack: ExitStack) -> None:
        self.folder = folder
        self.emulator = emulator
        self.clock = clock
        self._stack = stack

    def open(self) -> Workspace:
        return self.open_at(0.0)

    def open_at(self, ahead: float) -> Workspace:
        """On a machine whose clock is by so many seconds ahead of the bucket's."""
        workspace = Workspace.open(self.folder, backend=f"gs://{BUCKET}/{PREFIX}", clock=Watch(self.clock, ahead))
        self._stack.callback(workspace.adapters.connection.close)
        return workspace

    def reopen(self) -> StateBackend:
        return self.open().adapters.states

    def put(self, key: str, content: bytes) -> None:
        stored = StoredObject(name=f"{PREFIX}/{key}", content=content, content_type="text/plain")
        self.emulator._cloud.objects.insert(BUCKET, stored, Conditions())

    def get(self, key: str) -> bytes | None:
        objects = list(self.emulator._cloud.objects.under(BUCKET, f"{PREFIX}/{key}"))
        return objects[0].content if objects else None


@contextmanager
def in_folder(folder: Path) -> Iterator[Folder]:
    with patch.dict("os.environ", {"USER": "me"}):
        yield Folder(folder)


@contextmanager
def in_bucket(folder: Path, **scenario: Any) -> Iterator[InBucket]:
    clock = VirtualClock()
    with (
        running(clock=clock, scenario={"nodes": "simulated", "versioned_buckets": [BUCKET], **scenario}) as emulator,
        patch.dict("os.environ", {"USER": "me", **emulator.environment}),
        ExitStack() as stack,
    ):
        yield InBucket(folder, emulator, clock, stack)


PLACES: Mapping[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "folder": in_folder,
    "bucket": in_bucket,
}
