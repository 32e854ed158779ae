"""Options of docker's command line, read as docker's own client reads them; and the words of `docker run`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tpudeploy.emulator.machine import Unsupported

LETTERS = {
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
# What a container here honours, and what makes no difference to a stand-in. The rest exists in docker, and a stand-in
# that ignored it would not do what the real one does.
_HONOURED = "detach env label name net network privileged rm volume"
_WITHOUT_EFFECT = "cap-add device hostname init ipc log-opt quiet security-opt shm-size stop-timeout ulimit"
SUPPORTED = frozenset(f"{_HONOURED} {_WITHOUT_EFFECT}".split())


class DockerUsageError(Exception):
    """What docker prints beside exit code 125."""


class UnknownFlag(DockerUsageError):
    """`flag` is not in the table, as it is written."""

    def __init__(self, flag: str, message: str) -> None:
        super().__init__(f"{message}\nSee 'docker run --help'.")
        self.flag = flag


@dataclass(frozen=True, slots=True)
class OptionTable:
    """`letters` are the short names of switches and of options with a value."""

    letters: Mapping[str, str]
    switches: Collection[str]
    values: Collection[str]

    def read(self, word: str, rest: list[str]) -> list[tuple[str, str]]:
        """Return the options of one word with their values; a value behind it is taken off `rest`.

        Raise UnknownFlag, and DockerUsageError for a missing value.
        """
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if name in self.switches:
                return [(name, value)] if value != "false" else []
            if name in self.values:
                return [(name, value if equals else _next(word, rest))]
            raise UnknownFlag(f"--{name}", f"unknown flag: --{name}")
        options: list[tuple[str, str]] = []
        letters = word[1:]
        for at, letter in enumerate(letters, start=1):
            name = self.letters.get(letter, "")
            if not name:
                raise UnknownFlag(f"-{letter}", f"unknown shorthand flag: '{letter}' in -{letters}")
            if name in self.values:
                attached = letters[at:]
                value = attached.removeprefix("=") if attached else _next(f"-{letter}", rest)
                return [*options, (name, value)]
            options.append((name, ""))
        return options


def _next(flag: str, rest: list[str]) -> str:
    if not rest:
        raise DockerUsageError(f"flag needs an argument: {flag}\nSee 'docker run --help'.")
    return rest.pop(0)


_RUN = OptionTable(LETTERS, SWITCHES, VALUES)


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
    """Parse the words of `docker run`. Raise DockerUsageError, in docker's words, or Unsupported."""
    flags: dict[str, list[str]] = {}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        for flag, value in _RUN.read(word, rest):
            if flag not in SUPPORTED:
                raise Unsupported(f"`--{flag}`")
            flags.setdefault(flag, []).append(value)
    if not rest:
        raise DockerUsageError("\"docker run\" requires at least 1 argument.\nSee 'docker run --help'.")
    environment = [pair.partition("=") for pair in flags.get("env", ())]
    return RunOptions(
        image=rest[0],
        command=tuple(rest[1:]),
        name=flags.get("name", [""])[-1],
        environment={name: value if equals else None for name, equals, value in environment},
        volumes=tuple(flags.get("volume", ())),
        switches=frozenset(flags) & SWITCHES,
        flags={name: tuple(values) for name, values in flags.items() if name not in SWITCHES | {"env"}},
    )
