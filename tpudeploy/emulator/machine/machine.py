"""One emulated TPU VM: it boots, runs its startup script, reboots and stops."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Mapping

from tpudeploy.emulator.machine import session
from tpudeploy.emulator.machine.facts import Behaviour, MachineFacts
from tpudeploy.emulator.machine.idle import ProcessCounts, idle_processes
from tpudeploy.emulator.machine.node import NodeMachine, new_node
from tpudeploy.emulator.machine.server import COMMANDS, INSTALLED, NodeServer
from tpudeploy.emulator.machine.sleepers import DEADLINE, SCRIPT, TICK
from tpudeploy.emulator.machine.units import Unit

BY_HAND = "startup-script-by-hand"  # not a unit of systemd's, but it begins and ends like one
CONSOLE_TAIL = 600  # characters of the console in a message


class Machine:
    """`boot` once, `reboot` at will, or `power_off` and `power_on`, `stop` at the end.

    Every method may be called from any thread.
    """

    def __init__(self, facts: MachineFacts, behaviour: Behaviour) -> None:
        self._node: NodeMachine = new_node(facts, behaviour)
        self._server: NodeServer | None = None
        self._script: subprocess.Popen[bytes] | None = None
        self._last_log = ""
        self._lock = threading.RLock()

    @property
    def address(self) -> str:
        """Return what the cloud reports; nothing serves there where a firewall drops what comes from outside."""
        return self._node.addresses.address

    def port_for(self, port: int) -> int:
        """Return where a server with `--port` is found at `address`: another port where all share 127.0.0.1."""
        return self._node.addresses.port_for(port)

    def listening(self, port: int) -> tuple[str, int] | None:
        """Return where another host of the slice finds the server of this port; None where none runs."""
        return self._node.daemon.listening(port)

    @property
    def guest_attributes(self) -> Mapping[str, str]:
        return self._node.guest_attributes.values

    @property
    def removed_attributes(self) -> tuple[str, ...]:
        """Return the guest attributes that were removed because they were written above Google's limit."""
        return self._node.guest_attributes.removed

    def read_guest_attributes(self) -> Mapping[str, str]:
        """Return them as a reader from outside gets them, which counts towards Google's limit."""
        return self._node.guest_attributes.read()

    @property
    def exit_code(self) -> int | None:
        """Return how the startup script ended; None while it runs, or where there was none."""
        return session.read_exit_code(self._node.root.exit_code)

    def log(self) -> str:
        try:
            return self._node.root.console.read_text("utf-8", "replace")
        except FileNotFoundError:
            return self._last_log

    def boot(self) -> None:
        with self._lock:
            node = self._node
            if self._server is not None or node.sleepers.closed:
                raise RuntimeError(f"{node.facts.node} has booted already")
            node.root.make()
            self._server = NodeServer(node)
            node.port = self._server.port
            node.daemon.connect(node.port, node.key)
            commands = COMMANDS.keys() - INSTALLED | ({"docker"} if node.has_docker else set())
            node.root.add_shims(commands, node.port, node.key)
            if not node.behaviour.runs_own_scripts:
                node.root.refuse_own_scripts()
            self._run_script()

    def reboot(self) -> None:
        with self._lock:
            self.power_off()
            self.power_on()

    def power_off(self) -> None:
        """End all that runs. The disk stays, the memory does not."""
        with self._lock:
            if self._server is None:
                raise RuntimeError(f"{self._node.facts.node} is not running")
            self._end_script()
            self._node.units.stop_all()
            self._server.drain()
            self._node.daemon.kill_all()
            self._node.root.empty_tmpfs()

    def power_on(self) -> None:
        with self._lock:
            self._run_script()

    def announce_preemption(self) -> None:
        """Show in the metadata that Google takes the machine back."""
        self._node.is_preempted = True

    def stop(self) -> None:
        with self._lock:
            if self._server is None:
                return
            self._node.sleepers.wake_all(for_good=True)
            self._end_script()
            self._node.units.stop_all()
            self._server.close()
            self._node.daemon.kill_all()
            self._server = None
            self._last_log = self.log()
            self._node.root.remove()

    def settle(self, patience: float = DEADLINE) -> None:
        """Return when nothing moves before the clock does: script, units and stand-ins wait or are over.

        Raise TimeoutError after `patience` real seconds. Beside four busy processors on a machine of two, a
        stand-in that starts Python has taken 30.
        """
        if self._server is None or self._script is None:
            return
        end, pause = time.monotonic() + patience, TICK / 4
        previous: ProcessCounts | None = None
        while (counts := self._look()) is None or counts != previous:
            if time.monotonic() > end:
                raise TimeoutError(self._describe_unsettled(patience))
            previous = counts
            time.sleep(pause)
            pause = min(1.2 * pause, 2 * TICK)  # each look reads /proc: what takes long is looked at less often

    def next_moment(self, *, turns: bool = False) -> float | None:  # noqa: ARG002 - a script has no other moments
        """Return when something here that waits for time continues; None where nothing waits."""
        return self._node.sleepers.next_moment()

    def kill(self, unit: str) -> None:
        """Kill -9 of a unit's process. Raise KeyError where none runs."""
        self._node.units.kill(unit)

    def run_script_by_hand(self) -> None:
        """Run the startup script of the metadata once more, as `google_metadata_script_runner startup` does."""
        root = self._node.root
        script = root.own / BY_HAND
        script.write_text(self._node.metadata()["startup-script"], encoding="utf-8", newline="")
        self._node.units.start(Unit(name=BY_HAND, command=(str(root.path / "usr/bin/bash"), str(script))))

    def _look(self) -> ProcessCounts | None:
        """Return the processes of script and units where none of them moves; None where one does.

        One look counts if the next is the same.
        """
        server, script = self._server, self._script
        if server is None or script is None:  # stopped meanwhile
            return frozenset()
        naps = self._node.sleepers.calls()
        is_moving = self._busy() or not all(naps) or len(server.callers) != len(naps)
        if is_moving or not self._node.daemon.has_caught_up():
            return None
        return idle_processes((script.pid, *self._node.units.wardens()), server.callers)

    def _busy(self) -> list[str]:
        """Return the names of those that neither wait nor are over."""
        script = [] if self._script is None or self._script.poll() is not None else [SCRIPT]
        living = [*script, *(unit.name for unit in self._node.units.living())]
        return [name for name in living if not any(self._node.sleepers.naps(name))]

    def _describe_unsettled(self, patience: float) -> str:
        names = (f"the startup {name}" if name == SCRIPT else name for name in self._busy())
        busy = " and ".join(names) or "a stand-in"
        return (
            f"{self._node.facts.node}: after {patience:g} s {busy} neither ended nor waits for the node's clock. "
            f"Its console ends:\n{self.log()[-CONSOLE_TAIL:]}"
        )

    def _run_script(self) -> None:
        root = self._node.root
        root.exit_code.unlink(missing_ok=True)
        self._node.start_boot()
        text = self._node.booted_with.get("startup-script")
        if text is None:
            return
        root.script.write_text(text, encoding="utf-8", newline="")
        self._script = session.start_warden(
            [str(root.exit_code), str(root.path / "usr/bin/bash"), str(root.script)],
            console=root.console,
            environment=root.environment(),
            folder=root.path,
        )

    def _end_script(self) -> None:
        if self._script is not None:
            session.end_warden(self._script)
            self._script = None
