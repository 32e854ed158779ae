"""Suggest corrections of a command line. Each suggestion passes the check that rejected the word."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tpudeploy.catalog import closest
from tpudeploy.cli import verbs

if TYPE_CHECKING:
    from tpudeploy.cli.parsers import Parser

# Other tools' names of our options. The first one that the command has is suggested.
_ALSO_CALLED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("y", "yes", "assume-yes", "approve", "force", "auto-approve"), ("auto-approve", "force")),
    **dict.fromkeys(("var", "values"), ("set",)),
    **dict.fromkeys(("var-file", "overlay", "file", "config"), ("file", "overlay")),
    **dict.fromkeys(("C", "dir", "directory", "cwd"), ("chdir",)),
    **dict.fromkeys(("j", "jobs", "parallel"), ("parallelism",)),
    **dict.fromkeys(("nocolor", "no-colour"), ("no-color",)),
}
_HELP = ("-h", "--help")
_TYPO = 0.8


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return ` Did you mean ...?` with the nearest of the words, or "" if none is near."""
    return _question(closest(word, words))


def did_you_mean_command(word: str, commands: Iterable[str], group: str = "") -> str:
    """Return the command, or the verb of a group, that does what another tool's verb does, or else the nearest one.

    One that deletes or overwrites is not guessed, unless it is misspelled.
    """
    sentence = verbs.advice(word, group)
    return f" {sentence}" if sentence else _question(_nearest(word, commands))


def _nearest(word: str, names: Iterable[str]) -> str | None:
    harmless = [name for name in names if name not in verbs.DESTRUCTIVE or _is_typo(word, name)]
    return closest(word, harmless)


def _is_typo(word: str, name: str) -> bool:
    """Return whether a word begins as the name does and has nearly all of its letters."""
    from difflib import SequenceMatcher

    bare, own = word.lower().lstrip("-"), name.lstrip("-")
    return bare[:1] == own[:1] and SequenceMatcher(None, bare, own).ratio() > _TYPO


def did_you_mean_option(parser: Parser, words: Sequence[str], word: str) -> str:
    """Return the same for an option, with which the command line `words` can be parsed up to that option."""
    name, equals, value = word.partition("=")
    for option in _candidates(parser, name):
        is_help = option in _HELP and not equals  # not tried, because it would print the help
        if is_help or (option not in _HELP and _is_accepted(parser, words, word, f"{option}{equals}{value}")):
            # Keep Terraform's single dash if the word has one.
            spelling = option if name.startswith("--") else option.replace("--", "-", 1)
            return _question(f"{spelling}{equals}{value}")
    return ""


def _candidates(parser: Parser, name: str) -> Iterator[str]:
    from difflib import get_close_matches

    names = list(parser.option_names)
    bare = name.lstrip("-")
    yield from (f"--{alias}" for alias in _ALSO_CALLED.get(bare, ()) if f"--{alias}" in names and alias != bare)
    harmless = [each for each in names if each not in verbs.DESTRUCTIVE or _is_typo(bare, each)]
    yield from get_close_matches(f"--{bare}", harmless, n=5)


def _is_accepted(parser: Parser, words: Sequence[str], word: str, instead: str) -> bool:
    from tpudeploy.cli.parsers import Usage

    corrected = [instead if original == word else original for original in words]
    try:
        _, unknown = parser.parse_known_intermixed_args(corrected)
    except (Usage, argparse.ArgumentError, SystemExit):
        return False
    return instead not in unknown


def _question(suggestion: str | None) -> str:
    return f" Did you mean `{suggestion}`?" if suggestion else ""
