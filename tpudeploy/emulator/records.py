"""The records of what exists: queued resources and their nodes, instances, operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.emulator import wire
from tpudeploy.emulator.machine.facts import Behaviour
from tpudeploy.emulator.machine.machine import Machine
from tpudeploy.emulator.simulated import Simulated
from tpudeploy.emulator.simulated_router import SimulatedRouter
from tpudeploy.emulator.texts import CREATE, GROUP_INSERT, INSERT
from tpudeploy.emulator.timings import Jitter, Timings
from tpudeploy.emulator.trouble import Trouble

if TYPE_CHECKING:  # machines are imported when the first node is READY, and the others import these records
    from tpudeploy.emulator.compute_engine.insert_request import InsertRequest

Host: TypeAlias = "Machine | Simulated | SimulatedRouter"  # one VM of a node
WAITING = ("ACCEPTED", "WAITING_FOR_RESOURCES")
HUSKS = ("FAILED", "SUSPENDED")
IMAGE_DISK_GB = 10  # the size of the boot disk that a request does not name


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
class BilledMachine:
    """A row of the emulator's own bill: one machine from `began` until `ended`, None while it is billed.

    Of an ended one without a script: `served` is when it first served, `used` when it last had a request of a user, and
    `ends_by_itself` whether it asked for its own deletion.
    """

    name: str
    began: float
    zone: str = ""
    ended: float | None = None
    served: float | None = None
    used: float | None = None
    ends_by_itself: bool = False


@dataclass(slots=True, kw_only=True)
class ChipRequest:
    """What either API creates: it waits for chips, holds them and ends, as the scenario says.

    `changes` counts the states entered: an event that was planned before the last change no longer happens.
    `creation` is its create operation.
    """

    service: ClassVar[str]
    create_method: ClassVar[str]

    name: str
    project: str
    zone: str
    body: dict[str, Any]
    accelerator: AcceleratorType
    model: str
    created_at: float
    timings: Timings
    jitter: Jitter
    behaviour: Behaviour
    troubles: Mapping[str, Trouble]
    hidden_until: float
    unlisted_until: float
    state: str = "CREATING"
    deletes_when_active: bool = False
    changes: int = 0
    creation: LongRunningOperation | None = None

    @property
    def id(self) -> str:
        return self.name.rpartition("/")[2]

    def is_visible(self, now: float) -> bool:
        """Return whether a look by its name shows it: some only appear a time after their create operation is over."""
        late = self.fault_settings("hidden-after-operation")
        if self.hidden_until > now or late is None or self.creation is None:
            return self.hidden_until <= now
        return self.creation.ended_at is not None and self.creation.ended_at + late["seconds"] <= now

    @property
    def appearances(self) -> Iterator[float]:
        """Yield the moments from which on it is visible and listed, as far as they are known."""
        yield from (self.hidden_until, self.unlisted_until)
        late = self.fault_settings("hidden-after-operation")
        if late is not None and self.creation is not None and self.creation.ended_at is not None:
            yield self.creation.ended_at + late["seconds"]

    def is_listed(self, now: float) -> bool:
        return self.is_visible(now) and self.unlisted_until <= now

    def enter(self, state: str) -> None:
        self.state, self.changes = state, self.changes + 1

    def fault_settings(self, fault: str) -> dict[str, Any] | None:
        """Return the settings of a fault that strikes this request; None where it does not."""
        return self.troubles[fault].settings if fault in self.troubles else None


@dataclass(slots=True, kw_only=True)
class QueuedResource(ChipRequest):
    service: ClassVar[str] = "tpu"
    create_method: ClassVar[str] = CREATE

    node_ids: tuple[str, ...]
    request_id: str
    create_operation: str
    initiator: str = "USER"
    error: wire.RpcStatus | None = None

    @property
    def parent(self) -> str:
        return self.name.rpartition("/queuedResources/")[0]

    @property
    def chips(self) -> int:
        return self.accelerator.chips * len(self.node_ids)

    def enter(self, state: str, *, initiator: str = "SERVICE") -> None:
        self.state, self.initiator, self.changes = state, initiator, self.changes + 1


@dataclass(slots=True, kw_only=True)
class Instance(ChipRequest):
    """An instance of Compute Engine; `body` is the request, and is replaced, never changed.

    `state` is Google's `status`, or WAITING while only the insert operation shows that the instance is wanted.
    `host` is the machine that runs, `stopped_host` one of which only the disk is left.
    """

    service: ClassVar[str] = "compute"
    create_method: ClassVar[str] = INSERT

    uid: int
    refusal: wire.RpcStatus | None = None
    host: Host | None = None
    stopped_host: Host | None = None
    insert_operation: ZoneOperation | None = None
    open_operations: list[ZoneOperation] = field(default_factory=list)
    is_being_deleted: bool = False
    started_at: float | None = None
    stopped_at: float | None = None
    ends_at: float | None = None
    maintenance: dict[str, Any] | None = None
    group: Group | None = None

    @property
    def metadata(self) -> dict[str, str]:
        return {item["key"]: item.get("value", "") for item in self.body.get("metadata", {}).get("items", ())}

    @property
    def scheduling(self) -> dict[str, Any]:
        settings: dict[str, Any] = self.body["scheduling"]
        return settings

    @property
    def machine_type(self) -> str:
        return self.accelerator.machine_type

    @property
    def disk_gb(self) -> int:
        """Return the size of the boot disk, in GB."""
        boot = next(disk for disk in self.body["disks"] if disk.get("boot"))
        return int(boot.get("initializeParams", {}).get("diskSizeGb") or boot.get("diskSizeGb") or IMAGE_DISK_GB)

    @property
    def has_address(self) -> bool:
        """Whether it has an external address."""
        return any(interface.get("accessConfigs") for interface in self.body["networkInterfaces"])

    @property
    def is_billed(self) -> bool:
        return self.state in ("RUNNING", "STOPPING", "REPAIRING") and self.started_at is not None


@dataclass(slots=True, kw_only=True)
class GroupPart:
    """A workload policy or an instance template; it is in use, or gone, `seconds` after the call."""

    name: str
    kind: str
    body: dict[str, Any]
    uid: int
    created_at: float
    seconds: float


@dataclass(slots=True, kw_only=True)
class Group(ChipRequest):
    """A managed instance group in bulk mode, whose `members` form one slice.

    `state` is WAITING until the group is created, SEEKING until its instances are, then FILLED, at last DELETING.
    `reason` is why it seeks, from the look at `looked_at`. `refusal` is what the scenario has it meet: for ever, or
    with `breaks` in one of its instances.
    """

    service: ClassVar[str] = "compute"
    create_method: ClassVar[str] = GROUP_INSERT

    uid: int
    policy: str
    template: str
    properties: InsertRequest
    members: tuple[str, ...]
    reason: wire.RpcStatus | None = None
    looked_at: float = 0.0
    refusal: wire.RpcStatus | None = None
    breaks: bool = False


@dataclass(slots=True, kw_only=True)
class LongRunningOperation:
    """A long-running operation. One that `never_ends` stays open, whatever becomes of its target."""

    name: str
    target: str
    verb: str
    created_at: float
    ended_at: float | None = None
    cancel_requested: bool = False
    never_ends: bool = False
    error: wire.RpcStatus | None = None
    response: tuple[str, dict[str, Any]] | None = None

    def succeed(self, at: float, kind: str, body: dict[str, Any]) -> None:
        """End with a response; `kind` names its schema, `Empty` with {} for none."""
        if not self.never_ends:
            self.ended_at, self.response = at, (kind, body)

    def fail(self, at: float, error: wire.RpcStatus) -> None:
        if not self.never_ends:
            self.ended_at, self.error = at, error


@dataclass(slots=True, kw_only=True)
class ZoneOperation(LongRunningOperation):
    """An operation of Compute Engine. `note` is its statusMessage, `client_id` the request id of the caller.

    `due` is the moment of its end, where that is known before.
    """

    number: int
    target_id: int
    due: float | None = None
    client_id: str = ""
    user: str = "caller@example.com"
    note: str = ""
