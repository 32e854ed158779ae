"""`systemd-run` and `systemctl`, as a startup script calls them: transient services, docker's, and no other unit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tpudeploy.emulator.machine.commands.call import Call, Outcome, done, failed
from tpudeploy.emulator.machine.units import RESTARTS, Unit, UnitExists
from tpudeploy.emulator.machine.unsupported import Unsupported

SUFFIX = ".service"
PAUSE = 0.1  # systemd's RestartSec, in seconds
NO_SUCH_UNIT, NOT_ACTIVE = 5, 3  # exit codes of systemctl
_SWITCHES = frozenset(("--collect", "--no-block", "--pipe", "--quiet", "--wait"))
# Properties that a unit here has, and those that make no difference to it: its end is awaited, its log is the console.
_PROPERTIES = frozenset(("Restart", "RestartSec", "SyslogIdentifier", "TimeoutStopSec"))
_DOCKER = "docker"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What `systemd-run` is told."""

    unit: str
    switches: frozenset[str]
    restart: str
    pause: float
    environment: Mapping[str, str]
    command: tuple[str, ...]


def systemd_run(call: Call) -> Outcome:
    """With --wait it returns the command's own exit code. A unit's output goes to the node's console, --pipe or not."""
    order = _read(call.asked.words)
    if not Path(order.command[0]).is_relative_to(call.node.root.path):
        return failed(1, f"Failed to find executable {order.command[0]}: not in the node's root\n")
    unit = Unit(
        name=order.unit,
        command=order.command,
        restart=order.restart,
        pause=order.pause,
        environment=order.environment,
    )
    if unit.restart not in RESTARTS:
        return failed(1, f"Failed to parse service restart specifier: {unit.restart}\n")
    try:
        call.node.units.start(unit)
    except UnitExists:
        return failed(1, f"Failed to start transient service unit: Unit {unit.name}{SUFFIX} was already loaded.\n")
    if "--wait" in order.switches:
        call.node.sleepers.wait(math.inf, woken=lambda: unit.is_over)
        return Outcome(unit.code or 0)
    return done("")


def systemctl(call: Call) -> Outcome:
    """`stop` and `is-active` of a transient service; of docker's own, also `start`."""
    flags = [word for word in call.asked.words if word.startswith("-")]
    verb, *names = [word for word in call.asked.words if not word.startswith("-")] or [""]
    if flags:
        raise Unsupported(f"`{flags[0]}`")
    units = [name.removesuffix(SUFFIX) for name in names]
    match verb:
        case "start" | "stop" | "is-active" if not units:
            return failed(1, "Too few arguments.\n")
        case "start":
            return _start(call, units)
        case "stop":
            return _stop(call, units)
        case "is-active":
            states = [_state(call, name) for name in units]
            return Outcome(0 if "active" in states else NOT_ACTIVE, "".join(f"{state}\n" for state in states).encode())
        case _:
            raise Unsupported(f"`{verb}`")


def _start(call: Call, units: Sequence[str]) -> Outcome:
    """A transient unit begins with `systemd-run`: there is no file that it could be started from."""
    missing = [name for name in units if _state(call, name) == "inactive"]
    errors = "".join(f"Failed to start {name}{SUFFIX}: Unit {name}{SUFFIX} not found.\n" for name in missing)
    return failed(NO_SUCH_UNIT, errors) if missing else done("")


def _stop(call: Call, units: Sequence[str]) -> Outcome:
    if _DOCKER in units:
        raise Unsupported("`stop docker`")
    missing = [name for name in units if not call.node.units.stop(name)]
    errors = "".join(f"Failed to stop {name}{SUFFIX}: Unit {name}{SUFFIX} not loaded.\n" for name in missing)
    return failed(NO_SUCH_UNIT, errors) if missing else done("")


def _state(call: Call, name: str) -> str:
    if name == _DOCKER:
        return "active" if call.node.has_docker else "inactive"
    return call.node.units.state(name)


def _read(words: Sequence[str]) -> _Order:
    """Raise Unsupported for an option, a property or a form that no rendered script uses."""
    switches: set[str] = set()
    properties: dict[str, str] = {}
    environment: dict[str, str] = {}
    unit = ""
    command = tuple(words)
    while command and command[0].startswith("-"):
        name, equals, value = command[0].partition("=")
        key, assigns, setting = value.partition("=")
        command = command[1:]
        if name in _SWITCHES and not equals:
            switches.add(name)
        elif name == "--unit" and value:
            unit = value.removesuffix(SUFFIX)
        elif name == "--setenv" and assigns:
            environment[key] = setting
        elif name == "--property" and key in _PROPERTIES and assigns:
            properties[key] = setting
        else:
            raise Unsupported(f"`{name}{f'={key}' if name == '--property' else ''}`")
    if not command or not unit:
        raise Unsupported("a call without a command or without --unit")
    # The node's home lies below its root, as its every path does.
    environment.pop("HOME", None)
    return _Order(
        unit=unit,
        switches=frozenset(switches),
        restart=properties.get("Restart", "no"),
        pause=_seconds(properties.get("RestartSec", str(PAUSE))),
        environment=environment,
        command=command,
    )


def _seconds(written: str) -> float:
    try:
        return float(written)
    except ValueError:
        raise Unsupported(f"`RestartSec={written}`: it takes plain seconds") from None
