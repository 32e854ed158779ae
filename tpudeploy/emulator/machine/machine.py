"""One emulated TPU VM: it boots, runs its startup script, reboots and stops."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from tpudeploy.emulator.machine import session
from tpudeploy.emulator.machine.commands import COMMANDS
from tpudeploy.emulator.machine.facts import Behaviour, Facts
from tpudeploy.emulator.machine.node import Node, new_node
from tpudeploy.emulator.machine.quiet import Look, standing_still
from tpudeploy.emulator.machine.server import NodeServer
from tpudeploy.emulator.machine.sleepers import SCRIPT, TICK
from tpudeploy.emulator.machine.units import Unit

GRACE = 5.0  # real seconds for the script's session to be killed
BY_HAND = "startup-script-by-hand"  # no unit of systemd's, but it begins and ends like one
SHOWN = 600  # characters of the console in a message


class Machine:
    """`boot` once, `reboot` at will, `stop` at the end. Every method may be called from any thread."""

    def __init__(self, facts: Facts, behaviour: Behaviour) -> None:
        self._node: Node = new_node(facts, behaviour)
        self._server: NodeServer | None = None
        self._script: subprocess.Popen[bytes] | None = None
        self._last_log = ""
        self._lock = threading.RLock()

    @property
    def address(self) -> str:
        """What the cloud reports; a firewalled machine (`reachable` False) serves at `inner_address` alone."""
        return self._node.addresses.address

    @property
    def inner_address(self) -> str:
        return self._node.addresses.inner_address

    def port_for(self, port: int) -> int:
        """Where the server that was told to use `port` is found at `address`: another one on 127.0.0.1 alone."""
        return self._node.addresses.port_for(port)

    @property
    def guest_attributes(self) -> Mapping[str, str]:
        return self._node.guest_attributes.values

    @property
    def removed_attributes(self) -> tuple[str, ...]:
        """The guest attributes that were lost because they were written above Google's limit."""
        return self._node.guest_attributes.removed

    def read_guest_attributes(self) -> Mapping[str, str]:
        """Return them as a reader from outside gets them, which counts towards Google's limit."""
        return self._node.guest_attributes.read()

    @property
    def exit_code(self) -> int | None:
        """How the startup script ended, or None: it runs, or there was none."""
        try:
            return int(self._node.root.exit_code.read_text("ascii"))
        except FileNotFoundError:
            return None

    def log(self) -> str:
        try:
            return self._node.root.console.read_text("utf-8", "replace")
        except FileNotFoundError:
            return self._last_log

    def boot(self) -> None:
        with self._lock:
            if self._server is not None or self._node.sleepers.closed:
                raise RuntimeError(f"{self._node.facts.node} has booted already")
            self._node.root.make()
            self._server = NodeServer(self._node)
            self._node.port = self._server.port
            self._node.daemon.connect(*self._node.door)
            shims = COMMANDS if self._node.has_docker else COMMANDS.keys() - {"docker"}
            self._node.root.add_shims(shims, *self._node.door)
            self._server.start()
            self._run_script()

    def reboot(self) -> None:
        with self._lock:
            if self._server is None:
                raise RuntimeError(f"{self._node.facts.node} is not running")
            self._end_script()
            self._node.units.stop_all()
            self._server.drain()
            self._node.daemon.kill_all()
            self._node.root.empty_tmpfs()
            self._run_script()

    def stop(self) -> None:
        with self._lock:
            if self._server is None:
                return
            self._node.sleepers.wake_all(for_good=True)
            self._end_script()
            self._node.units.stop_all()
            self._server.stop()
            self._node.daemon.kill_all()
            self._server = None
            self._last_log = self.log()
            self._node.root.remove()

    def settle(self, patience: float = 30.0) -> None:
        """Return when nothing moves before the clock does: script, units and stand-ins wait or are over."""
        if self._server is None or self._script is None:
            return
        end = time.monotonic() + patience
        before: Look | None = None
        while (now := self._still()) is None or now != before:
            if time.monotonic() > end:
                raise TimeoutError(self._unsettled(patience))
            before = now
            time.sleep(TICK / 4)

    def next_moment(self) -> float | None:
        """When something here goes on by itself, once it has settled; None: nothing waits for time."""
        return self._node.sleepers.next_moment()

    def kill(self, unit: str) -> None:
        """Kill -9 of a unit's process. Raise KeyError where none runs."""
        self._node.units.kill(unit)

    def run_script_by_hand(self) -> None:
        """Run the startup script of the metadata once more, as `google_metadata_script_runner startup` does."""
        root = self._node.root
        script = root.own / "startup-script-by-hand"
        script.write_text(self._node.metadata()["startup-script"], encoding="utf-8", newline="")
        command = (str(root.path / "usr/bin/bash"), str(script))
        self._node.units.start(Unit(name=BY_HAND, command=command, restart="no", pause=0.0))

    def _still(self) -> Look | None:
        """The processes of script and units of which none moves, or None: a look, which counts if the next is alike."""
        server, script = self._server, self._script
        if not self._is_settled():
            return None
        if server is None or script is None:  # stopped meanwhile
            return frozenset()
        return standing_still((script.pid, *self._node.units.wardens()), server.callers)

    def _is_settled(self) -> bool:
        server = self._server
        if server is None or self._script is None:
            return True
        calls = self._node.sleepers.calls()
        is_moving = self._busy() or not all(calls) or server.calls != len(calls)
        return not is_moving and self._node.daemon.has_caught_up()

    def _busy(self) -> list[str]:
        """Who neither waits nor is over."""
        script = [] if self._script is None or self._script.poll() is not None else [SCRIPT]
        living = [*script, *(unit.name for unit in self._node.units.living())]
        return [who for who in living if not any(self._node.sleepers.naps(who))]

    def _unsettled(self, patience: float) -> str:
        busy = " and ".join(f"the startup {who}" if who == SCRIPT else who for who in self._busy()) or "a stand-in"
        return (
            f"{self._node.facts.node}: after {patience:g} s {busy} neither ended nor waits for the node's clock. "
            f"Its console ends:\n{self.log()[-SHOWN:]}"
        )

    def _run_script(self) -> None:
        root = self._node.root
        root.exit_code.unlink(missing_ok=True)
        self._node.wake()
        text = self._node.booted_with.get("startup-script")
        if text is None:
            return
        root.script.write_text(text, encoding="utf-8", newline="")
        warden = Path(__file__).with_name("warden.py")
        bash = root.path / "usr/bin/bash"
        with root.console.open("ab") as console:
            self._script = session.start(
                [sys.executable, "-I", "-S", str(warden), str(root.exit_code), str(bash), str(root.script)],
                output=console,
                environment=root.environment(),
                folder=root.path,
            )

    def _end_script(self) -> None:
        script = self._script
        if script is None:
            return
        assert script.stdin is not None
        script.stdin.close()  # the warden sees the end of its input and kills the session
        try:
            script.wait(GRACE)
        except subprocess.TimeoutExpired:
            script.kill()
            script.wait()
        self._script = None
