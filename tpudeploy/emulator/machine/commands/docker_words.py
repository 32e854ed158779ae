"""The words of a docker subcommand other than `run`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tpudeploy.emulator.machine.docker.run_options import UsageError


@dataclass(frozen=True, slots=True)
class Words:
    """A subcommand's words: `options` by their long names, values where they have one; then what they speak of."""

    options: Mapping[str, str]
    targets: tuple[str, ...]

    @property
    def target(self) -> str:
        if len(self.targets) != 1:
            raise UsageError(f"requires exactly 1 argument, not {len(self.targets)}.")
        return self.targets[0]


LONG = {
    "f": "force",
    "a": "all",
    "q": "quiet",
    "n": "tail",
    "t": "time",
    "u": "username",
    "p": "password",
    "s": "signal",
}
VALUED = frozenset(("platform", "tail", "time", "username", "password", "filter", "format", "since", "until", "signal"))


def read(words: tuple[str, ...], **special: str) -> Words:
    options: dict[str, str] = {}
    targets: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("-") or word == "-":
            targets.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name if word.startswith("--") else special.get(name) or LONG.get(name, name)
        if name in VALUED and not equals:
            value = left.pop(0) if left else ""
        options[name] = value
    return Words(options, tuple(targets))
