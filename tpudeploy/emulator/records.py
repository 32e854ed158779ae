"""The records of what exists: queued resources, nodes, operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.emulator import wire
from tpudeploy.emulator.machine.facts import Behaviour
from tpudeploy.emulator.timings import Jitter, Timings
from tpudeploy.emulator.trouble import Trouble

if TYPE_CHECKING:  # both are imported when the first node is READY
    from tpudeploy.emulator.machine.machine import Machine
    from tpudeploy.emulator.simulated import Simulated

Host: TypeAlias = "Machine | Simulated"  # one VM of a node
WAITING = ("ACCEPTED", "WAITING_FOR_RESOURCES")
HUSKS = ("FAILED", "SUSPENDED")


@dataclass(slots=True, kw_only=True)
class Node:
    """`spec` is the node as requested, replaced (never changed) by patch: hosts read it without the lock."""

    name: str
    uid: int
    spec: dict[str, Any]
    slice_name: str
    created_at: float
    state: str = "CREATING"
    health: str = "HEALTH_UNSPECIFIED"
    ends_at: float | None = None
    hosts: list[Host] = field(default_factory=list)

    @property
    def is_billed(self) -> bool:
        return self.state in ("READY", "RESTARTING", "REPAIRING")


@dataclass(slots=True, kw_only=True)
class QueuedResource:
    """`changes` counts the states entered: an event that was planned before the last change no longer happens."""

    name: str
    project: str
    zone: str
    body: dict[str, Any]
    accelerator: AcceleratorType
    model: str
    node_ids: tuple[str, ...]
    created_at: float
    request_id: str
    create_operation: str
    timings: Timings
    jitter: Jitter
    behaviour: Behaviour
    troubles: Mapping[str, Trouble]
    hidden_until: float
    unlisted_until: float
    state: str = "CREATING"
    initiator: str = "USER"
    error: wire.Status | None = None
    deletes_when_active: bool = False
    changes: int = 0

    @property
    def parent(self) -> str:
        return self.name.rpartition("/queuedResources/")[0]

    @property
    def id(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def chips(self) -> int:
        return self.accelerator.chips * len(self.node_ids)

    def is_listed(self, now: float) -> bool:
        return self.hidden_until <= now and self.unlisted_until <= now

    def enter(self, state: str, *, initiator: str = "SERVICE") -> None:
        self.state, self.initiator, self.changes = state, initiator, self.changes + 1

    def fault_settings(self, fault: str) -> dict[str, Any] | None:
        """Return the settings of a fault that strikes this slice; None where it does not."""
        return self.troubles[fault].settings if fault in self.troubles else None


@dataclass(slots=True, kw_only=True)
class Operation:
    name: str
    target: str
    verb: str
    created_at: float
    ended_at: float | None = None
    cancel_requested: bool = False
    error: wire.Status | None = None
    response: tuple[str, dict[str, Any]] | None = None

    def succeed(self, at: float, kind: str, body: dict[str, Any]) -> None:
        """End with a response; `kind` names its schema, `Empty` with {} for none."""
        self.ended_at, self.response = at, (kind, body)

    def fail(self, at: float, error: wire.Status) -> None:
        self.ended_at, self.error = at, error
