"""The words of `docker run`, read as docker's own client reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tpudeploy.emulator.machine.unsupported import Unsupported

SHORT = {
    "d": "detach",
    "e": "env",
    "h": "hostname",
    "i": "interactive",
    "l": "label",
    "m": "memory",
    "p": "publish",
    "P": "publish-all",
    "t": "tty",
    "u": "user",
    "v": "volume",
    "w": "workdir",
}
_SWITCHES = "detach init interactive oom-kill-disable privileged publish-all quiet read-only rm tty"
_VALUES = """
add-host cap-add cap-drop cpus device dns entrypoint env env-file gpus hostname ipc label log-driver log-opt
memory mount name net network pid platform publish pull restart runtime security-opt shm-size stop-timeout tmpfs
ulimit user volume workdir
"""
SWITCHES = frozenset(_SWITCHES.split())
VALUES = frozenset(_VALUES.split())
# What a container here does as it is told, and what makes no difference to a stand-in. The rest docker knows, and a
# stand-in that ignored it would not do what the real one does.
_HONOURED = "detach env label name net network privileged rm volume"
_INDIFFERENT = "cap-add device hostname init ipc log-opt quiet security-opt shm-size stop-timeout ulimit"
SUPPORTED = frozenset(f"{_HONOURED} {_INDIFFERENT}".split())


class UsageError(Exception):
    """What docker prints beside exit code 125."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """`environment` holds None for a name whose value docker takes from its caller."""

    image: str
    command: tuple[str, ...]
    name: str
    environment: Mapping[str, str | None]
    volumes: tuple[str, ...]
    switches: frozenset[str]
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def on_host_network(self) -> bool:
        return "host" in (*self.flags.get("net", ()), *self.flags.get("network", ()))


def parse(words: Sequence[str]) -> RunOptions:
    """Raise UsageError in docker's words, and Unsupported for an option that only the real docker heeds."""
    flags: dict[str, list[str]] = {}
    left = list(words)
    while left and left[0].startswith("-"):
        word = left.pop(0)
        if word == "--":
            break
        for flag, value in _flags(word, left):
            if flag not in SUPPORTED:
                raise Unsupported(f"`--{flag}`")
            flags.setdefault(flag, []).append(value)
    if not left:
        raise UsageError("\"docker run\" requires at least 1 argument.\nSee 'docker run --help'.")
    environment = [pair.partition("=") for pair in flags.get("env", ())]
    return RunOptions(
        image=left[0],
        command=tuple(left[1:]),
        name=flags.get("name", [""])[-1],
        environment={name: value if equals else None for name, equals, value in environment},
        volumes=tuple(flags.get("volume", ())),
        switches=frozenset(flags) & SWITCHES,
        flags={name: tuple(values) for name, values in flags.items() if name not in SWITCHES | {"env"}},
    )


def _flags(word: str, left: list[str]) -> list[tuple[str, str]]:
    """`left` gives up its first word where the flag's value stands there."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        if name in SWITCHES:
            return [(name, value)] if value != "false" else []
        if name in VALUES:
            return [(name, value if equals else _next(word, left))]
        raise UsageError(f"unknown flag: --{name}\nSee 'docker run --help'.")
    return _short(word[1:], left)


def _short(letters: str, left: list[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for at, letter in enumerate(letters, start=1):
        name = SHORT.get(letter)
        if name is None:
            raise UsageError(f"unknown shorthand flag: '{letter}' in -{letters}\nSee 'docker run --help'.")
        if name in VALUES:
            rest = letters[at:]
            return [*found, (name, rest.removeprefix("=") if rest else _next(f"-{letter}", left))]
        found.append((name, ""))
    return found


def _next(flag: str, left: list[str]) -> str:
    if not left:
        raise UsageError(f"flag needs an argument: {flag}\nSee 'docker run --help'.")
    return left.pop(0)
