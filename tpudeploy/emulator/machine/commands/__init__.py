"""The commands that a node answers itself instead of the system: name → function. bash finds no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tpudeploy.emulator.machine.commands.call import Call, Outcome
from tpudeploy.emulator.machine.commands.curl import curl
from tpudeploy.emulator.machine.commands.docker import docker
from tpudeploy.emulator.machine.commands.host import apt_get, date, hostname, sleep
from tpudeploy.emulator.machine.commands.systemd import systemctl, systemd_run

COMMANDS: Mapping[str, Callable[[Call], Outcome]] = {
    "apt": apt_get,
    "apt-get": apt_get,
    "curl": curl,
    "date": date,
    "docker": docker,
    "hostname": hostname,
    "sleep": sleep,
    "systemctl": systemctl,
    "systemd-run": systemd_run,
}

__all__ = ["COMMANDS", "Call", "Outcome"]
