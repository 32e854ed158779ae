"""What exists, one record a thing: queued resource, node, operation; and what a node asks of its machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.emulator import wire
from tpudeploy.emulator.jitter import Jitter
from tpudeploy.emulator.machine.facts import Behaviour
from tpudeploy.emulator.timings import Timings
from tpudeploy.emulator.trouble import Trouble

WAITING = ("ACCEPTED", "WAITING_FOR_RESOURCES")
HUSKS = ("FAILED", "SUSPENDED")


class Host(Protocol):
    """One VM of a node: a real Machine or a Simulated one."""

    def boot(self) -> None: ...
    def reboot(self) -> None: ...
    def stop(self) -> None: ...
    def settle(self) -> None: ...
    def log(self) -> str: ...
    def kill(self, unit: str) -> None: ...
    def run_script_by_hand(self) -> None: ...
    def port_for(self, port: int) -> int: ...
    @property
    def address(self) -> str: ...
    @property
    def guest_attributes(self) -> Mapping[str, str]: ...
    @property
    def removed_attributes(self) -> tuple[str, ...]: ...
    def read_guest_attributes(self) -> Mapping[str, str]: ...


@dataclass(slots=True, kw_only=True)
class Node:
    """`spec` is the node as it was asked for, replaced (never changed) by patch: hosts read it without the lock."""

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
    """`chapter` grows whenever a state is entered: a deed planned in an earlier chapter no longer happens."""

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
    chapter: int = 0

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
        self.state, self.initiator, self.chapter = state, initiator, self.chapter + 1

    def told(self, fault: str) -> dict[str, Any] | None:
        """What the scenario tells this slice of `fault`, or None where it does not strike."""
        return self.troubles[fault].told() if fault in self.troubles else None


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
        """`kind` names the schema of the response; `Empty` and {} for none."""
        self.ended_at, self.response = at, (kind, body)

    def fail(self, at: float, error: wire.Status) -> None:
        self.ended_at, self.error = at, error
