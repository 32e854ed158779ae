"""Kills a process before one of its effects: a write beside the states, or a call that changes something at Google."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from command_line import Killed
from promises.mortal import GROUP_CALL

from tpudeploy.adapters import records
from tpudeploy.adapters.google.backends import Backends
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.records import BucketRecords
from tpudeploy.adapters.state.bucket import BucketState
from tpudeploy.adapters.state.local import LocalState

EFFECTS: Mapping[object, tuple[str, ...]] = {
    LocalState: ("write", "delete", "enter", "publish"),
    BucketState: ("write", "delete", "enter", "publish", "lock", "unlock"),  # of a folder, the kernel unlocks
    records: ("keep",),
    BucketRecords: ("keep",),
    Backends: ("request", "release", "update", "restart"),
}


@dataclass
class Kill:
    """Ends the process before its effect of this number, and counts its effects. A killed process does nothing more."""

    at: int | None = None
    count: int = 0

    def burn(self) -> None:
        self.count += 1
        if self.at is not None and self.count > self.at:
            raise Killed


def put_to(patch: pytest.MonkeyPatch, kill: Kill) -> None:
    """Let each effect of the product burn it."""

    def mortal(whole: Callable[..., Any]) -> Callable[..., Any]:
        def effect(*args: Any, **values: Any) -> Any:
            kill.burn()
            return whole(*args, **values)

        return effect

    for owner, names in EFFECTS.items():
        for name in names:
            patch.setattr(owner, name, mortal(getattr(owner, name)))
    note = CloudConnection._note_exchange

    def note_mortally(self: CloudConnection, method: str, url: str, *reply: Any) -> None:
        if method != "GET" and GROUP_CALL.search(url):
            kill.burn()
        note(self, method, url, *reply)

    patch.setattr(CloudConnection, "_note_exchange", note_mortally)
