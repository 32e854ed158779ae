"""`systemd-run` and `systemctl`, as a startup script calls them: transient services, and no other unit."""

from __future__ import annotations

import math
from pathlib import Path

from tpudeploy.emulator.machine.commands.call import Call, Outcome, done, failed
from tpudeploy.emulator.machine.units import RESTARTS, Unit, UnitExists

SUFFIX = ".service"
PAUSE = 0.1  # systemd's RestartSec, in seconds
_ALONE = frozenset(("--collect", "--no-block", "--pipe", "--quiet", "--wait"))


def systemd_run(call: Call) -> Outcome:
    """With --wait it returns the command's own exit code. A unit's output goes to the node's console, --pipe or not."""
    switches, settings, command = _read(call.asked.words)
    unknown = switches - _ALONE
    if unknown or not command or "unit" not in settings:
        return failed(1, f"systemd-run: the emulator does not know '{' '.join(call.asked.words)}'\n")
    if not Path(command[0]).is_relative_to(call.node.root.path):
        return failed(1, f"Failed to find executable {command[0]}: not in the node's root\n")
    unit = Unit(
        name=settings["unit"].removesuffix(SUFFIX),
        command=command,
        restart=settings.get("Restart", "no"),
        pause=float(settings.get("RestartSec", PAUSE)),
    )
    if unit.restart not in RESTARTS:
        return failed(1, f"Failed to parse service restart specifier: {unit.restart}\n")
    try:
        call.node.units.start(unit)
    except UnitExists:
        return failed(1, f"Failed to start transient service unit: Unit {unit.name}{SUFFIX} was already loaded.\n")
    if "--wait" in switches:
        call.node.sleepers.wait(math.inf, woken=lambda: unit.is_over)
        return Outcome(unit.code or 0)
    return done("")


def systemctl(call: Call) -> Outcome:
    """`stop` and `is-active` of a transient service; of every other unit, and for every other verb, nothing happens."""
    verb, *names = [word for word in call.asked.words if not word.startswith("-")] or [""]
    units = [name.removesuffix(SUFFIX) for name in names]
    match verb:
        case "stop":
            stopped = [call.node.units.stop(name) for name in units]
            return Outcome(0 if all(stopped) else 5)
        case "is-active":
            states = [call.node.units.state(name) for name in units]
            return Outcome(0 if "active" in states else 3, "".join(f"{state}\n" for state in states).encode())
        case _:
            return done("")


def _read(words: tuple[str, ...]) -> tuple[set[str], dict[str, str], tuple[str, ...]]:
    """The switches, what `--unit=`, `--property=` and the like set, and the command."""
    switches: set[str] = set()
    settings: dict[str, str] = {}
    for at, word in enumerate(words):
        if not word.startswith("-"):
            return switches, settings, words[at:]
        name, equals, value = word.partition("=")
        if not equals:
            switches.add(name)
        elif name == "--property":
            key, _, set_to = value.partition("=")
            settings[key] = set_to
        else:
            settings[name.removeprefix("--")] = value
    return switches, settings, ()
