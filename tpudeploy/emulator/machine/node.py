"""The parts of one emulated machine, and the state that they share."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tpudeploy.emulator.addresses import NodeAddresses
from tpudeploy.emulator.machine.docker.daemon import Daemon
from tpudeploy.emulator.machine.facts import Behaviour, MachineFacts
from tpudeploy.emulator.machine.guest_attributes import GuestAttributes
from tpudeploy.emulator.machine.root import Root
from tpudeploy.emulator.machine.sleepers import Sleepers
from tpudeploy.emulator.machine.units import Units

if TYPE_CHECKING:  # it knows nodes
    from tpudeploy.emulator.machine.commands.routers import RunningRouter


@dataclass(slots=True, kw_only=True, eq=False)
class NodeMachine:
    """`key` opens the private paths of the node's server at `port`; `token` is the service account's access token."""

    facts: MachineFacts
    behaviour: Behaviour
    root: Root
    sleepers: Sleepers
    addresses: NodeAddresses
    daemon: Daemon
    units: Units
    guest_attributes: GuestAttributes
    has_docker: bool
    port: int = 0
    key: str = field(default_factory=lambda: secrets.token_hex(16))
    token: str = field(default_factory=lambda: f"ya29.emulated-{secrets.token_hex(16)}")
    routers: list[RunningRouter] = field(default_factory=list)
    booted_at: float = 0.0
    booted_with: Mapping[str, str] = field(default_factory=dict)
    is_preempted: bool = False

    def start_boot(self) -> None:
        self.booted_at, self.booted_with = self.facts.clock.now(), dict(self.facts.metadata())
        self.is_preempted = False

    def metadata(self) -> Mapping[str, str]:
        """Return the metadata as the machine sees it now."""
        return self.facts.metadata() if self.behaviour.hears_changes else self.booted_with

    def listening(self, port: int) -> tuple[str, int] | None:
        """Return where the node's own curl finds the server of its port; None where none runs."""
        router = next((each.place for each in self.routers if each.port == port), None)
        return router or self.daemon.listening(port)

    @property
    def has_metadata_server(self) -> bool:
        if not self.behaviour.metadata_away:
            return True
        after, seconds = self.behaviour.metadata_away
        return not after <= self.facts.clock.now() - self.booted_at < after + seconds

    def note_unsupported(self, message: str) -> None:
        """Show a message on the console, even where the script hides its commands' errors, and to the emulator."""
        with self.root.console.open("a", encoding="utf-8") as console:
            console.write(f"{message}\n")
        self.facts.note_unsupported(message)

    @property
    def number(self) -> int:
        return zlib.crc32(f"{self.facts.project}/{self.facts.zone}/{self.facts.node}".encode())

    @property
    def instance(self) -> str:
        is_tpu_node = self.facts.plain_image is None
        return f"t1v-n-{self.number:08x}-w-{self.facts.worker}" if is_tpu_node else self.facts.node

    def pause(self, seconds: float) -> None:
        """Let the script wait until the containers, too, have used the time that has passed."""
        self.sleepers.wait(seconds)
        self.daemon.catch_up()


def new_node(facts: MachineFacts, behaviour: Behaviour) -> NodeMachine:
    sleepers = Sleepers(facts.clock)
    addresses = NodeAddresses(facts.address, reachable=behaviour.reachable)
    root = Root(facts.root)
    return NodeMachine(
        facts=facts,
        behaviour=behaviour,
        root=root,
        sleepers=sleepers,
        addresses=addresses,
        daemon=Daemon(facts, behaviour, root, sleepers, addresses),
        units=Units(root, sleepers),
        guest_attributes=GuestAttributes(facts.clock),
        has_docker=behaviour.has_docker,
    )
