"""Everything that exists in the emulated cloud, and the look-ups over it. Its behaviour is in other modules."""

from __future__ import annotations

import heapq
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

from tpudeploy.emulator import texts, wire
from tpudeploy.emulator.addresses import AddressPool
from tpudeploy.emulator.clock import EmulatorClock
from tpudeploy.emulator.faults import FAULTS
from tpudeploy.emulator.http_server import HttpRequest, Reply
from tpudeploy.emulator.records import (
    BilledMachine,
    ChipRequest,
    Group,
    GroupPart,
    Host,
    Instance,
    LongRunningOperation,
    Node,
    QueuedResource,
    ZoneOperation,
)
from tpudeploy.emulator.scenario import Scenario
from tpudeploy.emulator.scriptless import Scriptless
from tpudeploy.emulator.storage_objects import StoredObjects
from tpudeploy.emulator.trouble import Trouble
from tpudeploy.emulator.wire import ApiCall

Action = Callable[[float], None]


class Agenda:
    """Actions by their moments. Each gets the moment at which it was due: a long sleep ages a slice step by step."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Action]] = []
        self._order = count()
        self._is_running = False

    def add(self, moment: float, action: Action) -> None:
        heapq.heappush(self._due, (moment, next(self._order), action))

    def run(self, now: float) -> None:
        """Run what is due, in its order. An action that asks the cloud something finds it as it is at that moment."""
        if self._is_running:
            return
        self._is_running = True
        try:
            while self._due and self._due[0][0] <= now:
                moment, _, action = heapq.heappop(self._due)
                action(moment)
        finally:
            self._is_running = False

    def next_moment(self) -> float:
        """Return when the next action is due; infinite without one."""
        return self._due[0][0] if self._due else inf


class Cloud:
    """All records and what they share. `lock` guards them."""

    def __init__(self, *, clock: EmulatorClock, scenario: Scenario, folder: Path) -> None:
        self.clock = clock
        self.began = clock.now()
        self.scenario = scenario
        self.folder = folder
        self.lock = threading.RLock()
        self.storage_lock = threading.Lock()  # of `objects`: machines reach them without waiting for the cloud
        self.agenda = Agenda()
        self.addresses = AddressPool()
        self.slices: dict[str, QueuedResource] = {}
        self.orphaned: dict[str, QueuedResource] = {}  # gone, but for their nodes
        self.nodes: dict[str, Node] = {}
        self.node_names: dict[str, QueuedResource] = {}  # the slice that last took each name of a node
        self.operations: dict[str, LongRunningOperation] = {}
        self.instances: dict[str, Instance] = {}
        self.groups: dict[str, Group] = {}
        self.group_parts: dict[str, GroupPart] = {}  # workload policies and instance templates
        self.zone_operations: dict[str, ZoneOperation] = {}
        self.objects = StoredObjects(now=clock.now, buckets=scenario.buckets, versioned=scenario.versioned_buckets)
        self.troubles: list[Trouble] = list(scenario.trouble)
        self.calls: Counter[object] = Counter()
        self.unsupported: list[str] = []  # requests that a stand-in cannot answer as the real one would
        self.creates: dict[str, deque[float]] = {}  # of the last minute, by project
        self.answer: Callable[[HttpRequest], Reply]  # of the service, for machines that call it
        self._struck: Counter[int] = Counter()
        self.bill: list[BilledMachine] = []
        self.own_ends: set[str] = set()  # the machines that asked for their own deletion

    def begin_bill(self, name: str, at: float) -> None:
        """Bill a machine from `at` on."""
        self.bill.append(BilledMachine(name=name, began=at))

    def end_bill(self, name: str, at: float) -> None:
        """Bill a machine no longer, if it is billed."""
        for row in self.bill:
            if row.name == name and row.ended is None:
                row.ended, row.ends_by_itself = at, name in self.own_ends
                for host in self.hosts.get(name, ()):
                    if isinstance(host, Scriptless):
                        row.served, row.used = host.service()

    def later(self, request: ChipRequest, at: float, action: Action) -> None:
        """Plan an action for this request, unless it enters another state before."""
        changes = request.changes

        def unless_overtaken(moment: float) -> None:
            if request.changes == changes:
                action(moment)

        self.agenda.add(at, unless_overtaken)

    def current_version(self, name: str) -> str:
        """Return a text for what an image or a model of this name is now: another one after each push."""
        every = self.scenario.project.pushes.get(name)
        return name if every is None else f"{name} {self.clock.now() // every:.0f}"

    def visible_slice(self, name: str) -> QueuedResource:
        """Return a slice. Raise ApiError, 404, for one that does not exist or is not yet visible."""
        slice_ = self.slices.get(name)
        if slice_ is None or not slice_.is_visible(self.clock.now()):
            raise self.not_found(name)
        return slice_

    def visible_node(self, name: str) -> Node:
        node = self.nodes.get(name)
        if node is None or not self.slice_of(node).is_visible(self.clock.now()):
            raise self.not_found(name)
        return node

    def slice_of(self, node: Node) -> QueuedResource:
        """Return the slice that the node belongs to, also after it was deleted."""
        return self.slices.get(node.slice_name) or self.orphaned[node.slice_name]

    @property
    def holding(self) -> tuple[QueuedResource, ...]:
        """Return every slice that uses quota and names: those that exist, and those whose nodes do."""
        return (*self.slices.values(), *self.orphaned.values())

    def is_holding(self, slice_: QueuedResource) -> bool:
        """Return whether this slice is one of `holding`, however many there are."""
        return self.slices.get(slice_.name) is slice_ or self.orphaned.get(slice_.name) is slice_

    def not_found(self, name: str) -> wire.ApiError:
        status = texts.status("not-found", {"name": name})
        detail = {"@type": "type.googleapis.com/google.rpc.ResourceInfo", "resourceName": name}
        return wire.refuse(status.code, status.message, detail)

    def nodes_of(self, slice_: QueuedResource) -> Iterator[Node]:
        return (self.nodes[name] for id_ in slice_.node_ids if (name := f"{slice_.parent}/nodes/{id_}") in self.nodes)

    def striking(self, facts: Mapping[str, str], counts: Mapping[str, int]) -> dict[str, Trouble]:
        """Return the rows of trouble that strike this call, by fault: one for each, and only the first refusal."""
        rows: dict[str, Trouble] = {}
        refused = False
        for index, row in enumerate(self.troubles):
            is_refusal = FAULTS[row.fault].kind == "refusal"
            if row.fault in rows or (is_refusal and refused) or self._struck[index] >= row.times:
                continue
            if not row.fits(facts, counts) or row.ends_at(self.clock.now(), self.began) is None:
                continue
            if self.scenario.draw(index, facts.get("zone"), counts["attempt"]) < row.chance:
                self._struck[index] += 1
                rows[row.fault] = row
                refused |= is_refusal
        return rows

    def closing(self, request: ChipRequest) -> Iterator[Trouble]:
        """Yield the rows that keep this request in its queue while they hold."""
        facts = {
            "api": request.service,
            "method": request.create_method,
            "zone": request.zone,
            "name": request.id,
            "type": request.accelerator.name,
            "model": request.model,
        }
        return (row for row in self.troubles if row.fault == "no-grant" and not row.counts and row.fits(facts, {}))

    def begin(self, target: str, verb: str, at: float) -> LongRunningOperation:
        """Start an operation, its id in the form of Google's."""
        name = self.operation_name(target, at)
        operation = LongRunningOperation(name=name, target=target, verb=verb, created_at=at)
        self.operations[operation.name] = operation
        return operation

    def lists(self, operation: LongRunningOperation) -> bool:
        """Return whether lists still have an operation: how long Google keeps those that are over is not verified."""
        return operation.ended_at is None or self.clock.now() < operation.ended_at + self.scenario.keeps_operations

    def track_creation(self, request: ChipRequest, operation: LongRunningOperation) -> None:
        """Note the create operation of a request. The scenario may never let it end."""
        request.creation = operation
        operation.never_ends = "operation-never-ends" in request.troubles

    def operation_name(self, target: str, at: float, *, prefix: str = "operation") -> str:
        """Return a name that no other operation has."""
        place = "/".join(target.split("/")[:4])
        number = len(self.operations) + len(self.zone_operations) + 1
        tail = f"{int(self.scenario.draw('operation', number) * 2**52):013x}-{number:08x}-{int(at) & 0xFFFFFFFF:08x}"
        return f"{place}/operations/{prefix}-{int(at * 1000)}-{tail}"

    def life_of(self, call: ApiCall) -> dict[str, Any]:
        """Return how what this call creates will live: fields of ChipRequest."""
        now = self.clock.now()
        faults = {
            name: row for name, row in call.troubles.items() if FAULTS[name].kind == "life" or name == "internal-error"
        }
        settings = {name: row.settings for name, row in faults.items()}
        timings = replace(self.scenario.timings, **settings.get("timings", {}))
        behaviour = replace(self.scenario.boot, **settings.get("boot", {}))
        if "boot" in settings.get("timings", {}):
            behaviour = replace(behaviour, boot_seconds=timings.boot)
        jitter = self.scenario.jitter_of("create", self.calls[call.method])
        return {
            "created_at": now,
            "timings": timings.varied(jitter),
            "jitter": jitter,
            "behaviour": behaviour,
            "troubles": faults,
            "hidden_until": now + settings.get("hidden", {"seconds": 0.0})["seconds"],
            "unlisted_until": now + settings.get("unlisted", {"seconds": 0.0})["seconds"],
        }

    @property
    def hosts(self) -> Mapping[str, Sequence[Host]]:
        """Return the machines of every node and instance, by its name."""
        of_nodes = {name: node.hosts for name, node in self.nodes.items()}
        return of_nodes | {name: [i.host] for name, i in self.instances.items() if i.host is not None}

    def age(self) -> None:
        with self.lock:
            self.agenda.run(self.clock.now())

    def next_moment(self, *, turns: bool = False) -> float:
        """Return the next moment at which something changes without a caller; infinite if nothing will."""
        now = self.clock.now()
        requests = (*self.slices.values(), *self.instances.values(), *self.groups.values())
        hosts = [host for hosts in self.hosts.values() for host in hosts]
        moments = [
            self.agenda.next_moment(),
            *(moment for request in requests for moment in request.appearances),
            *(moment for row in self.troubles for moment in row.edges(now, self.began)),
            *(moment for host in hosts if (moment := host.next_moment(turns=turns)) is not None),
        ]
        return min((moment for moment in moments if moment > now), default=inf)

    def close(self) -> None:
        with self.lock:
            stopped = [i.stopped_host for i in self.instances.values() if i.stopped_host is not None]
            for hosts in (*self.hosts.values(), stopped):
                for host in hosts:
                    host.stop()
            self.addresses.close()
