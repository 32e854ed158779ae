"""Suggestions for a command line that cannot be understood: each one is accepted by the check that refused the word."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tpudeploy.catalog import closest

if TYPE_CHECKING:
    from tpudeploy.cli.main import Parser

# What other tools call an option of ours. The first that the command has is meant.
_ALSO_CALLED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("y", "yes", "assume-yes", "approve", "force", "auto-approve"), ("auto-approve", "force")),
    **dict.fromkeys(("var", "values"), ("set",)),
    **dict.fromkeys(("var-file", "overlay", "file", "config"), ("file", "overlay")),
    **dict.fromkeys(("C", "dir", "directory", "cwd"), ("chdir",)),
    **dict.fromkeys(("j", "jobs", "parallel"), ("parallelism",)),
    **dict.fromkeys(("nocolor", "no-colour"), ("no-color",)),
}
_HELP = ("-h", "--help")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` Did you mean ...?` with the nearest of the `known` words, or "" where none is near."""
    return _question(closest(word, known))


def did_you_mean_option(parser: Parser, words: Sequence[str], word: str) -> str:
    """The same for an option: one with which the whole command line `words` is understood as far as that option."""
    name, equals, value = word.partition("=")
    for option in _candidates(parser, name):
        is_help = option in _HELP and not equals  # not tried: it would print the help
        if is_help or (option not in _HELP and _is_accepted(parser, words, word, f"{option}{equals}{value}")):
            # As Terraform writes it where the word is one of other tools'.
            shown = option if name.startswith("--") else option.replace("--", "-", 1)
            return _question(f"{shown}{equals}{value}")
    return ""


def _candidates(parser: Parser, name: str) -> Iterator[str]:
    from difflib import get_close_matches

    known = list(parser.option_names)
    bare = name.lstrip("-")
    yield from (f"--{each}" for each in _ALSO_CALLED.get(bare, ()) if f"--{each}" in known and each != bare)
    yield from get_close_matches(f"--{bare}", known, n=5)


def _is_accepted(parser: Parser, words: Sequence[str], word: str, instead: str) -> bool:
    from tpudeploy.cli.main import Usage

    replaced = [instead if each == word else each for each in words]
    try:
        _, unknown = parser.parse_known_intermixed_args(replaced)
    except (Usage, argparse.ArgumentError, SystemExit):
        return False
    return instead not in unknown


def _question(meant: str | None) -> str:
    return f" Did you mean `{meant}`?" if meant else ""
