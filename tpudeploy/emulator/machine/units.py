"""The units of a node's systemd, as far as scripts make them: a command that runs beside the startup script.

A unit lives until it is stopped, its command ends and is not to be started again, or the machine reboots.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tpudeploy.emulator.machine import session
from tpudeploy.emulator.machine.root import Root
from tpudeploy.emulator.machine.session import GRACE
from tpudeploy.emulator.machine.sleepers import Sleepers

UNIT = "TPUDEPLOY_EMULATED_UNIT"  # in the environment of its processes: who calls the node's server
# Service's `Restart=`, and whether a command that ended with this code, below 0 for a signal, is started again.
RESTARTS: Mapping[str, Callable[[int], bool]] = {
    "no": lambda _code: False,
    "always": lambda _code: True,
    "on-failure": lambda code: code != 0,
    "on-abnormal": lambda code: code < 0,
}


class UnitExists(Exception):
    """A unit of this name is loaded already, in systemd's word."""


@dataclass(slots=True, eq=False)
class Unit:
    """`restart` is a row of RESTARTS, `pause` the seconds before it; `code` is set when it is over.

    `environment` is what its command has beside the node's own, `folder` is where it runs, if not in the root.
    """

    name: str
    command: tuple[str, ...]
    restart: str = "no"
    pause: float = 0.0
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    code: int | None = None
    is_stopped: bool = False
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def is_over(self) -> bool:
        return self.code is not None


class Units:
    """Every method may be called from any thread."""

    def __init__(self, root: Root, sleepers: Sleepers) -> None:
        self._root = root
        self._sleepers = sleepers
        self._lock = threading.RLock()
        self._units: dict[str, Unit] = {}
        self._threads: list[threading.Thread] = []

    def start(self, unit: Unit) -> None:
        """Start a unit's command. Raise UnitExists."""
        with self._lock:
            previous = self._units.get(unit.name)
            if previous is not None and not previous.is_over:
                raise UnitExists(unit.name)
            self._units[unit.name] = unit
            self._spawn(unit)
            thread = threading.Thread(target=self._attend, args=(unit,), name=f"unit {unit.name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self, name: str) -> bool:
        """Stop a unit. Return whether there was one."""
        with self._lock:
            unit = self._units.get(name)
            if unit is None or unit.is_over:
                return False
            unit.is_stopped = True
            assert unit.process is not None
            session.end_warden(unit.process)
            unit.code = self._exit_code(unit)
        return True

    def stop_all(self) -> None:
        """Stop and forget all units, at a reboot and at the end."""
        for unit in self.living():
            self.stop(unit.name)
        for thread in self._threads:
            thread.join(GRACE)
        with self._lock:
            self._units.clear()
            self._threads.clear()

    def kill(self, name: str) -> None:
        """Kill -9 of its process. Raise KeyError where none runs."""
        with self._lock:
            unit = self._units[name]
            if unit.is_over:
                raise KeyError(name)
            os.kill(int(self._file(unit, "exit.pid").read_text("ascii")), signal.SIGKILL)
            process = unit.process
        assert process is not None
        process.wait(GRACE)  # otherwise the next look could still find that it waits for time

    def living(self) -> tuple[Unit, ...]:
        with self._lock:
            return tuple(unit for unit in self._units.values() if not unit.is_over)

    def state(self, name: str) -> str:
        """Return the state as `systemctl is-active` prints it."""
        unit = next((unit for unit in self.living() if unit.name == name), None)
        if unit is None:
            return "inactive"
        return "active" if unit.process is not None and unit.process.poll() is None else "activating"

    def wardens(self) -> tuple[int, ...]:
        """Return the processes above those of the units."""
        return tuple(unit.process.pid for unit in self.living() if unit.process is not None)

    def _attend(self, unit: Unit) -> None:
        """Wait for the unit's command to end, and start it again as long as its restart rule says so."""
        while True:
            assert unit.process is not None
            unit.process.wait()
            code = self._exit_code(unit)
            with self._lock:
                assert unit.process.stdin is not None
                unit.process.stdin.close()
                if unit.is_stopped or not RESTARTS[unit.restart](code):
                    unit.code = code
                    return
            until = self._sleepers.clock.now() + unit.pause
            self._sleepers.sleep_until(unit.name, until, woken=lambda: unit.is_stopped)
            with self._lock:
                if unit.is_stopped:
                    unit.code = code
                    return
                self._spawn(unit)

    def _spawn(self, unit: Unit) -> None:
        exit_file = self._file(unit, "exit")
        exit_file.unlink(missing_ok=True)
        self._file(unit, "exit.pid").unlink(missing_ok=True)
        unit.process = session.start_warden(
            ["-unit", str(exit_file), *unit.command],
            console=self._root.console,
            environment={**self._root.environment(), **unit.environment, UNIT: unit.name},
            folder=unit.folder or self._root.path,
        )

    def _exit_code(self, unit: Unit) -> int:
        code = session.read_exit_code(self._file(unit, "exit"))
        return -signal.SIGKILL if code is None else code  # where there is none, the warden itself was killed

    def _file(self, unit: Unit, suffix: str) -> Path:
        return self._root.own / f"{unit.name}.{suffix}"
