"""Make the parser of each command and of each of its verbs. Help, completion and the reference read the same parsers.

A command with verbs has a table of them, `VERBS`, and `verb_arguments` besides `arguments`, which are those of the
command without a verb. Where it needs one, `NEEDS_VERB` is True.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from tpudeploy.catalog import guess
from tpudeploy.cli.commands import Command, command, help_of
from tpudeploy.cli.options import common
from tpudeploy.cli.usage import Usage

_PROFILES = {".yaml", ".yml"}


class Parser(argparse.ArgumentParser):
    @property
    def option_names(self) -> Iterable[str]:
        """Return every option of the command, with its dashes."""
        return self._option_string_actions

    @property
    def positionals(self) -> Sequence[argparse.Action]:
        return self._get_positional_actions()

    def option(self, name: str) -> argparse.Action | None:
        """Return the option of that name, with its dashes, or None."""
        return self._option_string_actions.get(name)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Raise argparse.ArgumentError for a value that is not one of the choices, with a suggestion."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        suggestion = f" {guess(str(value), choices)}".rstrip()
        if not action.option_strings and Path(str(value)).suffix in _PROFILES:
            suggestion = f" The profile comes before it: `{self.prog} {value} {choices[0]}`."
        raise argparse.ArgumentError(action, f"`{value}` is not one of {', '.join(choices)}.{suggestion}")

    def error(self, message: str) -> NoReturn:
        sentence = message if message.endswith((".", "?")) else f"{message}."
        raise Usage(sentence, hint=f"Run `{self.prog} --help` for its options.")


def verbs_of(chosen: Command) -> Mapping[str, str]:
    """Return the verbs of a command, each with its line of help."""
    table: Mapping[str, str] = getattr(chosen, "VERBS", {})
    return table


def needs_verb(chosen: Command) -> bool:
    return getattr(chosen, "NEEDS_VERB", False)


def parser_of(name: str, verb: str = "") -> Parser:
    """Return the parser of a command, or of one of its verbs. Raise `Usage` for a variable with an invalid value."""
    chosen = command(name)
    if not verb:
        parser = Parser(prog=f"tpudeploy {name}", description=help_of(chosen), allow_abbrev=False)
        common(parser)
        chosen.arguments(parser)
        return parser
    summary = verbs_of(chosen)[verb]
    parser = Parser(prog=f"tpudeploy {name} {verb}", description=summary, allow_abbrev=False)
    common(parser)
    chosen.verb_arguments(parser, verb)  # type: ignore[attr-defined] # a command with verbs has it
    return parser


def help_text(name: str, verb: str) -> str:
    """Return the help page of a command, which lists its verbs, or of a verb."""
    parser, table = parser_of(name, verb), verbs_of(command(name))
    if table and not verb:
        if not needs_verb(command(name)):
            parser.usage = parser.format_usage().removeprefix("usage: ").rstrip().replace("%", "%%")
        title = f"verbs (see `tpudeploy {name} VERB --help`)"
        verbs = parser.add_subparsers(title=title, metavar="VERB")
        for each, summary in table.items():
            verbs.add_parser(each, help=summary)
    return parser.format_help()


def split_verb(name: str, words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the verb of a command line and the other words; "" without a verb. Options may come before it."""
    table = verbs_of(command(name))
    if not table:
        return "", list(words)
    position = first_argument(name, words)
    if position is None or words[position] not in table:
        return "", list(words)
    return words[position], [*words[:position], *words[position + 1 :]]


def first_argument(name: str, words: Sequence[str]) -> int | None:
    """Return the position of the first word that is neither an option nor the value of one."""
    parsers: list[Parser] = []
    position = 0
    while position < len(words):
        word = words[position]
        if word == "--" or not word.startswith("-"):
            return None if word == "--" else position
        parsers = parsers or [parser_of(name, verb) for verb in ("", *verbs_of(command(name)))]
        actions = [parser.option(word) for parser in parsers]
        position += 2 if any(action is not None and takes_value(action) for action in actions) else 1
    return None


def takes_value(action: argparse.Action) -> bool:
    """Return whether an option is always followed by its value."""
    return action.nargs is None
