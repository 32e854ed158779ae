"""Everything that exists in the emulated cloud: records, and the look-ups over them. Behaviour lives beside it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.emulator import texts, wire
from tpudeploy.emulator.addresses import Addresses
from tpudeploy.emulator.agenda import Agenda, Deed
from tpudeploy.emulator.clock import Clock
from tpudeploy.emulator.faults import FAULTS
from tpudeploy.emulator.machine.facts import Behaviour
from tpudeploy.emulator.scenario import Scenario, Timings
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
    def port_for(self, port: int) -> int: ...
    @property
    def address(self) -> str: ...
    @property
    def guest_attributes(self) -> Mapping[str, str]: ...


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
    behaviour: Behaviour
    troubles: Mapping[str, Trouble]
    hidden_until: float
    state: str = "CREATING"
    initiator: str = "USER"
    error: wire.Status | None = None
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


class Cloud:
    """All records and what they share. Whoever touches them holds `lock`."""

    def __init__(self, *, clock: Clock, scenario: Scenario, folder: Path) -> None:
        self.clock = clock
        self.scenario = scenario
        self.folder = folder
        self.lock = threading.RLock()
        self.agenda = Agenda()
        self.addresses = Addresses()
        self.slices: dict[str, QueuedResource] = {}
        self.nodes: dict[str, Node] = {}
        self.operations: dict[str, Operation] = {}
        self.troubles: list[Trouble] = list(scenario.trouble)
        self.calls: Counter[object] = Counter()
        self.creates: dict[str, list[float]] = {}
        self._struck: Counter[int] = Counter()

    def later(self, slice_: QueuedResource, at: float, deed: Deed) -> None:
        """Plan `deed` for this slice, unless it enters another state before."""
        chapter = slice_.chapter

        def unless_overtaken(moment: float) -> None:
            if slice_.chapter == chapter:
                deed(moment)

        self.agenda.add(at, unless_overtaken)

    def visible_slice(self, name: str) -> QueuedResource:
        """Raise Refusal: 404 for what is not there, or not yet to be seen."""
        slice_ = self.slices.get(name)
        if slice_ is None or slice_.hidden_until > self.clock.now():
            raise self.not_found(name)
        return slice_

    def visible_node(self, name: str) -> Node:
        node = self.nodes.get(name)
        if node is None or self.slices[node.slice_name].hidden_until > self.clock.now():
            raise self.not_found(name)
        return node

    def not_found(self, name: str) -> wire.Refusal:
        status = texts.status("not-found", {"name": name})
        detail = {"@type": "type.googleapis.com/google.rpc.ResourceInfo", "resourceName": name}
        return wire.refuse(status.code, status.message, detail)

    def nodes_of(self, slice_: QueuedResource) -> Iterator[Node]:
        return (self.nodes[name] for id_ in slice_.node_ids if (name := f"{slice_.parent}/nodes/{id_}") in self.nodes)

    def striking(self, facts: Mapping[str, str], counts: Mapping[str, int]) -> dict[str, Trouble]:
        """Every row of trouble that strikes this call, by fault: one row a fault, and of refusals the first alone."""
        found: dict[str, Trouble] = {}
        refused = False
        for index, row in enumerate(self.troubles):
            is_refusal = FAULTS[row.fault].kind == "refusal"
            if row.fault in found or (is_refusal and refused) or self._struck[index] >= row.times:
                continue
            if not row.fits(facts, counts):
                continue
            if self.scenario.draw(index, facts.get("zone"), counts["attempt"]) < row.chance:
                self._struck[index] += 1
                found[row.fault] = row
                refused |= is_refusal
        return found

    def begin(self, target: str, verb: str, at: float) -> Operation:
        """A new operation, its id in the form of Google's."""
        place = "/".join(target.split("/")[:4])
        number = len(self.operations) + 1
        tail = f"{int(self.scenario.draw('operation', number) * 2**52):013x}-{number:08x}-{int(at) & 0xFFFFFFFF:08x}"
        operation = Operation(
            name=f"{place}/operations/operation-{int(at * 1000)}-{tail}", target=target, verb=verb, created_at=at
        )
        self.operations[operation.name] = operation
        return operation

    def age(self) -> None:
        with self.lock:
            self.agenda.run(self.clock.now())

    def close(self) -> None:
        with self.lock:
            for node in self.nodes.values():
                for host in node.hosts:
                    host.stop()
            self.addresses.close()
