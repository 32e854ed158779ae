"""`systemd-run` and `systemctl`, as a startup script calls them: transient services, docker's, and no other unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from tpudeploy.emulator.machine import Unsupported
from tpudeploy.emulator.machine.commands import CommandCall, CommandResult, failure, success
from tpudeploy.emulator.machine.units import RESTARTS, Unit, UnitExists

SUFFIX = ".service"
PAUSE = 0.1  # systemd's RestartSec, in seconds
NO_SUCH_UNIT, NOT_ACTIVE = 5, 3  # exit codes of systemctl
_SWITCHES = frozenset(("--collect", "--no-block", "--pipe", "--quiet", "--wait"))
# Properties that a unit here has, and those that make no difference to it: its end is awaited, its log is the console.
_PROPERTIES = frozenset(
    ("LimitNOFILE", "Restart", "RestartSec", "SyslogIdentifier", "TimeoutStopSec", "WorkingDirectory")
)
_DOCKER = "docker"


def systemd_run(call: CommandCall) -> CommandResult:
    """Run a transient service. With --wait, return its exit code. Its output goes to the console, --pipe or not."""
    unit, waits = _read(call.words)
    if not Path(unit.command[0]).is_relative_to(call.node.root.path):
        return failure(1, f"Failed to find executable {unit.command[0]}: not in the node's root\n")
    if unit.restart not in RESTARTS:
        return failure(1, f"Failed to parse service restart specifier: {unit.restart}\n")
    try:
        call.node.units.start(unit)
    except UnitExists:
        return failure(1, f"Failed to start transient service unit: Unit {unit.name}{SUFFIX} was already loaded.\n")
    if waits:
        call.node.sleepers.wait(math.inf, woken=lambda: unit.is_over)
        return CommandResult(unit.code or 0)
    return success("")


def systemctl(call: CommandCall) -> CommandResult:
    """Answer `stop`, `is-active` and the signal to a router of a transient service; of docker's own, also `start`."""
    if call.words[:3] == ("kill", "--kill-whom=main", "--signal=SIGUSR2"):
        # Only a router takes it: to read its files again.
        for router in call.node.routers:
            router.reload()
        return success("")
    flags = [word for word in call.words if word.startswith("-")]
    if flags:
        raise Unsupported(f"`{flags[0]}`")
    verb, *names = call.words or ("",)
    if verb not in {"start", "stop", "is-active"}:
        raise Unsupported(f"`{verb}`")
    if not names:
        return failure(1, "Too few arguments.\n")
    units = [name.removesuffix(SUFFIX) for name in names]
    if verb == "is-active":
        states = [_state(call, name) for name in units]
        return CommandResult(
            0 if "active" in states else NOT_ACTIVE, "".join(f"{state}\n" for state in states).encode()
        )
    return _start(call, units) if verb == "start" else _stop(call, units)


def _start(call: CommandCall, units: Sequence[str]) -> CommandResult:
    """Answer for a running unit. A transient one begins with `systemd-run`: there is no file to start it from."""
    return _report_missing("start", "not found", [name for name in units if _state(call, name) == "inactive"])


def _stop(call: CommandCall, units: Sequence[str]) -> CommandResult:
    if _DOCKER in units:
        raise Unsupported("`stop docker`")
    return _report_missing("stop", "not loaded", [name for name in units if not call.node.units.stop(name)])


def _report_missing(verb: str, reason: str, missing: Sequence[str]) -> CommandResult:
    errors = "".join(f"Failed to {verb} {name}{SUFFIX}: Unit {name}{SUFFIX} {reason}.\n" for name in missing)
    return failure(NO_SUCH_UNIT, errors) if missing else success("")


def _state(call: CommandCall, name: str) -> str:
    if name == _DOCKER:
        return "active" if call.node.has_docker else "inactive"
    return call.node.units.state(name)


def _read(words: Sequence[str]) -> tuple[Unit, bool]:
    """Return the unit, and whether the caller waits for its end.

    Raise Unsupported for an option, a property or a form that no rendered script uses.
    """
    options = tuple(takewhile(lambda word: word.startswith("-"), words))
    command = tuple(words[len(options) :])
    # The value of each option by its name, and by its key where it has one: `--wait`, `--setenv=K=V`.
    values: dict[tuple[str, str], str] = {}
    for option in options:
        name, key, value = _read_option(option)
        values[name, key] = value
    unit = values.get(("--unit", ""), "").removesuffix(SUFFIX)
    if not command or not unit:
        raise Unsupported("a call without a command or without --unit")
    folder = values.get(("--property", "WorkingDirectory"))
    service = Unit(
        name=unit,
        command=command,
        restart=values.get(("--property", "Restart"), "no"),
        pause=_seconds(values.get(("--property", "RestartSec"), str(PAUSE))),
        # The node's home is below its root, as its every path is.
        environment={key: value for (name, key), value in values.items() if name == "--setenv" and key != "HOME"},
        folder=None if folder is None else Path(folder),
    )
    return service, ("--wait", "") in values


def _read_option(option: str) -> tuple[str, str, str]:
    """Return the name of an option, its key where it assigns one, and its value. Raise Unsupported."""
    name, equals, value = option.partition("=")
    key, assigns, setting = value.partition("=")
    match name:
        case _ if name in _SWITCHES and not equals:
            return name, "", ""
        case "--unit" if value:
            return name, "", value
        case "--setenv" if assigns:
            return name, key, setting
        case "--property" if key in _PROPERTIES and assigns:
            return name, key, setting
        case _:
            raise Unsupported(f"`{name}{f'={key}' if name == '--property' else ''}`")


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Unsupported(f"`RestartSec={text}`: it takes plain seconds") from None
