"""The machine's own commands: time on the node's clock, its name, its packages."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from tpudeploy.emulator.machine import Unsupported
from tpudeploy.emulator.machine.commands import CommandCall, CommandResult, failure, success

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
DOCKER_PACKAGES = frozenset(("docker.io", "docker-ce", "moby-engine"))
# The commands of other packages, which exist on an ordinary machine alone: TPU machines install none of them.
_COMMANDS: Mapping[str, str] = {"haproxy": "haproxy", "python3-venv": "python3"}


def sleep(call: CommandCall) -> CommandResult:
    if not call.words:
        return failure(1, "sleep: missing operand\n")
    try:
        seconds = sum(_seconds(word) for word in call.words)
    except ValueError:
        return failure(1, f"sleep: invalid time interval '{' '.join(call.words)}'\n")
    call.node.pause(seconds)
    return success("")


def _seconds(word: str) -> float:
    if word in {"inf", "infinity"}:
        return math.inf
    unit = UNITS.get(word[-1:])
    return float(word[:-1]) * unit if unit else float(word)


def date(call: CommandCall) -> CommandResult:
    """Print the time in UTC, as TPU VMs are set."""
    formats = [word.removeprefix("+") for word in call.words if word.startswith("+")]
    flags = [word for word in call.words if not word.startswith("+")]
    unknown = [word for word in flags if word not in {"-u", "--utc", "-Is", "-Iseconds"}]
    if unknown:
        raise Unsupported(f"`{unknown[0]}`")
    if len(formats) > 1:
        return failure(1, f"date: extra operand '+{formats[1]}'\n")
    moment = call.node.facts.clock.now()
    iso = any(word.startswith("-I") for word in flags)
    default = "%Y-%m-%dT%H:%M:%S+00:00" if iso else "%a %b %e %H:%M:%S UTC %Y"
    template = (*formats, default)[0]
    whole = template.replace("%s", str(int(moment))).replace("%N", "000000000")
    return success(time.strftime(whole, time.gmtime(moment)) + "\n")


def hostname(call: CommandCall) -> CommandResult:
    if call.words:
        raise Unsupported(f"`{call.words[0]}`")
    return success(f"{call.node.instance}\n")


def getent(call: CommandCall) -> CommandResult:
    """Look a name up in the internal DNS of Compute Engine."""
    if len(call.words) != 2 or call.words[0] not in {"ahostsv4", "hosts"}:  # noqa: PLR2004 - a database and a name
        raise Unsupported(f"`{' '.join(call.words)}`")
    address = call.node.facts.resolve(call.words[1])
    if not address:
        return failure(2, "")
    return success(f"{address:<15} STREAM {call.words[1]}\n{address:<15} DGRAM\n{address:<15} RAW\n")


def apt_get(call: CommandCall) -> CommandResult:
    """Refresh the lists of packages, and install docker or what a router needs: no other package exists."""
    verb, packages = _apt_words(call.words)
    if verb == "update":
        return success("Reading package lists...\n")
    if verb != "install" or not packages:
        raise Unsupported(f"`{verb}`")
    missing = [name for name in packages if name not in DOCKER_PACKAGES | _COMMANDS.keys()]
    if missing:
        return failure(100, "".join(f"E: Unable to locate package {name}\n" for name in missing))
    commands = [_COMMANDS.get(name, "docker") for name in packages]
    call.node.has_docker |= "docker" in commands
    call.node.root.add_shims(commands, call.node.port, call.node.key)
    return success("".join(f"Setting up {name} ...\n" for name in packages))


def _apt_words(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the verb and its packages. `-o` takes a setting of apt's locks, which are always free here."""
    plain: list[str] = []
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        if word == "-o" and remaining and remaining[0].startswith("DPkg::Lock::"):
            remaining.pop(0)
        elif not word.startswith("-"):
            plain.append(word)
        elif word not in {"-y", "--yes", "-q", "-qq", "--no-install-recommends"}:
            raise Unsupported(f"`{word}`")
    return (plain[0] if plain else "", plain[1:])
