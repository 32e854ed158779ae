"""The machine's own commands: time on the node's clock, packages, and what has no effect in an emulated machine."""

from __future__ import annotations

import math
import time

from tpudeploy.emulator.machine.commands.call import Call, Outcome, done, failed

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
DOCKER_PACKAGES = frozenset(("docker.io", "docker-ce", "moby-engine"))


def sleep(call: Call) -> Outcome:
    try:
        seconds = sum(_seconds(word) for word in call.asked.words)
    except ValueError:
        return failed(1, f"sleep: invalid time interval '{' '.join(call.asked.words)}'\n")
    call.node.pause(seconds)
    return done("")


def _seconds(word: str) -> float:
    if word in {"inf", "infinity"}:
        return math.inf
    unit = UNITS.get(word[-1:])
    return float(word[:-1]) * unit if unit else float(word)


def date(call: Call) -> Outcome:
    """In UTC, as TPU VMs are set."""
    now = time.gmtime(call.node.facts.clock.now())
    formats = [word.removeprefix("+") for word in call.asked.words if word.startswith("+")]
    unknown = [
        word
        for word in call.asked.words
        if not word.startswith("+") and word not in {"-u", "--utc", "-Is", "-Iseconds"}
    ]
    if unknown:
        return failed(1, f"date: the emulator does not know '{unknown[0]}'\n")
    iso = any(word.startswith("-I") for word in call.asked.words)
    wanted = formats[0] if formats else "%Y-%m-%dT%H:%M:%S+00:00" if iso else "%a %b %e %H:%M:%S UTC %Y"
    whole = wanted.replace("%s", str(int(call.node.facts.clock.now()))).replace("%N", "000000000")
    return done(time.strftime(whole, now) + "\n")


def hostname(call: Call) -> Outcome:
    return done(f"{call.node.instance}\n")


def apt_get(call: Call) -> Outcome:
    """Installs docker and nothing else."""
    words = [word for word in call.asked.words if not word.startswith("-")]
    packages = words[words.index("install") + 1 :] if "install" in words else []
    if DOCKER_PACKAGES & set(packages):
        call.node.has_docker = True
        call.node.root.add_shims(["docker"], *call.node.door)
    return done(f"emulated: {' '.join(call.asked.words)}\n")


def nothing(_call: Call) -> Outcome:
    return done("")
