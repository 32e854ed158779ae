"""The words of a docker subcommand other than `run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tpudeploy.emulator.machine.docker.run_options import UsageError
from tpudeploy.emulator.machine.unsupported import Unsupported


@dataclass(frozen=True, slots=True)
class Words:
    """A subcommand's words: `options` by their long names with every value given, then the names they apply to."""

    options: Mapping[str, tuple[str, ...]]
    targets: tuple[str, ...]

    @property
    def target(self) -> str:
        if len(self.targets) != 1:
            raise UsageError(f"requires exactly 1 argument, not {len(self.targets)}.")
        return self.targets[0]

    def value(self, name: str) -> str | None:
        """Return what was given last, None where the option is absent."""
        return self.options[name][-1] if name in self.options else None


def read(words: Sequence[str], switches: str = "", values: str = "") -> Words:
    """Return the words by their meaning.

    `switches` and `values` name the options that the stand-in honours, each with its letter, as in "all=a quiet=q".
    Raise Unsupported for any other, UsageError for a missing value.
    """
    pairs = [word.partition("=")[::2] for word in f"{switches} {values}".split()]
    letters = {letter: name for name, letter in pairs if letter}
    known = {name for name, _ in pairs}
    with_value = {word.partition("=")[0] for word in values.split()}
    options: dict[str, tuple[str, ...]] = {}
    targets: list[str] = []
    remaining = [part for word in words for part in _separated(word)]
    while remaining:
        word = remaining.pop(0)
        if not word.startswith("-") or word == "-":
            targets.append(word)
            continue
        written, equals, value = word.partition("=")
        name = written[2:] if written.startswith("--") else letters.get(written[1:], "")
        if name not in known:
            raise Unsupported(f"`{written}`")
        if name in with_value and not equals:
            if not remaining:
                raise UsageError(f"flag needs an argument: {written}")
            value = remaining.pop(0)
        options[name] = (*options.get(name, ()), value)
    return Words(options, tuple(targets))


def _separated(word: str) -> list[str]:
    """Return `-aq` as `-a` and `-q`. No letter with a value is ever written together with another here."""
    if word.startswith("-") and not word.startswith("--") and word[1:].isalpha():
        return [f"-{letter}" for letter in word[1:]]
    return [word]
